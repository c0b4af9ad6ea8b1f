package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// What a write of a commit without locks wants of the stamp that it finds: the one that the
// record was read with, or none as then.
const (
	stampNewer = "(attribute_not_exists(#holdallFence) OR #holdallFence < :holdallToken)"
	stampSame  = stampNewer + " AND #holdallFence = :holdallSeen"
	stampNone  = stampNewer + " AND attribute_not_exists(#holdallFence)"

	setStamp = "SET #holdallFence = :holdallToken, #balance = :amount"
)

func testCommitsWithoutLocks(t *testing.T, w *world) {
	t.Run("all forms", w.testPass)
	t.Run("refused by every row", w.testPassRefused)
	t.Run("stamps as read", w.testStampsAsRead)
	t.Run("burns", w.testBurnsAgainstPasses)
	t.Run("a glance", w.testGlance)
	t.Run("capacity", w.testPassCapacity)
}

// passing are rows to be passed, in every form, each below a key of its own.
func passing() []expression {
	return []expression{
		{"seen", released, passSeen, with(released, passed)},
		{"seen absent", nil, passSeenAbsent, passed},
		{"unseen", released, passUnseen, with(released, passed)},
		{"covering", released, passCovering, with(released, passed)},
		{"covering none", nil, passCoveringNone, passed},
		{"above", released, passAboveSeen, with(released, passedAbove)},
		{"above none", carrier, passAboveNone, with(carrier, passedAbove)},
		{"above unseen", nil, passAboveUnseen, with(item{}, passedAbove)},
	}
}

// writing are the writes of records that go with them, in every kind.
func (w *world) writing(id string) []types.TransactWriteItem {
	record := func(n string) item { return item{"id": text(id + n)} }
	return []types.TransactWriteItem{
		insert(w.records, with(record("put"), item{"_fence": number(token)}), stampSame, nil),
		write{update: setStamp, condition: "(#balance = :amount) AND " + stampSame}.action(w.records, record("update")),
		remove(w.records, record("delete"), stampSame, nil),
		check(w.records, record("check"), "(attribute_exists(#id)) AND "+stampSame, nil),
		insert(w.records, with(record("new"), item{"_fence": number(token)}), stampNone, nil),
		write{update: setStamp, condition: stampNone}.action(w.records, record("upsert")),
		remove(w.records, record("unstamped"), stampNone, nil),
		insert(w.units, item{"unit": text("id:" + id), "part": text("record"), "by": text("me")}, "attribute_not_exists(#unit)", nil),
	}
}

// laid puts the rows and records there, and returns the actions that pass and write them.
func (w *world) laid(t *testing.T, rows []expression) (keys []item, id string, actions []types.TransactWriteItem) {
	t.Helper()
	id = fresh(t)
	for i, c := range rows {
		key := item{"key": text(fmt.Sprintf("%s/%02d", id, i))}
		w.lay(t, w.locks, key, c.before)
		keys, actions = append(keys, key), append(actions, c.do.action(w.locks, key))
	}
	for _, n := range []string{"put", "update", "delete", "check"} {
		w.put(t, w.records, item{"id": text(id + n), "balance": number(10), "_fence": older})
	}
	w.put(t, w.records, item{"id": text(id + "unstamped"), "balance": number(10)})
	return keys, id, append(actions, w.writing(id)...)
}

// testPass: rows of every form, records of every kind and the record of an ID, over three
// tables, in one transaction; a late copy of it is refused by every row.
func (w *world) testPass(t *testing.T) {
	rows := passing()
	keys, id, actions := w.laid(t, rows)
	require.NoError(t, w.transact(t, actions...))
	for i, c := range rows {
		requireRow(t, with(c.after, keys[i]), w.read(t, w.locks, keys[i]))
	}
	for name, want := range map[string]item{
		"put": {"_fence": number(token)}, "new": {"_fence": number(token)},
		"update": {"_fence": number(token), "balance": number(10)}, "upsert": {"_fence": number(token), "balance": number(10)},
		"check": {"_fence": older, "balance": number(10)},
	} {
		key := item{"id": text(id + name)}
		requireRow(t, with(want, key), w.read(t, w.records, key))
	}
	require.Nil(t, w.read(t, w.records, item{"id": text(id + "delete")}))
	require.Nil(t, w.read(t, w.records, item{"id": text(id + "unstamped")}))

	codes := slices.Repeat([]string{conditionFailed}, len(actions))
	codes[len(rows)+3] = none // the record that was only checked
	codes[len(rows)+6] = none // it is gone, and was to go
	reasons := cancelled(t, w.transact(t, actions...), codes...)
	for i, c := range rows {
		requireRow(t, with(c.after, keys[i]), reasons[i].Item)
	}
}

