package main

import "syscall"

// attributes: the command dies when we do, however that is. What it has started itself
// does not.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
