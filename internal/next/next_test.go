package next_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/next"
)

func TestOf(t *testing.T) {
	over, fix := next.Error("over", next.StartOver), next.Error("fix", next.FixCall)
	later, ask := next.Error("later", next.TryLater), next.Error("ask", next.AskLater)
	plain := errors.New("plain")
	for want, errs := range map[next.Next][]error{
		next.Decide:    {nil, plain, fmt.Errorf("more: %w", plain), errors.Join(plain, plain)},
		next.FixCall:   {fix, errors.Join(errors.Join(plain, fix), plain)},
		next.TryLater:  {later, errors.Join(fix, later), errors.Join(later, fix)},
		next.StartOver: {over, fmt.Errorf("more: %w", over), errors.Join(plain, over), errors.Join(later, over), fmt.Errorf("%w: %w", over, fix)},
		next.AskLater:  {ask, errors.Join(errors.Join(plain, fix), over, later, ask)},
	} {
		for _, err := range errs {
			require.Equal(t, want, next.Of(err), "%v", err)
		}
	}
	require.ErrorIs(t, fmt.Errorf("more: %w", over), over)
	require.NotErrorIs(t, over, next.Error("over", next.StartOver), "each is its own")
	require.Equal(t, "over", over.Error())
	require.Equal(t, "start over", next.StartOver.String())
}