// testPassRefused: one row is enough for nothing to be written, and if all refuse, each shows
// what it is.
func (w *world) testPassRefused(t *testing.T) {
	taken := passing()
	for i := range taken {
		taken[i].before = with(taken[i].before, item{"isReleased": nil, "unit": text("other"), "fence": older, "recordVersionNumber": text("rvn-9")})
	}
	keys, id, actions := w.laid(t, taken)
	codes := slices.Concat(slices.Repeat([]string{conditionFailed}, len(taken)), slices.Repeat([]string{none}, len(actions)-len(taken)))
	reasons := cancelled(t, w.transact(t, actions...), codes...)
	for i, c := range taken {
		requireRow(t, with(c.before, keys[i]), reasons[i].Item)
		requireRow(t, with(c.before, keys[i]), w.read(t, w.locks, keys[i]))
	}
	require.Nil(t, w.read(t, w.records, item{"id": text(id + "new")}))

	for at, form := range passing() {
		t.Run("by the one "+form.name, func(t *testing.T) {
			rows := passing()
			rows[at].before = taken[at].before
			keys, id, actions := w.laid(t, rows)
			codes := slices.Repeat([]string{none}, len(actions))
			codes[at] = conditionFailed
			reasons := cancelled(t, w.transact(t, actions...), codes...)
			requireRow(t, with(taken[at].before, keys[at]), reasons[at].Item)
			for i, c := range rows {
				var before item
				if c.before != nil {
					before = with(c.before, keys[i])
				}
				requireRow(t, before, w.read(t, w.locks, keys[i]))
			}
			require.Nil(t, w.read(t, w.records, item{"id": text(id + "new")}))
			require.Nil(t, w.read(t, w.units, item{"unit": text("id:" + id), "part": text("record")}))
		})
	}
}

// testStampsAsRead: a record that was written since it was read refuses every kind of write,
// also if its stamp is older than the token, and shows itself.
func (w *world) testStampsAsRead(t *testing.T) {
	for name, c := range map[string]struct {
		condition string
		before    item // nil: there is no record
		done      bool
	}{
		"as read":                      {stampSame, item{"_fence": older}, true},
		"written since, before us":     {stampSame, item{"_fence": number(token - 2)}, false},
		"written since, after us":      {stampSame, item{"_fence": number(token + 1)}, false},
		"the stamp is gone":            {stampSame, item{}, false},
		"the stamp is a text":          {stampSame, item{"_fence": text("x")}, false},
		"the record is gone":           {stampSame, nil, false},
		"none, as read":                {stampNone, item{}, true},
		"none, and no record":          {stampNone, nil, true},
		"none, and stamped since":      {stampNone, item{"_fence": older}, false},
		"none, and another's since":    {stampNone, item{"_fence": text("x")}, false},
		"none, and stamped, by nobody": {stampNone, item{"_fence": &types.AttributeValueMemberNULL{Value: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, action := range map[string]func(key item) types.TransactWriteItem{
				"put": func(key item) types.TransactWriteItem {
					return insert(w.records, with(key, item{"_fence": number(token)}), c.condition, nil)
				},
				"update": func(key item) types.TransactWriteItem {
					return write{update: setStamp, condition: c.condition}.action(w.records, key)
				},
				"delete": func(key item) types.TransactWriteItem { return remove(w.records, key, c.condition, nil) },
				"check":  func(key item) types.TransactWriteItem { return check(w.records, key, c.condition, nil) },
			} {
				key, lock := item{"id": text(fresh(t) + kind)}, item{"key": text(fresh(t) + kind)}
				before := w.lay(t, w.records, key, c.before)
				err := w.transact(t, passSeenAbsent.action(w.locks, lock), action(key))
				if c.done {
					require.NoError(t, err, kind)
					require.NotNil(t, w.read(t, w.locks, lock), kind)
					continue
				}
				reasons := cancelled(t, err, none, conditionFailed)
				requireRow(t, before, reasons[1].Item)
				requireRow(t, before, w.read(t, w.records, key))
				require.Nil(t, w.read(t, w.locks, lock), kind)
			}
		})
	}
}

// testBurnsAgainstPasses: of a commit without locks and the burning of its token one is done,
// and refuses the other, whichever comes first and however the row was seen.
func (w *world) testBurnsAgainstPasses(t *testing.T) {
	busy := with(carrier, item{"below": set("other address:9")})
	for _, c := range []struct {
		name       string
		row        item
		pass, burn write
	}{
		{"seen", released, passSeen, burn},
		{"seen absent", nil, passSeenAbsent, burnNew},
		{"unseen", released, passUnseen, burn},
		{"unseen, absent", nil, passUnseen, burnNew},
		{"unseen, above others", released, passCovering, burn},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := item{"key": text(fresh(t))}
			w.lay(t, w.locks, key, c.row)
			require.NoError(t, w.transact(t, c.pass.action(w.locks, key)))
			_, err := w.UpdateItem(t.Context(), c.burn.alone(w.locks, key))
			shown := refusal(t, err)
			require.Equal(t, text("me"), shown["committedBy"], "it tells that the commit was first")
			require.Equal(t, number(token), shown["fence"])

			key = item{"key": text(fresh(t) + "burned")}
			w.lay(t, w.locks, key, c.row)
			_, err = w.UpdateItem(t.Context(), c.burn.alone(w.locks, key))
			require.NoError(t, err)
			shown = cancelled(t, w.transact(t, c.pass.action(w.locks, key)), conditionFailed)[0].Item
			require.Equal(t, number(token), shown["fence"])
			require.NotEqual(t, text("me"), shown["committedBy"])
		})
	}
	// Somebody has come in between. What stops the commit now must stop it later, too.
	for name, c := range map[string]struct {
		now  item
		burn write
		then item // what the row is when they have gone
	}{
		"of a held row":       {held, burn, with(released, item{"fence": number(token)})},
		"of a row with units": {busy, burn, item{"isReleased": text("1"), "fence": number(token)}},
		"of a marked row":     {with(held, item{"pending": text("units")}), burnLasting, with(released, item{"fence": number(token)})},
	} {
		t.Run(name, func(t *testing.T) {
			key := item{"key": text(fresh(t))}
			w.put(t, w.locks, with(c.now, key))
			_, err := w.UpdateItem(t.Context(), c.burn.alone(w.locks, key))
			require.NoError(t, err)
			require.Equal(t, number(token), w.read(t, w.locks, key)["fence"])
			w.put(t, w.locks, with(c.then, key))
			for _, form := range passing()[:5] {
				cancelled(t, w.transact(t, form.do.action(w.locks, key)), conditionFailed)
			}
		})
	}
}

