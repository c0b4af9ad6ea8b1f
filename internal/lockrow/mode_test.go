package lockrow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModes(t *testing.T) {
	for m := range modes {
		for other := range modes {
			require.Equal(t, m.Compatible(other), other.Compatible(m), "one of two cannot be in the other's way alone")
			var n Modes
			require.False(t, n.Exclude(m), "nobody is there")
			n[other] = 2
			require.Equal(t, !m.Compatible(other), n.Exclude(m))
		}
	}
	require.False(t, Exclusive.Compatible(Exclusive))
	require.False(t, Exclusive.Compatible(Intent))
	require.True(t, Intent.Compatible(Intent))

	require.Equal(t, Modes{}, freeRow.has())
	require.Equal(t, Modes{Exclusive: 1}, heldRow.has())
	require.Equal(t, Modes{Intent: 2}, with(freeRow, func(r *Row) { r.Below = make([]Entry, 2) }).has())
}
