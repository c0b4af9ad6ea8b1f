//go:build unix

package overhead

import (
	"syscall"
	"time"
)

// processorTime is what this process has had of the processors so far, whatever else runs there.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of a call that takes nothing from outside
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
