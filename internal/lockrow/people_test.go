package lockrow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNotesAreForPeopleAndMakeNoRowAnother(t *testing.T) {
	held := heldItem(item{"acquiredAt": Number(1700000000123), "expiresAt": Number(1700000000)})
	require.Equal(t, Notes{Owner: "host", AcquiredAt: time.UnixMilli(1700000000123), ExpiresAt: time.Unix(1700000000, 0)}, NotesOf(held))

	free := item{"isReleased": Text("1"), "fence": Number(7), "ownerName": Text("who had it last")}
	require.Equal(t, Notes{Owner: "who had it last"}, NotesOf(free))
	require.Equal(t, Notes{}, NotesOf(nil))

	for _, wrong := range []item{
		{"acquiredAt": Text("yesterday"), "expiresAt": Text("never")},
		{"acquiredAt": Number(-1), "expiresAt": Number(-1)},
		{"acquiredAt": Number(latestNoted + 1), "expiresAt": Number(latestNoted/1000 + 1)},
		{"acquiredAt": nil, "expiresAt": nil},
	} {
		row := heldItem(wrong)
		require.Equal(t, Notes{Owner: "host"}, NotesOf(row))
		_, reason := Parse("a", row)
		require.Empty(t, reason)
	}
	_, err := NotesOf(heldItem(item{"acquiredAt": Number(latestNoted), "expiresAt": Number(latestNoted / 1000)})).ExpiresAt.UTC().MarshalText()
	require.NoError(t, err)
}

func TestTheCommitStampIsTold(t *testing.T) {
	r, reason := Parse("a", heldItem(item{"committedBy": Text(me)}))
	require.Empty(t, reason)
	require.Equal(t, me, r.CommittedBy())
}
