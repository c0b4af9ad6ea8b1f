package unitofwork

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

type values = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// A dead unit that has decided nothing is aborted, whoever asks and how often: a row that
// it may mark yet, which no journal names, is freed by who waits for it.
func TestAUnitWithoutADecisionIsAborted(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	lock, cfg := lockset.Config{Table: "locks"}, Config{Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, lock))
	require.NoError(t, CreateTable(t.Context(), db, cfg))
	locks, err := lockset.New(db, lock)
	require.NoError(t, err)
	c, err := New(locks, cfg)
	require.NoError(t, err)
	for range 2 {
		aborted, err := c.recoverDead(t.Context(), "AAAAAAAAAAAAAAAAAAAAAA")
		require.NoError(t, err)
		require.True(t, aborted)
	}
}

// A goroutine that its function did not wait for stages a write whose key is not held, when
// the function has returned and the unit is about to commit: it does not.
func TestAWriteIsFoundWhenItsFunctionHasReturned(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	locks := lockset.Config{Table: "locks"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, locks))
	require.NoError(t, lockset.CreateTable(t.Context(), db, lockset.Config{Table: "accounts", HashKey: "ID"}))
	c, err := Open(db, Config{Locks: locks})
	require.NoError(t, err)
	type account struct{ ID string }
	accounts := Table[account]{Name: "accounts", PartitionKey: "ID", Guard: func(x *account) ordering.Key { return ordering.Key(x.ID) }}

	r := newRuns(Work{Keys: []ordering.Key{"a"}})
	r.finding = true
	u, err := c.begin(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, u.verdict(nil))
	require.NoError(t, u.Replace(accounts.Of(account{"a"}), accounts.Of(account{"b"})))
	var void *voidError
	require.ErrorAs(t, u.commit(t.Context()), &void)
	require.Equal(t, []ordering.Key{"b"}, void.keys)
	require.Empty(t, db.Items("accounts"))
}

// A unit that somebody was in the way of is tried again without locks, but not for ever, not if
// that takes long, and not when it is to wait no longer.
func TestWhoIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			work Work
			void voidError
			want int
		}{
			"somebody was in the way":  {Work{}, voidError{met: true, took: longRun - 1}, mostRetried},
			"nobody was":               {Work{}, voidError{}, 0},
			"it took long":             {Work{}, voidError{met: true, took: longRun}, 0},
			"there is time":            {Work{Wait: lockset.For(time.Hour)}, voidError{met: true}, mostRetried},
			"it is to wait for nobody": {Work{Wait: lockset.For(0)}, voidError{met: true}, 0},
		} {
			r := newRuns(c.work)
			r.locked = false
			for n := range mostRetried + 2 {
				require.NoError(t, r.again(&c.void))
				require.Equal(t, n >= c.want, r.locked, "%s, %d", name, n)
			}
		}
	})
}

// Pauses are anything between nothing and twice what they are on average, so that those who have
// met do not meet again; and shorter for those who have lost more often.
func TestPausesBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		for retried := 1; retried <= mostRetried; retried++ {
			var sum, most time.Duration
			least := time.Hour
			for i := range n {
				r := newRuns(Work{})
				r.retried = retried
				d := r.pause(fmt.Sprint("unit", i), 10*time.Millisecond)
				sum, least, most = sum+d, min(least, d), max(most, d)
			}
			average := time.Duration(5-retried) * 10 * time.Millisecond
			require.InDelta(t, average, sum/n, float64(average)/20)
			require.Less(t, least, average/20)
			require.Less(t, most, 2*average)
			require.Greater(t, most, 39*average/20)
		}
		r := newRuns(Work{Wait: lockset.For(time.Millisecond)})
		for i := range 100 {
			require.LessOrEqual(t, r.pause(fmt.Sprint("unit", i), time.Second), time.Millisecond)
		}
	})
}

// A group may have no time left for a member before that has noticed that it is its turn.
func TestAMemberThatIsLeftOutBeforeItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &Unit{optimistic: &optimistic{}}
		f := &follower{u: u, changed: make(chan struct{}, 1), over: make(chan struct{})}
		g := &group{lead: &Unit{nonce: "lead"}}
		require.True(t, f.take(g) && f.start(g) && f.goAway())
		require.True(t, f.await(t.Context()))
		require.True(t, u.follows())
	})
}

