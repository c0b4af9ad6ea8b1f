package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Long: "version says which version of the command this is, of which commit, and by which Go it was built\n" +
			"for what. A version that ends with +dirty was built with changes that are in no commit.",
		Example: "  holdall version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo() // nil if there is none
			b := buildOf(info)
			a.out.line("%s", b)
			return a.out.json(b)
		},
	}
}

// notKnown is what nobody has written into the program.
const notKnown = "unknown"

type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the commit
	Time     string `json:"time"`     // of the commit
	Modified bool   `json:"modified"` // there were changes besides
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: notKnown, Revision: notKnown, Time: notKnown, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	b.Version = cmp.Or(strings.Trim(info.Main.Version, "()"), notKnown)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	return fmt.Sprintf("holdall %s, commit %s, %s, %s", b.Version, b.Revision, b.Go, b.Platform)
}
