package lockrow

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestAPlaceSaysWhoWaitsAndWhatFor(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct{ owner, purpose, hasOwner, hasPurpose string }{
		"both are short":              {"host 7", "payroll", "host 7", "payroll"},
		"there is no purpose":         {"host 7", "", "host 7", ""},
		"a long owner alone":          {"a-host-with-a-name 550e8400-e29b", "", "a-host-with-a-name 550", ""},
		"a long owner leaves room":    {long, "payroll", long[:14], "payroll"},
		"a long purpose leaves room":  {"host 7", long, "host 7", long[:15]},
		"both are long":               {long, long, long[:11], long[:10]},
		"no character is cut":         {strings.Repeat("ä", 20), strings.Repeat("€", 20), strings.Repeat("ä", 5), strings.Repeat("€", 3)},
		"lines are joined":            {"host\n7", "pay\nroll\x00", "host 7", "pay roll "},
		"what is not UTF-8 is marked": {"host\xff", "pay\xffroll", "host?", "pay?roll"},
	} {
		t.Run(name, func(t *testing.T) {
			w := WaiterOf(me, c.owner, c.purpose)
			require.Equal(t, me, w.Unit())
			owner, purpose := w.Who()
			require.Equal(t, c.hasOwner, owner)
			require.Equal(t, c.hasPurpose, purpose)
			require.LessOrEqual(t, len(w), len(me)+1+mostNoted)
			require.True(t, utf8.ValidString(string(w)))
		})
	}
	require.Equal(t, me, Waiter(me).Unit(), "one that says nothing of itself")
	owner, purpose := Waiter(me).Who()
	require.Empty(t, owner+purpose)
}

func TestAPlaceIsTheUnits(t *testing.T) {
	r := with(freeRow, func(r *Row) { r.Queue = []Waiter{WaiterOf(other, "host", "p"), WaiterOf(me, "host", "q")} })
	place, queued := r.Place(me)
	require.True(t, queued)
	require.Equal(t, 1, place)
	require.True(t, r.Queues(other))
	require.False(t, r.Queues("me"))
	require.Equal(t, "queue "+other+" ", r.LastSign(), "the nonce alone")
}

func TestWhatAPurposeMayBe(t *testing.T) {
	require.Empty(t, WrongWith(""))
	require.Empty(t, WrongWith(strings.Repeat("x", MaxPurpose)))
	require.Equal(t, "is longer than 256 bytes", WrongWith(strings.Repeat("€", 86)))
	require.Equal(t, "is not UTF-8", WrongWith("\xff"))
}
