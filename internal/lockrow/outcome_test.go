package lockrow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
)

// What the rows of its keys say of a commit without locks.
func TestFateOfAPass(t *testing.T) {
	const token = fencing.Token(100)
	ours := Row{Exists: true, Released: true, Fence: token, committedBy: me}
	burned := Row{Exists: true, Released: true, Fence: token, committedBy: other}
	untouched := Row{Exists: true, Released: true, Fence: token - 1, committedBy: other}
	overtaken := Row{Exists: true, Released: true, Fence: token + 1, committedBy: other}
	heldLater := Row{Exists: true, Unit: other, Fence: token + 1, committedBy: me}
	for name, c := range map[string]struct {
		row        Row
		dead, open Fate // when its token was made unusable on some key, and when nobody knows
	}{
		"its stamp":                     {ours, FateCommitted, FateCommitted},
		"its stamp, and another has it": {heldLater, FateCommitted, FateCommitted},
		"its token without its stamp":   {burned, FateNever, FateNever},
		"a lower fence":                 {untouched, FateNever, FateOpen},
		"a later fence":                 {overtaken, FateUnknown, FateUnknown},
		"no row":                        {Row{}, FateUnknown, FateOpen},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.dead, FateOfPass([]Row{c.row}, me, token))
			require.Equal(t, c.open, FateOfOpen(c.row, me, token))
			require.Equal(t, c.dead, FateOfPass([]Row{overtaken, c.row, overtaken}, me, token), "one that tells is enough")
		})
	}
	require.Equal(t, FateUnknown, FateOfPass(nil, me, token))
	require.Equal(t, FateCommitted, FateOfPass([]Row{untouched, ours}, me, token), "a stamp tells more than a fence")
	require.Equal(t, "open", FateOpen.String())
}
