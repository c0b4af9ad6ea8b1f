//go:build !unix

package overhead

import "time"

var began = time.Now()

// processorTime is the time that has passed: nothing else is asked of this system.
func processorTime() time.Duration { return time.Since(began) }
