package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func readme(t *testing.T) string {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(page)
}

// The examples of the page do what they show: one shell runs them all, in order.
func TestREADME(t *testing.T) {
	t.Parallel()
	kind := engines.KindLocal
	if testing.Short() {
		kind = engines.KindDynoxide // whose start takes no seconds of a core
	}
	e := engines.Own(t, kind, "") // for the names of its tables
	asShown(t, readme(t), environ(e.Endpoint), func(text string) string { return text }, func(text string) string { return text })
}

// asShown has one shell run all examples of a text in order, and compares what they print with
// what is shown. A command is put in the words of the test before it is run, and what it has printed in
// those of the text.
func asShown(t *testing.T, text string, environ []string, typed, shown func(string) string) {
	t.Helper()
	const mark = "# next example"
	script := "PATH=" + filepath.Dir(program) + ":$PATH; cd " + t.TempDir() + "\n"
	var commands, wants []string
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(example, "\n")
			script += typed(command) + "\necho '" + mark + "'\n"
			commands, wants = append(commands, command), append(wants, strings.TrimSuffix(want, "\n"))
		}
	}
	require.NotEmpty(t, wants)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = environ
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	has := strings.Split(strings.TrimSuffix(string(out), mark+"\n"), mark+"\n")
	require.Len(t, has, len(wants))
	columns := regexp.MustCompile(` +`) // which are as wide as what stands in them
	for i, want := range wants {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(columns.ReplaceAllString(want, " ")), "…", ".+") + "$"
		got := shown(strings.TrimSuffix(progressLine.ReplaceAllString(has[i], ""), "\n"))
		require.Regexp(t, pattern, columns.ReplaceAllString(got, " "), "$ %s\n%s", commands[i], got)
	}
}

func TestREADMEHasAllExitCodes(t *testing.T) {
	table := "| code | |\n|---|---|\n"
	for _, c := range exitCodes {
		table += fmt.Sprintf("| %s | %s |\n", c.code, c.meaning)
	}
	require.Contains(t, readme(t), table)
}

func TestREADMEHasAllCommands(t *testing.T) {
	a := &app{environment: &environment{getenv: func(string) string { return "" }}}
	for _, command := range commands {
		require.Contains(t, readme(t), "\n## "+command(a).Name()+"\n")
	}
}
