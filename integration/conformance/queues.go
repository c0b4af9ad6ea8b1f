package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// turnCases: nobody takes a row past the head of its queue, and the head leaves
// the queue in the write that takes the row.
func turnCases() []expression {
	queued := func(units ...string) item { return with(released, item{"queue": list(units...)}) }
	below := func(row item) item {
		return with(row, item{"fence": number(token), "below": set("me address:7"), "expiresAt": number(expires)})
	}
	busy := with(carrier, item{"below": set("other address:9")})
	return []expression{
		{"take past another", queued("other", "me"), acquire, nil},
		{"take past our own place", queued("me"), acquire, nil},
		{"take beside an emptied queue", queued(), acquire, with(retaken, item{"queue": list()})},
		{"take as the head", queued("me", "other"), acquireHead, with(retaken, item{"queue": list("other")})},
		{"take as the only one", queued("me"), acquireHead, with(retaken, item{"queue": list()})},
		{"take as the head, behind another", queued("other", "me"), acquireHead, nil},
		{"take as the head, from an emptied queue", queued(), acquireHead, nil},
		{"take as the head, without a queue", released, acquireHead, nil},
		{"take as the head, without a row", nil, acquireHead, nil},
		{"take as the head what is held", with(held, item{"queue": list("me")}), acquireHead, nil},
		{"take as the head over intents", with(busy, item{"queue": list("me")}), acquireHead, nil},
		{"take as the head with an old token", with(queued("me"), item{"fence": number(token)}), acquireHead, nil},

		{"intend past another", queued("other"), intent, nil},
		{"intend past another, beside intents", with(busy, item{"queue": list("other")}), intent, nil},
		{"intend past our own place", queued("me"), intent, nil},
		{"intend beside an emptied queue", queued(), intent, below(queued())},
		{"intend as the head", queued("me", "other"), intentHead, below(queued("other"))},
		{"intend as the only one", queued("me"), intentHead, below(queued())},
		{"intend as the head, beside intents", with(busy, item{"queue": list("me", "other")}), intentHead,
			with(carrier, item{"fence": number(token), "queue": list("other"), "expiresAt": number(expires)})},
		{"intend as the head, behind another", queued("other", "me"), intentHead, nil},
		{"intend as the head, without a queue", released, intentHead, nil},
		{"intend as the head, without a row", nil, intentHead, nil},
	}
}

func queueCases() []expression {
	waiting := func(units ...string) item { return with(held, item{"queue": list(units...)}) }
	takeable := func(units ...string) item { return with(released, item{"queue": list(units...)}) }
	return []expression{
		{"join the first", held, join, waiting("me")},
		{"join an emptied queue", waiting(), join, waiting("me")},
		{"join behind", waiting("a", "b"), join, waiting("a", "b", "me")},
		{"join below intents", carrier, join, with(carrier, item{"queue": list("me")})},
		{"join the queue of a row of our own", ours, join, nil},
		{"join where our own intent is", carrier, joinForIntent, nil},
		{"join where there are no intents", held, joinForIntent, waiting("me")},
		{"join twice", waiting("a", "me"), join, nil},
		// contains on a list asks for an element: "me" is a part of "someone".
		{"join beside a longer name", waiting("someone"), join, waiting("someone", "me")},
		{"join the last place", waiting(names("u", 63)...), join, waiting(append(names("u", 63), "me")...)},
		{"join a full queue", waiting(names("u", 64)...), join, nil},
		{"join where the fence is newer", with(held, item{"fence": number(token)}), join, nil},
		{"join where there is no row", nil, join, nil},
		{"leave the head", waiting("me", "a"), leaveFirst, waiting("a")},
		{"leave as the only one", waiting("me"), leaveFirst, waiting()},
		{"leave from the middle", waiting("a", "me", "b"), leaveSecond, waiting("a", "b")},
		{"leave from further back", waiting("a", "b", "c", "me", "d", "e"), leaveFourth, waiting("a", "b", "c", "d", "e")},
		{"leave from the end", waiting("a", "b", "c", "me"), leaveFourth, waiting("a", "b", "c")},
		{"leave when the queue has moved", waiting("me", "b"), leaveSecond, nil},
		{"leave when the queue is shorter", waiting("a", "b", "me"), leaveFourth, nil},
		{"leave where there is no queue", held, leaveSecond, nil},
		{"leave where there is no row", nil, leaveSecond, nil},
		{"drop a dead head", takeable("other", "me"), dropHead, takeable("me")},
		{"drop the only one", takeable("other"), dropHead, takeable()},
		{"drop a head that moved on", takeable("me"), dropHead, nil},
		{"drop where the fence moved", with(takeable("other"), item{"fence": number(token)}), dropHead, nil},
		{"drop where there is no queue", released, dropHead, nil},
		{"drop where there is no row", nil, dropHead, nil},
	}
}

