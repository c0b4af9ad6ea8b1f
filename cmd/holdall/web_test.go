package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func TestWebRefusesWhatMakesNoSense(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	short := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(short, []byte("short\n"), 0o600))
	for says, args := range map[string][]string{
		"an address with a port is needed":     {"--listen", "127.0.0.1"},
		"--every is more than zero":            {"--every", "0s"},
		"--capacity not less":                  {"--capacity", "-1"},
		"cannot be asked for them":             {"--metrics", "http://127.0.0.1:4318/v1/metrics"},
		"--metrics: it is no URL":              {"--metrics", "127.0.0.1:9090"},
		"a token of 5 bytes, and at least 16":  {"--token-file", short},
		"which lock table?":                    {"--table", ""},
		"accepts at most 1 arg(s), received 2": {"a", "b"},
		"without a scheme and a port":          {"--host", "holdall.example,holdall.example:8765"},
	} {
		b.run(t, append([]string{"web"}, args...)...).oneError(t, exitUsage, says)
	}
	b.run(t, "web", "--token-file", filepath.Join(t.TempDir(), "absent")).oneError(t, exitError, "--token-file")
	taken := listen(t)
	defer taken.Close()
	b.run(t, "web", "--listen", taken.Addr().String()).oneError(t, exitError, "127.0.0.1:0 is a port that is free")
}

// Whoever is served besides this host needs the token.
func TestWebTellsItsTokenInTheURL(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	status := func(url string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		return answer.StatusCode
	}
	local := b.web(t)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, local.url)
	require.Equal(t, http.StatusOK, status(local.url))

	all := b.web(t, "--listen", "0.0.0.0:0")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/\?token=\w{26}$`, all.url)
	require.Equal(t, http.StatusOK, status(all.url))
	bare, _, _ := strings.Cut(all.url, "?")
	require.Equal(t, http.StatusUnauthorized, status(bare))

	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("a-token-of-some-length\n"), 0o600))
	own := b.web(t, "--token-file", file)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, own.url)
	require.Equal(t, http.StatusUnauthorized, status(own.url))
	require.Equal(t, http.StatusOK, status(own.url+"?token=a-token-of-some-length"))

	json := b.web(t, "-o", "json")
	require.Regexp(t, `^\{"url":"http://127\.0\.0\.1:\d+/"\}$`, json.url)
}

// What the list has found out of a holder, its key's page need not find out again.
func TestAKeysPageGoesOnFromTheList(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.actor(t, "holds", "host-1", "k").ready(t).Kill()
	s := b.web(t)
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(page)
	}
	for began := time.Now(); !strings.Contains(get("?only=dead"), `data-key="k"`); time.Sleep(100 * time.Millisecond) {
		require.Less(t, time.Since(began), aLongTime)
	}
	require.Contains(t, get("key?key=k"), "It is dead")
}