// testGlance: lock rows, records of three tables and the record of an ID, 100 of them, in the
// order asked for, as one state; what is not there has its place.
func (w *world) testGlance(t *testing.T) {
	other := w.table(t, "others", "id", "")
	id := fresh(t)
	var gets []types.TransactGetItem
	var want []item
	for i, n := range names(id, 100) {
		table, key, row := w.locks, item{"key": text(n)}, released
		switch {
		case i == 50:
			table, key, row = w.units, item{"unit": text(n), "part": text("record")}, item{"by": text("me")}
		case i > 50 && i%2 == 0:
			table, key, row = w.records, item{"id": text(n)}, item{"balance": number(int64(i))}
		case i > 50:
			table, key, row = other, item{"id": text(n)}, item{"balance": number(int64(i))}
		case i%5 == 1:
			row = with(held, item{"queue": list("a", "b")})
		}
		if i%3 == 2 {
			want = append(want, nil)
		} else {
			want = append(want, with(row, key))
			w.put(t, table, with(row, key))
		}
		gets = append(gets, get(table, key))
	}
	out, err := w.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{
		TransactItems: gets, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
	require.NoError(t, err)
	require.Len(t, out.Responses, 100)
	for i, answer := range out.Responses {
		requireRow(t, want[i], answer.Item)
		require.Equal(t, want[i] == nil, answer.Item == nil, "what is not there is no empty item")
	}
	require.Equal(t, map[string]float64{w.locks: 100, w.units: 2, w.records: 48, other: 50}, byTable(out.ConsumedCapacity), "2 for each, also of what is not there")
}

// testPassCapacity: two write units for each row passed and each record written, as for what
// is released by a commit under locks.
func (w *world) testPassCapacity(t *testing.T) {
	key, above, record := item{"key": text(fresh(t))}, item{"key": text(fresh(t) + "above")}, item{"id": text(fresh(t))}
	out, err := w.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems: []types.TransactWriteItem{
			passSeenAbsent.action(w.locks, key), passAboveNone.action(w.locks, above), insert(w.records, record, stampNone, nil)}})
	require.NoError(t, err)
	want := map[string]float64{w.locks: 4, w.records: 2}
	if w.differs(UpdatesCostOneInTransactions) {
		want[w.locks] = 2
	}
	require.Equal(t, want, byTable(out.ConsumedCapacity))
}

func byTable(consumed []types.ConsumedCapacity) map[string]float64 {
	units := map[string]float64{}
	for _, c := range consumed {
		units[aws.ToString(c.TableName)] = aws.ToFloat64(c.CapacityUnits)
	}
	return units
}