// testQueueClauses: what a clause about a queue says of a row without a queue, of
// an emptied one and of no row at all. Each stands alone here, so that a clause
// beside it cannot hide the answer.
func testQueueClauses(t *testing.T, w *world) {
	rows := []struct {
		name string
		row  item
	}{
		{"no row", nil},
		{"no queue", released},
		{"emptied", with(released, item{"queue": list()})},
		{"ours", with(released, item{"queue": list("me", "other")})},
		{"another's", with(released, item{"queue": list("other", "me")})},
		{"full", with(released, item{"queue": list(names("u", 64)...)})},
		// AWS compares what it finds: other types are not equal, and contain nothing.
		{"no list", with(released, item{"queue": number(7)})},
	}
	for _, c := range []struct {
		clause string
		holds  map[string]bool // on these rows
	}{
		{nobodyWaits, map[string]bool{"no row": true, "no queue": true, "emptied": true, "no list": true}},
		{weAreNext, map[string]bool{"ours": true}},
		{"contains(#queue, :waiter)", map[string]bool{"ours": true, "another's": true}},
		{"NOT contains(#queue, :waiter)", map[string]bool{"no row": true, "no queue": true, "emptied": true, "full": true, "no list": true}},
		{"size(#queue) < :places", map[string]bool{"emptied": true, "ours": true, "another's": true}},
		{"attribute_not_exists(#queue)", map[string]bool{"no row": true, "no queue": true}},
	} {
		for _, r := range rows {
			e := expression{c.clause + ": " + r.name, r.row, write{"SET #fence = :token", c.clause, nil}, nil}
			if c.holds[r.name] {
				e.after = with(r.row, item{"fence": number(token)})
			}
			w.tryEach(t, e)
		}
	}
	append1 := write{update: join.update}
	w.tryEach(t, []expression{
		{"append: no row", nil, append1, item{"queue": list("me")}},
		{"append: no queue", released, append1, with(released, item{"queue": list("me")})},
		{"append: emptied", with(released, item{"queue": list()}), append1, with(released, item{"queue": list("me")})},
		{"append: behind another", with(released, item{"queue": list("a")}), append1, with(released, item{"queue": list("a", "me")})},
	}...)
}

// testSeveralPlaces: one REMOVE takes several elements from a list, each by its position
// before the update.
func testSeveralPlaces(t *testing.T, w *world) {
	for _, c := range []struct {
		name, update  string
		after, inTurn []string // inTurn: on an engine that removes one after the other
	}{
		{"from the front", "REMOVE #queue[0], #queue[2]", []string{"b", "d", "e"}, []string{"b", "c", "e"}},
		{"neighbours from the front", "REMOVE #queue[1], #queue[2]", []string{"a", "d", "e"}, []string{"a", "c", "e"}},
		{"beyond what is left", "REMOVE #queue[0], #queue[4]", []string{"b", "c", "d"}, []string{"b", "c", "d", "e"}},
		{"from the end", "REMOVE #queue[2], #queue[1], #queue[0]", []string{"d", "e"}, []string{"d", "e"}},
		{"from the end, with others between", "REMOVE #queue[3], #queue[1]", []string{"a", "c", "e"}, []string{"a", "c", "e"}},
	} {
		units := c.after
		if w.differs(RemovesInTurn) {
			units = c.inTurn
		}
		w.tryEach(t, expression{
			c.name, with(released, item{"queue": list("a", "b", "c", "d", "e")}), write{update: c.update}, with(released, item{"queue": list(units...)}),
		})
	}
}

// as is a write of another unit than "me".
func (w write) as(unit string) write {
	w.values = with(w.values, item{":unit": text(unit), ":waiter": text(unit), ":place": list(unit), ":rvn": text("rvn-" + unit)})
	return w
}

// testQueues: a queue lives: it forms while the row is held, is served in order,
// is left from the middle, and every refusal shows how it stands.
func testQueues(t *testing.T, w *world) {
	key := item{"key": text(fresh(t))}
	do := func(what write) {
		t.Helper()
		_, err := w.UpdateItem(t.Context(), what.alone(w.locks, key))
		require.NoError(t, err)
	}
	shown := func(what write, units ...string) {
		t.Helper()
		_, err := w.UpdateItem(t.Context(), what.alone(w.locks, key))
		require.Equal(t, list(units...), refusal(t, err)["queue"])
	}
	at := int64(token)
	newer := func(what write) write { // every unit brings a token of its own
		at++
		what.values = with(what.values, item{":token": number(at)})
		return what
	}
	do(newer(acquire.as("a")))
	for _, unit := range []string{"b", "c", "d", "e"} {
		do(newer(join.as(unit)))
	}
	shown(newer(join.as("c")), "b", "c", "d", "e")
	shown(newer(acquireHead.as("b")), "b", "c", "d", "e") // it is held
	do(release.as("a"))
	shown(newer(acquire.as("a")), "b", "c", "d", "e") // it was here first, but not now
	shown(newer(acquireHead.as("c")), "b", "c", "d", "e")
	do(newer(acquireHead.as("b")))
	do(leaveSecond.as("d"))
	do(newer(join.as("d"))) // who comes back is last
	do(release.as("b"))
	shown(newer(acquireHead.as("d")), "c", "e", "d")

	t.Run("a step waits for one row of two", func(t *testing.T) {
		other := item{"key": text(fresh(t) + "/address:7")}
		before := with(with(released, other), item{"queue": list("me")})
		w.put(t, w.locks, before)
		ancestor := w.read(t, w.locks, key)
		reasons := cancelled(t, w.transact(t, newer(intent).action(w.locks, key), newer(acquireHead).action(w.locks, other)), conditionFailed, none)
		require.Equal(t, list("c", "e", "d"), reasons[0].Item["queue"])
		require.Nil(t, reasons[1].Item)
		reasons = cancelled(t, w.transact(t, newer(intent).action(w.locks, key), newer(acquire).action(w.locks, other)), conditionFailed, conditionFailed)
		require.Equal(t, list("me"), reasons[1].Item["queue"])
		requireRow(t, ancestor, w.read(t, w.locks, key))
		requireRow(t, before, w.read(t, w.locks, other))

		both := []types.TransactWriteItem{newer(intentHead.as("c")).action(w.locks, key), newer(acquireHead).action(w.locks, other)}
		require.NoError(t, w.transact(t, both...))
		require.Equal(t, list("e", "d"), w.read(t, w.locks, key)["queue"])
		require.Equal(t, list(), w.read(t, w.locks, other)["queue"])
	})
}
