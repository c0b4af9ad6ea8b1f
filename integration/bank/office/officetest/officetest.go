// Package officetest runs the bank's programs in tests.
package officetest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/office"
)

// Run runs a program with these arguments.
func Run(ctx context.Context, p office.Program, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = p.Run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// Refuses asserts that a program refuses calls, each by one line that has this text.
func Refuses(t *testing.T, p office.Program, calls map[string]string) {
	t.Helper()
	for call, want := range calls {
		code, out, errs := Run(t.Context(), p, strings.Fields(call)...)
		require.Equal(t, office.WrongCall, code, call)
		require.Empty(t, out, call)
		require.Contains(t, errs, want, call)
		require.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
	}
}
