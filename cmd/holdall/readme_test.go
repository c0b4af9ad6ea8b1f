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
	e := engines.DynamoDBLocal(t, func(o *engines.Options) { o.Own = true }) // for the names of its tables
	const mark = "# next example"
	script := "PATH=" + filepath.Dir(program) + ":$PATH; cd " + t.TempDir() + "\n"
	var wants []string
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, shown, _ := strings.Cut(example, "\n")
			script += command + "\necho '" + mark + "'\n"
			wants = append(wants, strings.TrimSuffix(shown, "\n"))
		}
	}
	require.NotEmpty(t, wants)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = environ(e.Endpoint)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	has := strings.Split(strings.TrimSuffix(string(out), mark+"\n"), mark+"\n")
	require.Len(t, has, len(wants))
	columns := regexp.MustCompile(` +`) // which are as wide as what stands in them
	for i, want := range wants {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(columns.ReplaceAllString(want, " ")), "…", ".+") + "$"
		require.Regexp(t, pattern, columns.ReplaceAllString(strings.TrimSuffix(has[i], "\n"), " "))
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
