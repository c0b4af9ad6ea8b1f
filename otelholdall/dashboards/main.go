// Dashboards writes docs/dashboards: a dashboard for Grafana and alert rules for Prometheus, of the
// metrics in instruments, and what the page beside them says of the alerts.
//
//	go run ./dashboards ../docs/dashboards
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// write writes all files, of which the page is there already.
func write(folder string) error {
	made, err := files(folder)
	if err != nil {
		return err
	}
	for name, text := range made {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil { //nolint:gosec // for all to read
			return err
		}
	}
	return nil
}

// files are the files by their names.
func files(folder string) (map[string][]byte, error) {
	board, err := dashboard()
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(folder, "README.md")) //nolint:gosec // that is what the caller names
	if err != nil {
		return nil, err
	}
	if page, err = withAlerts(page); err != nil {
		return nil, err
	}
	return map[string][]byte{"holdall.json": board, "alerts.yaml": rules(), "README.md": page}, nil
}
