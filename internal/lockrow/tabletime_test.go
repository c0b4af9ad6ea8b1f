package lockrow

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// tableNow is a time by the table's clock that has nothing to do with that of the process.
var tableNow = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

func TestJudgeByTheTablesClock(t *testing.T) {
	// The holder's lease is 10 s: by the table's clock it is dead after 50 s.
	renewed := func(before time.Duration) Row {
		return with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(-before) })
	}
	// Free for its queue; for a process that looks once the time is 2 × 3 s + 2 s.
	since := func(r Row, before time.Duration) Row {
		return with(r, func(r *Row) { r.TurnAt = tableNow.Add(-before) })
	}
	second, third := queued(freeRow, other, me), queued(freeRow, other, "them", me)
	unknown := Now{}
	exactly := Now{Low: tableNow, High: tableNow}
	for _, c := range []struct {
		name    string
		row     Row
		want    Want
		seen    time.Duration // for how long this process has seen it so
		table   Now
		verdict Verdict
		left    time.Duration
		turn    Turn
	}{
		{"a holder renewed just now", renewed(0), exclusive, 0, exactly, Await, 10 * time.Second, Turn{}},
		{"one nanosecond before two leases and 30 s", renewed(50*time.Second - 1), exclusive, 0, exactly, Await, 1, Turn{}},
		{"two leases and 30 s later", renewed(50 * time.Second), exclusive, 0, exactly, Bury, 0, Turn{}},
		{"the same, as late as can be", renewed(50 * time.Second), exclusive, 0, Now{Low: tableNow.Add(-time.Second), High: tableNow}, Await, time.Second, Turn{}},
		{"the same, with a journal", with(renewed(50*time.Second), func(r *Row) { r.Prepared = "units" }), exclusive, 0, exactly, Recover, 0, Turn{}},
		{"the same, the time is not known", renewed(50 * time.Second), exclusive, 0, unknown, Await, 10 * time.Second, Turn{}},
		{"it renews in the future, within what headers differ by", renewed(-30 * time.Second), exclusive, 0, exactly, Await, 10 * time.Second, Turn{}},
		{"a lease that was watched is enough", renewed(0), exclusive, 10 * time.Second, exactly, Bury, 0, Turn{}},

		{"the head's turn begins", since(second, 0), exclusive, 0, exactly, Await, time.Second, Turn{}},
		{"seen free for almost so long", since(second, 0), exclusive, time.Second - 1, exactly, Await, 1, Turn{}},
		{"seen free for so long", since(second, 0), exclusive, time.Second, exactly, Admits, 0, Turn{true, tableNow, 1}},
		{"the same, another place behind", since(third, 0), exclusive, time.Second, exactly, Await, time.Second / 2, Turn{}},
		{"for longer, another place behind", since(third, 0), exclusive, time.Second * 3 / 2, exactly, Admits, 0, Turn{true, tableNow, 2}},
		{"the same, the time is not known", since(third, 0), exclusive, time.Second * 3 / 2, unknown, Admits, 0, Turn{true, tableNow, 2}},
		{"the same, and the fence is newer", with(since(third, 0), func(r *Row) { r.Fence = 51 }), exclusive, time.Second * 3 / 2, exactly, Raise, 0, Turn{true, tableNow, 2}},
		{"the same, without a place", since(queued(freeRow, other, "them"), 0), exclusive, time.Second * 3 / 2, exactly, Admits, 0, Turn{false, tableNow, 2}},
		{"free for almost two Grace and 2 s", since(third, 8*time.Second-1), exclusive, 0, exactly, Await, 1, Turn{}},
		{"free for two Grace and 2 s", since(third, 8*time.Second), exclusive, 0, exactly, Admits, 0, Turn{true, tableNow.Add(-8 * time.Second), 2}},
		{"the same, for an intent", since(third, 8*time.Second), intent, 0, exactly, Admits, 0, Turn{true, tableNow.Add(-8 * time.Second), 2}},
		{"the same, but there are intents below", with(since(third, time.Hour), func(r *Row) { r.Below = []Entry{{"them", "a/b"}} }), intent, 0, exactly, Witnesses, 0, Turn{}},
		{"the head itself", since(queued(freeRow, me, other), time.Hour), exclusive, time.Hour, exactly, Admits, 0, Turn{Queued: true}},
		{"nobody waits", since(freeRow, time.Hour), exclusive, time.Hour, exactly, Admits, 0, Turn{}},
		{"free since the future", since(third, -31*time.Second), exclusive, time.Second, exactly, Await, 2 * time.Second, Turn{}},
		{"the same for all of Grace", since(third, -31*time.Second), exclusive, 3 * time.Second, exactly, Pass, 0, Turn{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := Watch{Since: t0.Add(-c.seen), Now: t0, Table: c.table, Patience: patience}
			j := Judge(c.row, c.want, 51, at)
			require.Equal(t, c.verdict, j.Verdict)
			require.Equal(t, c.turn, j.Turn)
			if c.verdict == Await {
				require.Equal(t, c.left, j.Until.Sub(t0))
			}
		})
	}
}

