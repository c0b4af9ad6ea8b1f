package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// testJournals: what a unit larger than one transaction relies on, beside what
// every unit does.
func testJournals(t *testing.T, w *world) {
	t.Run("rows are deleted", w.testDeletions)
	t.Run("rows are listed", w.testLargeRows)
	t.Run("conditions alone", w.testConditionsAlone)
	t.Run("a rehearsal", w.testRehearsal)
	t.Run("pending", w.testPending)
	t.Run("an expiry above", w.testExpiryAbove)
}

// deletion is the removal of a row of the unit table, if it is there.
func (w *world) deletion(unit, part string) types.BatchStatementRequest {
	return types.BatchStatementRequest{
		Statement:  aws.String(fmt.Sprintf(`DELETE FROM "%s" WHERE "unit"=? AND "part"=?`, w.units)),
		Parameters: []types.AttributeValue{text(unit), text(part)},
	}
}

// testDeletions: a statement deletes one row by its full key; where there is
// none, it does nothing, and does not keep the others of its batch from doing it.
func (w *world) testDeletions(t *testing.T) {
	unit := fresh(t)
	parts := names("journal/0000", 25)
	absent := func(i int) bool { return i%3 == 1 }
	all := make([]types.BatchStatementRequest, len(parts))
	for i, part := range parts {
		all[i] = w.deletion(unit, part)
		if !absent(i) {
			w.put(t, w.units, item{"unit": text(unit), "part": text(part), "body": text("line")})
		}
	}
	record := item{"unit": text(unit), "part": text("record")}
	w.put(t, w.units, record)
	requireDeleted := func(out []types.BatchStatementResponse, was func(int) bool) {
		t.Helper()
		for i, r := range out {
			switch {
			case was(i):
				require.Nil(t, r.Error)
			case r.Error != nil: // whether that is a refusal is not documented
				require.Equal(t, types.BatchStatementErrorCodeEnumConditionalCheckFailed, r.Error.Code)
			}
			require.Nil(t, w.read(t, w.units, item{"unit": text(unit), "part": text(parts[i])}))
		}
		requireRow(t, record, w.read(t, w.units, record))
	}
	out, err := w.batch(t, all...)
	require.NoError(t, err)
	requireDeleted(out, func(i int) bool { return !absent(i) })
	out, err = w.batch(t, all...)
	require.NoError(t, err)
	requireDeleted(out, func(int) bool { return false })
}