// Of each table with several puts one key is rehearsed, and none of it twice in one
// transaction; of a table with a single put none, for nothing else could be its record.
func TestWhichKeysAreRehearsed(t *testing.T) {
	put := func(table, id string, more values) write {
		item := values{"ID": textValue(id)}
		for name, v := range more {
			item[name] = v
		}
		return write{table: table, record: id, key: values{"ID": textValue(id)}, item: types.TransactWriteItem{
			Put: &types.Put{TableName: aws.String(table), Item: item},
		}}
	}
	update := write{table: "a", record: "u", key: values{"ID": textValue("u")}, item: types.TransactWriteItem{
		Update: &types.Update{TableName: aws.String("a"), Key: values{"ID": textValue("u")}},
	}}
	del := func(id string, key values) write {
		return write{table: "a", record: id, key: key, item: types.TransactWriteItem{
			Delete: &types.Delete{TableName: aws.String("a"), Key: key},
		}}
	}
	check := write{table: "a", record: "c", key: values{"ID": textValue("c")}, item: types.TransactWriteItem{
		ConditionCheck: &types.ConditionCheck{TableName: aws.String("a"), Key: values{"ID": textValue("c")}},
	}}
	d1, d2 := del("1", values{"ID": textValue("1")}), del("2", values{"ID": textValue("2")})
	other := values{"N": journal.Number(1)}
	strange := values{"N": &types.AttributeValueMemberN{Value: "1e3"}}
	for name, c := range map[string]struct {
		writes         []write
		examples, keys []string // by record
		apart          []string
	}{
		"nothing":                      {nil, nil, nil, nil},
		"one put":                      {[]write{put("a", "1", nil)}, []string{"1"}, nil, nil},
		"one put, and an update":       {[]write{put("a", "1", nil), update}, []string{"1", "u"}, nil, nil},
		"two that are alike":           {[]write{put("a", "1", nil), put("a", "2", nil)}, []string{"1"}, []string{"2"}, nil},
		"three that are alike":         {[]write{put("a", "1", nil), put("a", "2", nil), put("a", "3", nil)}, []string{"1"}, []string{"2"}, nil},
		"two that are not":             {[]write{put("a", "1", nil), put("a", "2", other)}, []string{"1", "2"}, nil, []string{"2"}},
		"two that are not, and a like": {[]write{put("a", "1", nil), put("a", "2", other), put("a", "3", other)}, []string{"1", "2"}, []string{"3"}, nil},
		"one in each of two tables":    {[]write{put("a", "1", nil), put("b", "2", nil)}, []string{"1", "2"}, nil, nil},
		"two in one, one in another":   {[]write{put("a", "1", nil), put("a", "2", other), put("b", "3", nil)}, []string{"1", "2", "3"}, nil, []string{"2"}},
		"three alike, and one that is not": {
			[]write{put("a", "1", nil), put("a", "2", nil), put("a", "3", other), put("a", "4", other)}, []string{"1", "3"}, []string{"2"}, nil},
		"two of whose values nobody knows": {[]write{put("a", "1", strange), put("a", "2", strange)}, []string{"1", "2"}, nil, []string{"2"}},
		"deletes that are alike":           {[]write{d1, d2}, []string{"1"}, nil, nil},
		"deletes that are not":             {[]write{d1, del("n", values{"ID": journal.Number(1)})}, []string{"1", "n"}, nil, nil},
		"a delete like a put":              {[]write{put("a", "1", nil), d2}, []string{"1", "2"}, nil, nil},
		"updates that look alike":          {[]write{update, update}, []string{"u", "u"}, nil, nil},
		"checks":                           {[]write{check, check}, nil, nil, nil},
		"a check between puts":             {[]write{put("a", "1", nil), check, put("a", "2", nil)}, []string{"1"}, []string{"2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			examples, apart := examplesOf(c.writes)
			var whole, keys, alone []string
			for _, w := range examples {
				if w.item.ConditionCheck != nil {
					keys = append(keys, w.record)
				} else {
					whole = append(whole, w.record)
				}
			}
			for _, w := range apart {
				require.NotNil(t, w.item.ConditionCheck)
				alone = append(alone, w.record)
			}
			require.Equal(t, c.examples, whole)
			require.Equal(t, c.keys, keys)
			require.Equal(t, c.apart, alone)
		})
	}
}

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

// FuzzConfig: whatever a configuration says, it is refused with the name of a field,
// or IDs are remembered for longer than clocks may be wrong.
func FuzzConfig(f *testing.F) {
	for _, d := range []int64{0, 1, -1, int64(20 * 24 * time.Hour), int64(28 * 24 * time.Hour), math.MaxInt64, math.MaxInt64/2 + 1, math.MinInt64} {
		f.Add("units", "", d, int64(0), 0)
		f.Add("locks", "_fence", d, d, 100)
		f.Add("", "a.b", int64(0), d, 101)
	}
	f.Fuzz(func(t *testing.T, table, fence string, ids, retention int64, size int) {
		shared, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks", Retention: time.Duration(retention)})
		if err != nil {
			require.ErrorAs(t, err, new(*locks.ConfigError))
			return
		}
		given := Config{Table: table, FenceAttribute: fence, IDRetention: time.Duration(ids), TransactionSize: size}
		c, err := New(shared, given)
		if err != nil {
			var config *locks.ConfigError
			require.ErrorAs(t, err, &config)
			require.NotEmpty(t, config.Field)
			return
		}
		require.NotEqual(t, "locks", c.cfg.Table)
		require.NotEmpty(t, c.cfg.FenceAttribute)
		require.True(t, c.cfg.TransactionSize >= 1 && c.cfg.TransactionSize <= requests.MaxActions)
		require.GreaterOrEqual(t, float64(c.cfg.IDRetention)*1.001, 2*float64(c.lockConfig.Retention), "%+v", given)
	})
}

// FuzzRef: any text is a reference that names a unit in one way, or an IDError.
func FuzzRef(f *testing.F) {
	f.Add("unit:aaaa:1700000000000000:1700000000:payment%2F7:a/b:c", "id")
	f.Add("unit::1:1::a", "unit:x")
	f.Add("unit:u:9007199254740993:-5:%zz:a", strings.Repeat("x", 1025))
	f.Add("unit:u:9007199254740993:-5::a", "")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, s, id string) {
		err := checkID(id)
		if err != nil {
			require.ErrorAs(t, err, new(*IDError))
		}
		r, refErr := parseRef(s)
		if refErr != nil {
			require.ErrorAs(t, refErr, new(*IDError))
			return
		}
		require.True(t, r.token.Valid() && r.unit != "")
		require.NoError(t, r.key.Validate())
		again, refErr := parseRef(r.String())
		require.NoError(t, refErr)
		require.Equal(t, r, again)
		if r.id = id; err == nil {
			again, refErr = parseRef(r.String())
			require.NoError(t, refErr)
			require.Equal(t, r, again)
		}
	})
}
