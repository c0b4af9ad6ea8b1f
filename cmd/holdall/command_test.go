package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func TestHelp(t *testing.T) {
	root := (&app{environment: &environment{getenv: func(string) string { return "" }}}).rootCommand()
	all := append([]*cobra.Command{root}, root.Commands()...)
	require.Greater(t, len(all), len(commands))
	for _, cmd := range all {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		r := runWith(t, nil, append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "holdall")), "--help")...)
		require.Equal(t, exitDone, r.code, r)
		require.Empty(t, r.stderr)
		require.Contains(t, r.stdout, "Examples:\n  ", cmd.Name())
		require.NotEmpty(t, cmd.Long, cmd.Name())
		require.NotContains(t, cmd.Short, ".", cmd.Name())
		for _, line := range strings.Split(cmd.Long, "\n") {
			require.LessOrEqual(t, len([]rune(line)), 104, "%s: %s", cmd.Name(), line)
		}
	}
	require.Contains(t, runWith(t, nil, "--help").stdout, exitCodesText())
	require.Contains(t, runWith(t, nil).stdout, exitCodesText())
}

// Every code that the command ends with is in the one place that --help shows.
func TestExitCodesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("exitcodes.go")
	require.NoError(t, err)
	constants := regexp.MustCompile(`(?m)^\t(exit\w+) += (\d+)$`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, constants)
	documented := map[string]bool{}
	for _, c := range exitCodes {
		require.False(t, documented[c.code], c.code)
		documented[c.code] = true
	}
	for _, c := range constants {
		if c[1] == "exitSignal" {
			c[2] += "+n"
		}
		require.True(t, documented[c[2]], "%s = %s", c[1], c[2])
		delete(documented, c[2])
	}
	require.Equal(t, map[string]bool{"other": true}, documented)
}

// Flags go before the environment, wherever they stand.
func TestFlagsAndEnvironment(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	wrong := environ("http://127.0.0.1:1", "HOLDALL_TABLE=no", "HOLDALL_UNITS=no", "HOLDALL_HASH_KEY=no", "HOLDALL_LEASE=1h")
	require.Equal(t, ran{0, unprotected(b.locks, b.units), ""}, runWith(t, wrong, "--endpoint-url", b.Endpoint, "check",
		"--table", b.locks, "--units", b.units, "--hash-key", "key", "--lease", "1s"))
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := runWith(t, nil, "completion", shell)
		require.Equal(t, exitDone, r.code, shell)
		require.Greater(t, strings.Count(r.stdout, "\n"), 10, shell)
	}
	r := runWith(t, nil, "__complete", "init", "--print", "")
	require.Equal(t, []string{"cloudformation", "iam", "terraform"}, strings.Fields(r.stdout)[:3])
	r = runWith(t, nil, "__complete", "check", "-o", "")
	require.Equal(t, []string{"text", "json"}, strings.Fields(r.stdout)[:2])
	r = runWith(t, nil, "__complete", "")
	for _, command := range []string{"init", "check", "outcome", "recover", "exec"} {
		require.Regexp(t, `(?m)^`+strconv.Quote(command)[1:len(command)+1]+`\t`, r.stdout)
	}
}
