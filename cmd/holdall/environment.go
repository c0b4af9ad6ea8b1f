package main

import (
	"io"
	"os"
)

// environment is all that a command meets of the world, so that a test can put its own
// in place of it.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(name string) string
	signals        <-chan os.Signal // those that are to end this process, or its command; nil if there are none
}

// connection says where DynamoDB is. What is empty is left to AWS's default chain.
type connection struct {
	profile, region, endpoint string
}
