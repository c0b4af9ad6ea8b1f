package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func TestWebThatCannotBegin(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
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
		answer, err := http.Get(url)
		code, _ := answered(t, answer, err)
		return code
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
		answer, err := http.Get(s.url + path)
		_, page := answered(t, answer, err)
		return page
	}
	for began := time.Now(); !strings.Contains(get("?only=dead"), `data-key="k"`); time.Sleep(100 * time.Millisecond) {
		require.Less(t, time.Since(began), aLongTime)
	}
	require.Contains(t, get("key?key=k"), "It is dead")
}
