package chaos

import (
	"fmt"
	"os"
)

// residentBytes is how much of a process is in memory; zero if nobody says.
func residentBytes(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident uint64
	if _, scanErr := fmt.Sscan(string(text), &size, &resident); err != nil || scanErr != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}