// A row says since when it is free as of the earliest moment at which anyone could have freed it.
func TestSinceWhenADeadHoldersRowIsFree(t *testing.T) {
	held := with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(-time.Hour) })
	now := Now{Low: tableNow.Add(-time.Second), High: tableNow}
	require.Equal(t, Number(tableNow.Add(50*time.Second-time.Hour).UnixNano()), held.Freed(now))
	held.RenewedAt = tableNow.Add(-49 * time.Second)
	require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), held.Freed(now), "watched, it was found dead sooner")
	held.RenewedAt = time.Time{}
	require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), held.Freed(now))
	require.Equal(t, Number(0), held.Freed(Now{}))
}

func TestRowsAreDated(t *testing.T) {
	table, now := Table{Name: "locks", HashKey: "key"}, Now{Low: tableNow.Add(-time.Minute), High: tableNow}
	waits := with(queued(freeRow, other), func(r *Row) { r.Exists = true })
	for name, c := range map[string]struct {
		row   Row
		now   Now
		dates string
	}{
		"a holder that does not say when it renewed": {heldRow, now, AttrRenewed},
		"the same, the time is not known":            {heldRow, Now{}, ""},
		"a holder that says so":                      {with(heldRow, func(r *Row) { r.RenewedAt = tableNow }), now, ""},
		"a holder of the future":                     {with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(31 * time.Second) }), now, AttrRenewed},
		"a queue that does not say since when":       {waits, now, AttrTurn},
		"a queue that says so":                       {with(waits, func(r *Row) { r.TurnAt = tableNow }), now, ""},
		"nobody waits":                               {freeRow, now, ""},
		"intents below":                              {with(waits, func(r *Row) { r.Below = []Entry{{"them", "a/b"}} }), now, ""},
	} {
		write := table.Date(c.row, c.now)
		if c.dates == "" {
			require.Nil(t, write, name)
			continue
		}
		require.NotNil(t, write, name)
		require.Equal(t, "SET #"+c.dates+" = :now", aws.ToString(write.UpdateExpression), name)
		require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), write.ExpressionAttributeValues[":now"], name)
	}
}

func TestATimeThatMakesNoSenseIsNotKnown(t *testing.T) {
	for _, v := range []types.AttributeValue{
		nil, Text("1"), Number(0), Number(-1), Text(""),
		&types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberN{Value: "1e99"},
	} {
		require.Zero(t, tableTime(map[string]types.AttributeValue{AttrTurn: v}, AttrTurn))
	}
	require.Equal(t, tableNow, tableTime(map[string]types.AttributeValue{AttrTurn: Number(tableNow.UnixNano())}, AttrTurn).UTC())
}
