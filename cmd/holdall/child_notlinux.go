//go:build unix && !linux

package main

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// hasStopped is not known here.
func hasStopped(int) bool { return false }
