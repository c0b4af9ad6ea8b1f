package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/office"
)

// Who could not open the books leaves no archive behind, which would be in the way of
// who tries again; an archive of other books is left as it is, and named.
func TestOpeningWithAnArchive(t *testing.T) {
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"AccessDeniedException"}`)
	}))
	defer refuses.Close()
	file := filepath.Join(t.TempDir(), "archive.db")
	args := []string{"open", "-endpoint", refuses.URL, "-prefix", "x-", "-archive", file, "-quiet"}
	code, _, errs := bankRun(t.Context(), args...)
	require.Equal(t, office.Unsound, code)
	require.Contains(t, errs, "open: create the tables: ")
	arch, err := archive.Open(t.Context(), archive.Config{Where: file, Prefix: "x-"})
	require.NoError(t, err)
	defer func() { require.NoError(t, arch.Close(t.Context())) }()
	code, _, errs = bankRun(t.Context(), args...)
	require.Equal(t, office.Unsound, code)
	require.Equal(t, `open: archive: table "x-statements" exists already in SQLite, `+file+": choose another -archive or -prefix\n", errs)
}