// testLargeRows: a page of a query has 1 MB of rows, as they are and not as the
// projection leaves them; the next goes on where it ended.
func (w *world) testLargeRows(t *testing.T) {
	unit := fresh(t)
	const n, size = 7, 360 << 10
	for i := range n {
		w.put(t, w.units, item{"unit": text(unit), "part": text(fmt.Sprintf("journal/%06d", i)), "key": text("k"),
			"body": &types.AttributeValueMemberB{Value: []byte(strings.Repeat("x", size))}})
	}
	in := &dynamodb.QueryInput{
		TableName: &w.units, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("#unit = :unit"), ProjectionExpression: aws.String("#unit, #part, #key"),
		ExpressionAttributeNames:  map[string]string{"#unit": "unit", "#part": "part", "#key": "key"},
		ExpressionAttributeValues: item{":unit": text(unit)},
	}
	var found []item
	pages := 1
	for ; ; pages++ {
		require.LessOrEqual(t, pages, n+1, "the query does not end")
		page := *in
		out, err := w.Query(t.Context(), &page)
		require.NoError(t, err)
		found = append(found, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	require.Len(t, found, n)
	for i, row := range found {
		requireRow(t, item{"unit": text(unit), "part": text(fmt.Sprintf("journal/%06d", i)), "key": text("k")}, row)
	}
	require.GreaterOrEqual(t, pages, n*size/(1<<20))
}

// testConditionsAlone: a transaction may have nothing but conditions, up to 100.
func (w *world) testConditionsAlone(t *testing.T) {
	const n = 100
	keys := names(fresh(t), n)
	there := func(i int) types.TransactWriteItem {
		return check(w.records, item{"id": text(keys[i])}, "#balance = :amount", nil)
	}
	var all []types.TransactWriteItem
	for i, key := range keys {
		w.put(t, w.records, item{"id": text(key), "balance": number(10)})
		all = append(all, there(i))
	}
	require.NoError(t, w.transact(t, all...))
	require.NoError(t, w.transact(t, there(0)))

	changed := item{"id": text(keys[50]), "balance": number(11)}
	w.put(t, w.records, changed)
	all[99] = check(w.records, item{"id": text(fresh(t))}, "#balance = :amount", nil)
	codes := slices.Repeat([]string{none}, n)
	codes[50], codes[99] = conditionFailed, conditionFailed
	reasons := cancelled(t, w.transact(t, all...), codes...)
	requireRow(t, changed, reasons[50].Item)
	require.Nil(t, reasons[99].Item)
}

// testRehearsal: a transaction that one condition keeps from being carried out
// tells, all the same, which of its writes could not be.
func (w *world) testRehearsal(t *testing.T) {
	never := check(w.units, item{"unit": text("open"), "part": text(fresh(t))}, "attribute_exists(#part) AND attribute_not_exists(#part)", nil)
	good := item{"id": text(fresh(t))}
	valid := insert(w.records, good, unstamped, nil)
	valid.Put.ExpressionAttributeValues = item{":token": number(token)}
	owned := item{"key": text(fresh(t))}
	w.put(t, w.locks, with(held, owned))

	t.Run("of what can be done", func(t *testing.T) {
		cancelled(t, w.transact(t, valid, never), none, conditionFailed)
	})
	t.Run("of a stale write", func(t *testing.T) {
		stale := item{"id": text(fresh(t)), "_fence": number(token + 1)}
		w.put(t, w.records, stale)
		update := write{update: stamp, condition: unstamped}.action(w.records, item{"id": stale["id"]})
		reasons := cancelled(t, w.transact(t, valid, update, never), none, conditionFailed, conditionFailed)
		requireRow(t, stale, reasons[1].Item)
	})
	w.testRehearsedWrongly(t, valid, never, owned)
	t.Run("of a missing table", func(t *testing.T) {
		err := w.transact(t, valid, insert(w.prefix+"absent", good, "", nil), never)
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
	require.Nil(t, w.read(t, w.records, good), "a rehearsal wrote")
	requireRow(t, with(held, owned), w.read(t, w.locks, owned))
}

// testRehearsedWrongly: what can never be carried out, between what can and the
// condition that never holds.
func (w *world) testRehearsedWrongly(t *testing.T, valid, never types.TransactWriteItem, owned item) {
	absent := func() item { return item{"id": text(fresh(t))} }
	for name, bad := range map[string]struct {
		action types.TransactWriteItem
		cancel bool // whatever is invalid fails the request
	}{
		"an ill-fitting key":               {write{update: stamp}.action(w.records, item{"key": text("x")}), false},
		"a put without a key":              {insert(w.records, item{"key": text("x")}, "", nil), false},
		"a deletion by an ill-fitting key": {remove(w.records, item{"key": text("x")}, "", nil), false},
		"an update that cannot be":         {write{update: "ADD #owner :amount"}.action(w.locks, owned), false},
		"a sum with what is not there":     {write{update: "SET #balance = #balance + :amount"}.action(w.records, absent()), false},
		"a key of another type":            {write{update: stamp}.action(w.records, item{"id": number(1)}), true},
		"a put with such a key":            {insert(w.records, item{"id": number(1)}, "", nil), true},
	} {
		t.Run("of "+name, func(t *testing.T) {
			for _, actions := range [][]types.TransactWriteItem{{valid, bad.action, never}, {never, bad.action, valid}} {
				err := w.transact(t, actions...)
				if w.differs(InvalidActionFailsRequest) && !bad.cancel {
					invalidRequest(t, err, "")
					continue
				}
				codes := []string{none, invalid, conditionFailed}
				if actions[0].ConditionCheck != nil {
					slices.Reverse(codes)
				}
				cancelled(t, err, codes...)
			}
		})
	}
	for name, bad := range map[string]types.TransactWriteItem{
		"an expression that is none":  write{update: "SET #balance ="}.action(w.records, absent()),
		"a value that is not defined": undefined(w.records, absent()),
	} {
		t.Run("of "+name, func(t *testing.T) {
			err := w.transact(t, valid, bad, never)
			if w.differs(CancelsOverExpressions) {
				cancelled(t, err, none, invalid, conditionFailed)
			} else {
				invalidRequest(t, err, "")
			}
		})
	}
	t.Run("of a change of the key", func(t *testing.T) {
		err := w.transact(t, valid, write{update: "SET #id = :unit"}.action(w.records, absent()), never)
		switch {
		case w.differs(ChangesKeys):
			cancelled(t, err, none, none, conditionFailed)
		case w.differs(OneReasonForKeys):
			cancelled(t, err, invalid)
		default:
			cancelled(t, err, none, invalid, conditionFailed)
		}
	})
}

// undefined is an update that names a value which it does not bring.
func undefined(table string, key item) types.TransactWriteItem {
	action := write{update: stamp}.action(table, key)
	delete(action.Update.ExpressionAttributeValues, ":amount")
	return action
}

// testPending: a mark guards what is applied; it goes with the lock.
func (w *world) testPending(t *testing.T) {
	marked := item{"pending": text("units"), "expiresAt": nil}
	for name, c := range map[string]struct {
		row   item
		holds bool
	}{
		"marked":     {with(ours, marked), true},
		"not marked": {ours, false},
		"another's":  {with(held, marked), false},
		"free":       {released, false},
	} {
		t.Run(name, func(t *testing.T) {
			key, record := item{"key": text(fresh(t))}, item{"id": text(fresh(t))}
			row := w.lay(t, w.locks, key, c.row)
			err := w.transact(t, check(w.locks, key, isPending, nil), insert(w.records, record, "", nil))
			if c.holds {
				require.NoError(t, err)
				requireRow(t, record, w.read(t, w.records, record))
				return
			}
			requireRow(t, row, cancelled(t, err, conditionFailed, none)[0].Item)
			require.Nil(t, w.read(t, w.records, record))
		})
	}
	t.Run("freed once", func(t *testing.T) {
		key := item{"key": text(fresh(t))}
		w.put(t, w.locks, with(ours, key))
		require.NoError(t, w.transact(t, mark.action(w.locks, key)))
		requireRow(t, with(with(ours, marked), key), w.read(t, w.locks, key))
		require.NoError(t, w.transact(t, commitMarked.action(w.locks, key)))
		require.Nil(t, w.read(t, w.locks, key)["pending"])
		cancelled(t, w.transact(t, commitMarked.action(w.locks, key)), conditionFailed)
	})
}
