package engines

import (
	"errors"
	"os/exec"
)

// Chromium is the program of the browser that pages are tested in: the one on the PATH.
func Chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("pages cannot be tested, chromium is missing; run: make engines")
}
