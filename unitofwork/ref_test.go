package unitofwork

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/tokens"
)

// What names a unit is read as it was written, whatever is in its ID and its key.
func TestARefIsReadAsItWasWritten(t *testing.T) {
	for _, r := range []ref{
		{unit: "n", token: 1, at: time.Unix(0, 0), key: "k"},
		{unit: "AAAAAAAAAAAAAAAAAAAAAA", token: tokens.Max, at: time.Unix(1_900_000_129, 0), key: "customer:1/account:a", id: "p/1:x"},
		{unit: "n", token: 1_234_567_890_123_456, at: time.Unix(98, 0), key: "a:b:c", id: "100 % & ä+\n"},
		{unit: "n", token: 10, at: time.Unix(-10, 0), key: "k", id: strings.Repeat(":", maxID)},
	} {
		read, err := parseRef(r.String())
		require.NoError(t, err, "%v", r)
		require.Equal(t, r, read)
	}
}

func TestWhatIsNoRefIsRefused(t *testing.T) {
	const good = "unit:n:17:1:id:k"
	_, err := parseRef(good)
	require.NoError(t, err)
	for name, s := range map[string]string{
		"nothing": "", "an ID": "n:17:1:id:k", "no unit": "unit::17:1:id:k", "no key": "unit:n:17:1:id:", "too short": "unit:n:17:1:k",
		"a token that is no number": "unit:n:x:1:id:k", "a token of zero": "unit:n:0:1:id:k", "a token too high": "unit:n:9007199254740992:1:id:k",
		"a time that is none": "unit:n:17:y:id:k", "an ID that is none": "unit:n:17:1:%zz:k", "an ID that is no text": "unit:n:17:1:%ff:k",
		"an ID too long": "unit:n:17:1:" + strings.Repeat("i", maxID+1) + ":k", "an ID that is a ref": "unit:n:17:1:unit%3Ax:k", "a bad key": "unit:n:17:1:id:a//b",
	} {
		r, err := parseRef(s)
		var refused *IDError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, s, refused.ID, name)
		require.Zero(t, r, name)
	}
}

// What is known of a unit, by the record of its ID and the word of its lock row.
func TestOutcomeOf(t *testing.T) {
	const none, ours, others = "none", "ours", "another's"
	records := map[string]*journal.IDRecord{ours: {Unit: "me"}, others: {Unit: "other"}}
	for _, of := range []string{none, ours, others} {
		for _, fate := range []lockrow.Fate{lockrow.FateUnknown, lockrow.FateHeld, lockrow.FateCommitted, lockrow.FateNever} {
			for _, expired := range []bool{false, true} {
				for _, id := range []string{"", "p"} {
					want := Forgotten
					switch {
					case of == ours, fate == lockrow.FateCommitted:
						want = Committed
					case fate == lockrow.FateNever:
						want = NotCommitted
					case of == others && !expired:
						want = NotCommitted
					case fate == lockrow.FateHeld:
						want = Undecided
					case id == "p" && !expired: // nobody has committed under it
						want = NotCommitted
					}
					got := outcomeOf(ref{unit: "me", id: id}, records[of], fate, expired)
					require.Equal(t, want, got, "record %s, %v, expired %v, id %q", of, fate, expired, id)
				}
			}
		}
	}
	require.Equal(t, "undecided, committed, not committed, forgotten", fmt.Sprintf("%v, %v, %v, %v", Undecided, Committed, NotCommitted, Forgotten))
}
