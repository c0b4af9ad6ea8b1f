package lockrow_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

// A commit without locks passes those who leave a row free for too long, if nobody has had it
// since it was looked at, and removes their places.
func TestPassingThoseWhoWait(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	at := time.Unix(0, 1_000_000_000_000)
	free := func(turn string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"key": text(string(row)), "isReleased": text("1"), "fence": number("5"), "recordVersionNumber": text("r"), "turnAt": number(turn),
			"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("one"), text("two")}},
		}
	}
	watch := lockrow.Watch{
		Now: at, Since: at, Table: lockrow.Now{Low: at.Add(time.Minute), High: at.Add(time.Minute)},
		Patience: lockrow.Patience{Turn: time.Second, Grace: time.Second},
	}
	for _, mode := range []lockrow.Mode{lockrow.Exclusive, lockrow.Intent} {
		same := map[lockrow.Mode]lockrow.Same{lockrow.Exclusive: lockrow.Fence, lockrow.Intent: lockrow.RVN}[mode]
		seen, reason := lockrow.Parse(row, free("1000000000000"))
		require.Empty(t, reason)
		need := lockrow.Need{Key: row, Mode: mode, Same: same, Seen: seen}
		require.False(t, need.Open(seen), "it is another's turn")
		seen = seen.WithTurn(watch)
		need.Seen = seen
		require.True(t, need.Open(seen))

		item, refused := pass(t, free("1000000000000"), need)
		require.False(t, refused)
		require.NotContains(t, item, "queue")
		_, refused = pass(t, free("1000000000001"), need)
		require.True(t, refused, "it was another's meanwhile")
	}
}
