package simulation

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/ordering"
)

// lockRows looks at every row of the lock table after every write to it: some
// promises of the tables hold at each moment, whoever writes what.
type lockRows struct {
	history *history
	plan    *Plan
	untaken time.Duration // for how long the living may leave a row free, at the most
	grace   time.Duration

	mu sync.Mutex // held while a row is read, so that rows are seen in the order of their writes
	of map[string]lockRow
}

// lockRow is what a row was when it was last written.
type lockRow struct {
	unit, rvn string
	fence     int64
	taken     int64 // the fence that the last taker left
	below     []string
	queue     []string
	alive     time.Time // when its unit's RVN was written
	bare      time.Time // since when it is free and bare; zero if it is not
	turn      time.Time // since when it says so
}

func (l *lockRows) written(db *memdynamo.DB, table *string, key map[string]types.AttributeValue) {
	if *table != lockTable {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := keyText(key)
	item := lookUp(db, name)
	if item == nil { // it has expired since
		return
	}
	before := l.of[name]
	now := asLockRow(item)
	var turns []string
	if slices.ContainsFunc(before.takers(now), l.history.isOperators) {
		turns = checkLeft(before, now)
	} else {
		turns = checkQueue(before, now, l.late(before))
	}
	for _, what := range append(checkRow(before, now, item), turns...) {
		l.history.problem("row %s: %s: %s", name, what, row(item))
	}
	now.taken, now.alive = before.taken, before.alive
	if now.unit != before.unit || now.rvn != before.rvn {
		now.alive = time.Now()
	}
	if now.unit != "" && now.unit != before.unit || len(now.below) > len(before.below) {
		now.taken = now.fence
	}
	if now.unit == "" && len(now.below) == 0 {
		if now.bare = before.bare; now.bare.IsZero() {
			now.bare = time.Now()
		}
	}
	l.of[name] = now
	for unit, waits := range now.units() {
		l.history.shown(name, unit, waits)
	}
}

// late reports whether those who wait for a row have left it free for too long: as somebody may
// have seen it, or as it says itself, where a dead holder was evicted long after it died. Where
// DynamoDB's hosts disagree about the time nobody's turn is promised.
func (l *lockRows) late(r lockRow) bool {
	if r.bare.IsZero() {
		return false
	}
	return l.plan.Dates > 0 || time.Since(r.bare) >= l.untaken || time.Since(r.turn) >= 2*l.grace
}

// lookUp returns a row of the lock table as it stands.
func lookUp(db *memdynamo.DB, key string) map[string]types.AttributeValue {
	out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String(lockTable), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}},
	})
	must(err)
	return out.Item
}

func asLockRow(item map[string]types.AttributeValue) (r lockRow) {
	if v, ok := item["unit"].(*types.AttributeValueMemberS); ok {
		r.unit = v.Value
	}
	if v, ok := item["recordVersionNumber"].(*types.AttributeValueMemberS); ok {
		r.rvn = v.Value
	}
	if v, ok := item["fence"].(*types.AttributeValueMemberN); ok {
		r.fence, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	if v, ok := item["turnAt"].(*types.AttributeValueMemberN); ok {
		ns, _ := strconv.ParseInt(v.Value, 10, 64)
		r.turn = time.Unix(0, ns)
	}
	if v, ok := item["below"].(*types.AttributeValueMemberSS); ok {
		r.below = v.Value
	}
	if v, ok := item["queue"].(*types.AttributeValueMemberL); ok {
		for _, place := range v.Value {
			unit, _, _ := strings.Cut(text(place), " ")
			r.queue = append(r.queue, unit)
		}
	}
	return r
}

// units yields those that a row shows, and whether they wait in its queue: else one is its
// holder, or has an intent on it. Who is there twice is yielded twice.
func (r lockRow) units() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		if r.unit != "" && !yield(r.unit, false) {
			return
		}
		for _, entry := range r.below {
			if unit, _, _ := strings.Cut(entry, " "); !yield(unit, false) {
				return
			}
		}
		for _, unit := range r.queue {
			if !yield(unit, true) {
				return
			}
		}
	}
}

// checkRow returns what is wrong with a row, which was before.
func checkRow(before, now lockRow, item map[string]types.AttributeValue) (wrong []string) {
	_, free := item["isReleased"]
	_, expires := item["expiresAt"].(*types.AttributeValueMemberN) // TTL ignores what is not a number
	_, lasting := item["pendingBelow"]
	_, pending := item["pending"]
	for _, check := range []struct {
		broken bool
		what   string
	}{
		{now.fence <= 0, "it has no fence"},
		{now.fence < before.fence, "its fence has fallen from " + strconv.FormatInt(before.fence, 10)},
		{(now.unit == "") != free, "it is held and free, or neither"},
		{now.unit != "" && now.unit == before.unit && now.rvn < before.rvn, "the unit's RVN has fallen from " + before.rvn},
		{now.unit != "" && len(now.below) > 0, "it is held and has intents"},
		{len(now.below) > 64, "it has more than 64 intents"},
		{now.unit != "" && !expires && !pending, "it is held and never expires"},
		{expires && lasting, "it has an intent of a unit with a journal and expires"},
		{lasting && len(now.below) == 0, "it has an intent of a unit with a journal and none"},
		{expires && pending, "it waits for a journal and expires"},
		{now.unit == "" && pending, "it is free and waits for a journal"},
	} {
		if check.broken {
			wrong = append(wrong, check.what)
		}
	}
	return wrong
}

// alive returns when a unit's sign of life on a row was last written; false if
// the row is not the unit's.
func (l *lockRows) alive(key ordering.Key, unit string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of[string(key)]
	return r.alive, r.unit == unit
}

// expire deletes what has expired. The fence that the last taker left is not
// forgotten: the next one must be higher all the same. Nobody may be in use of a
// row that goes.
func (l *lockRows) expire(db *memdynamo.DB) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := db.Expire(time.Now())
	if n == 0 {
		return 0
	}
	left := map[string]bool{}
	for _, item := range db.Items(lockTable) {
		left[text(item["key"])] = true
	}
	for name, was := range l.of {
		if left[name] {
			continue
		}
		for unit := range was.units() {
			l.history.expired(name, unit)
		}
		l.of[name] = lockRow{fence: was.taken, taken: was.taken}
	}
	return n
}
