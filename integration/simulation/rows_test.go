package simulation

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

func TestTheChecksOfRowsNotice(t *testing.T) {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	held := map[string]types.AttributeValue{
		"key": s("f0"), "unit": s("u"), "recordVersionNumber": s("u.h2"), "fence": n("7"), "expiresAt": n("9"),
	}
	before := lockRow{unit: "u", rvn: "u.h1", fence: 7}
	require.Empty(t, checkRow(before, asLockRow(held), held))
	many := &types.AttributeValueMemberSS{}
	for i := range 65 {
		many.Value = append(many.Value, fmt.Sprintf("u%d 1", i))
	}
	for want, change := range map[string]map[string]types.AttributeValue{
		"no fence":               {"fence": nil},
		"fallen from 7":          {"fence": n("6")},
		"held and free":          {"isReleased": s("1")},
		"or neither":             {"unit": nil},
		"RVN has fallen":         {"recordVersionNumber": s("u.a1")},
		"held and has intents":   {"below": &types.AttributeValueMemberSS{Value: []string{"v 1"}}},
		"more than 64":           {"unit": nil, "isReleased": s("1"), "below": many},
		"held and never expires": {"expiresAt": nil},
		"journal and expires":    {"unit": nil, "isReleased": s("1"), "pendingBelow": many, "below": many},
		"journal and none":       {"pendingBelow": many},
	} {
		item := maps.Clone(held)
		for name, v := range change {
			if item[name] = v; v == nil {
				delete(item, name)
			}
		}
		require.Contains(t, strings.Join(checkRow(before, asLockRow(item), item), "; "), want)
	}
}

// A row shows a unit that was at its end: a ghost. Who is dead, or said that it
// could not undo what it did, is none.
func TestTheChecksOfEndsNotice(t *testing.T) { synctest.Test(t, endsAreNoticed) }

func endsAreNoticed(t *testing.T) {
	plan := NewPlan(1)
	w := newWorld(Settings{}, &plan)
	p := w.offline("a.1")
	for _, c := range []struct {
		unit    string
		how     func(*history)
		problem string
	}{
		{"at work", func(*history) {}, ""},
		{"ended", func(h *history) { h.ended("ended") }, "was at its end"},
		{"loose", func(h *history) { h.loose("loose"); h.ended("loose") }, ""},
	} {
		w.history.born(c.unit, p)
		c.how(&w.history)
		w.history.problems = nil
		w.history.shown("f0", c.unit, false)
		require.Equal(t, c.problem != "", len(w.history.problems) > 0, "%s: %q", c.unit, w.history.problems)
	}
	// A join with headroom may come late, and leave a place; it leaves no lock, and a join
	// without leaves neither.
	for name, c := range map[string]struct {
		join     int64
		mode     lockrow.Mode
		waits    bool
		problems int
	}{
		"headroom": {100, lockrow.Exclusive, true, 0}, "headroom, for a key below": {100, lockrow.Intent, true, 0},
		"headroom, with a lock": {100, lockrow.Exclusive, false, 1}, "none": {50, lockrow.Exclusive, true, 1}, "none, for a key below": {50, lockrow.Intent, true, 1},
	} {
		unit := strings.ReplaceAll(name, " ", "-")
		w.history.born(unit, p)
		join := lockrow.Want{Key: "f0", Mode: c.mode, Entry: lockrow.Entry{Unit: unit, Witness: "f0/1"}}
		asks(w, simulatedLocks.Join(join, lockrow.Row{}, valuesOf(unit, c.join)), faults.Pass())
		asks(w, simulatedLocks.Update("f0", lockrow.RestampKeyIf, lockrow.Stamp, valuesOf(unit, 50)), faults.Pass())
		w.history.ended(unit)
		w.history.problems = nil
		w.history.shown("f0", unit, c.waits)
		require.Len(t, w.history.problems, c.problems, name)
	}
	w.history.born("leaves", p)
	w.history.leaves("leaves")
	w.history.ended("leaves")
	for _, c := range []struct {
		after    time.Duration
		waits    bool
		problems int
	}{{0, true, 0}, {0, false, 1}, {4*p.h.lease - 1, true, 0}, {1, true, 1}} {
		time.Sleep(c.after)
		w.history.problems = nil
		w.history.shown("f0", "leaves", c.waits)
		require.Len(t, w.history.problems, c.problems, "%v later", c.after)
	}
	w.history.problems = nil
	w.history.left("f0", "at work", false)
	require.Len(t, w.history.problems, 1, "nobody is at work any more")
	p.net.Crash()
	w.history.left("f0", "at work", false)
	require.Len(t, w.history.problems, 1, "the dead leave what they had")
}

var simulatedLocks = lockrow.Table{Name: "locks", HashKey: "key"}

func valuesOf(unit string, token int64) lockrow.Values {
	return lockrow.UnitValues(unit, lockrow.WaiterOf(unit, "a", ""), fencing.Token(token), time.Now(), time.Now(), time.Now(), lockrow.Now{})
}

