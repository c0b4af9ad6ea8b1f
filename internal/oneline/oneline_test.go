package oneline_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/oneline"
)

func TestFactsAreSaidOnceOnOneLine(t *testing.T) {
	e := errors.New
	for _, c := range []struct {
		errs []error
		says string
	}{
		{[]error{e("a"), e("b")}, "a; b"},
		{[]error{e("a"), nil, e("a")}, "a"},
		{[]error{e("lost: key 1: gone"), e("lost: key 1: gone, when it was released")}, "lost: key 1: gone, when it was released"},
		{[]error{e("lost: key 1: gone, when it was released"), e("lost: key 1: gone")}, "lost: key 1: gone, when it was released"},
		{[]error{e("lost: key 1: gone"), e("lost: key 2: gone")}, "lost: key 1: gone; key 2: gone"},
		{[]error{e("lost: silent; the last: reset"), e("canceled")}, "lost: silent; the last: reset; canceled"},
		{[]error{e("op: late; the last: reset"), e("op: over; the last: reset")}, "op: late; the last: reset; over"},
		{[]error{e("not committed: canceled"), e("canceled")}, "not committed: canceled"},
		{[]error{errors.Join(e("a"), e("b")), e("b")}, "a; b"},
		{[]error{e("no renewal was confirmed"), e("no")}, "no renewal was confirmed; no"}, // it is a word of it, and no fact
		{[]error{e("exists"), e("is")}, "exists; is"},
		{[]error{e(`key "a": x`), e(`key "ab": x`)}, `key "a": x; key "ab": x`},
		{[]error{e("a: b"), e("a: b"), e("a: c")}, "a: b; c"},
		{[]error{oneline.Join(e("a"), e("b")), e("c")}, "a; b; c"},
	} {
		require.Equal(t, c.says, oneline.Join(c.errs...).Error(), "%q", c.errs)
	}
}

type kind struct{ n int }

func (k *kind) Error() string { return fmt.Sprint("kind ", k.n) }

func TestEachIsFound(t *testing.T) {
	one, two := errors.New("the same"), errors.New("the same")
	err := oneline.Join(nil, one, fmt.Errorf("wrapped: %w", two), &kind{7})
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, two)
	var k *kind
	require.ErrorAs(t, err, &k)
	require.NoError(t, oneline.Join())
	require.NoError(t, oneline.Join(nil, nil))
	require.Same(t, one, oneline.Join(nil, one))
}