// asks notes that a unit asked for an update, and what befell it.
func asks(w *world, update *types.Update, f faults.Fault) {
	in := &dynamodb.UpdateItemInput{Key: update.Key, UpdateExpression: update.UpdateExpression, ExpressionAttributeValues: update.ExpressionAttributeValues}
	w.history.asks(faults.Call{Input: in}, f)
}

// A copy of what was refused may take rows for a unit that asked for no place and heard every answer.
func TestTheChecksOfEndsKnowCopies(t *testing.T) { synctest.Test(t, copiesAreKnown) }

func copiesAreKnown(t *testing.T) {
	plan := NewPlan(1)
	w := newWorld(Settings{}, &plan)
	p := w.offline("a.1")
	place := simulatedLocks.Join(lockrow.Want{Key: "f0", Mode: lockrow.Exclusive}, lockrow.Row{}, valuesOf("doubled", 40))
	chunk := func(key ordering.Key) *types.Update {
		return simulatedLocks.Acquire(lockrow.Want{Key: key, Entry: lockrow.Entry{Unit: "doubled", Witness: key}}, valuesOf("doubled", 50).With(lockrow.Values{
			":owner": lockrow.Text("o"), ":lease": lockrow.Text("1"), ":rvn": lockrow.Text("r"),
		}))
	}
	take, release := chunk("f0"), simulatedLocks.Update("f0", lockrow.RestampKeyIf, lockrow.Stamp, valuesOf("doubled", 50))
	for _, c := range []struct {
		name     string
		how      func()
		problems int
	}{
		{"not doubled", func() { asks(w, take, faults.Pass()) }, 1},
		{"doubled", func() { asks(w, take, faults.Duplicate(time.Second)); asks(w, take, faults.Conflict()) }, 0},
		{"doubled, and released without an answer", func() { asks(w, take, faults.Duplicate(time.Second)); asks(w, release, faults.LoseAnswer(faults.Hang)) }, 0},
		{"only another write doubled", func() { asks(w, take, faults.Pass()); asks(w, release, faults.Duplicate(time.Second)) }, 1},
		{"doubled, another without an answer", func() { asks(w, take, faults.Duplicate(time.Second)); asks(w, take, faults.LoseAnswer(faults.Hang)) }, 1},
		{"doubled, after a chunk without an answer", func() {
			asks(w, chunk("f0"), faults.LoseAnswer(faults.Hang))
			asks(w, chunk("f1"), faults.Duplicate(time.Second))
		}, 0},
		{"doubled, and then the chunk was had", func() { asks(w, chunk("f0"), faults.Duplicate(time.Second)); asks(w, chunk("f1"), faults.Pass()) }, 1},
		{"doubled, after a chunk that it waited for", func() {
			asks(w, chunk("f0"), faults.Pass())
			asks(w, place, faults.Pass())
			asks(w, chunk("f1"), faults.Duplicate(time.Second))
		}, 0},
		{"doubled, and asked for a place", func() { asks(w, take, faults.Duplicate(time.Second)); asks(w, place, faults.Pass()) }, 1},
		{"doubled, and had its keys", func() { asks(w, take, faults.Duplicate(time.Second)); w.history.acquired("doubled", 50) }, 1},
	} {
		w.history.born("doubled", p)
		c.how()
		w.history.ended("doubled")
		w.history.problems = nil
		w.history.shown("f0", "doubled", false)
		require.Len(t, w.history.problems, c.problems, c.name)
	}
}

// offline is a process that does nothing.
func (w *world) offline(name string) *process {
	h := &host{w: w, name: name, lease: w.plan.Lease}
	return h.boot(name, w.befalls)
}

// Who waits in a queue, and has an intent on the row as well, is checked for both.
func TestARowShowsWhoWaitsApartFromWhoHasIt(t *testing.T) {
	type shown struct {
		unit  string
		waits bool
	}
	var all []shown
	for unit, waits := range (lockRow{unit: "holder", below: []string{"twice /x"}, queue: []string{"twice", "waiting"}}).units() {
		all = append(all, shown{unit, waits})
	}
	require.Equal(t, []shown{{"holder", false}, {"twice", false}, {"twice", true}, {"waiting", true}}, all)
}

func TestKeysAreCompared(t *testing.T) {
	keys := func(all ...ordering.Key) []ordering.Key { return all }
	require.Empty(t, compareKeys(keys("f0/1", "f0", "f0", "f1/2"), keys("f0", "f1/2"), false))
	require.NotEmpty(t, compareKeys(keys("f0", "f1"), keys("f0"), false))
	require.NotEmpty(t, compareKeys(keys("f0"), keys("f0", "f1"), false))
	require.NotEmpty(t, compareKeys(keys("f01"), keys("f0"), false))
	require.Empty(t, compareKeys(keys("f0", "f1"), keys("f0/1/2", "f0/2"), true), "of keys that are found some")
	require.NotEmpty(t, compareKeys(keys("f0/1"), keys("f0"), true))
}
