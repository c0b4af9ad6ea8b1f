package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// stamp is what every staged write carries: older tokens only, and its own from then on.
const (
	unstamped = "(attribute_not_exists(#stamp) OR #stamp < :token)"
	stamp     = "SET #balance = :amount, #stamp = :token"
)

func testTransactions(t *testing.T, w *world) {
	t.Run("commit", w.testCommit)
	t.Run("stale commit", w.testStaleCommit)
	t.Run("reasons", w.testReasons)
	t.Run("one item twice", w.testOneItemTwice)
	t.Run("insert if absent", w.testInsertIfAbsent)
	t.Run("a missing table", func(t *testing.T) {
		absent := w.prefix + "absent"
		err := w.transact(t, insert(w.records, item{"id": text(fresh(t))}, "", nil), insert(absent, item{"id": text("x")}, "", nil))
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
	t.Run("an ill-fitting key", func(t *testing.T) {
		id := item{"id": text(fresh(t))}
		err := w.transact(t, insert(w.records, id, "", nil), renew.action(w.locks, item{"id": text("x")}))
		w.invalidAction(t, err)
		require.Nil(t, w.read(t, w.records, id))
	})
	t.Run("an update that cannot be applied", func(t *testing.T) {
		id, key := item{"id": text(fresh(t))}, item{"key": text(fresh(t))}
		w.put(t, w.locks, with(held, key))
		wrong := write{update: "ADD #owner :amount"} // a number onto a text
		err := w.transact(t, insert(w.records, id, "", nil), wrong.action(w.locks, key))
		w.invalidAction(t, err)
		require.Nil(t, w.read(t, w.records, id))
	})
}

// invalidAction asserts that the second of two actions was found invalid: on AWS
// a reason of a cancelled transaction, with some engines an error of the whole request.
func (w *world) invalidAction(t *testing.T, err error) {
	t.Helper()
	if w.differs(InvalidActionFailsRequest) {
		invalidRequest(t, err, "")
		return
	}
	cancelled(t, err, none, invalid)
}

// testCommit: release, intent, staged writes of every kind and the record of an
// idempotency id, over three tables, in one transaction.
func (w *world) testCommit(t *testing.T) {
	key, ancestor, id := item{"key": text(fresh(t))}, item{"key": text(fresh(t))}, fresh(t)
	w.put(t, w.locks, with(ours, key))
	w.put(t, w.locks, with(carrier, ancestor))
	record := func(n string) item { return item{"id": text(id + n)} }
	for _, n := range []string{"update", "delete", "check"} {
		w.put(t, w.records, with(record(n), item{"balance": number(1), "_fence": older}))
	}
	require.NoError(t, w.transact(t,
		commit.action(w.locks, key),
		releaseIntent.action(w.locks, ancestor),
		insert(w.records, with(record("put"), item{"_fence": number(token)}), unstamped, nil),
		write{update: stamp, condition: unstamped}.action(w.records, record("update")),
		write{update: stamp, condition: unstamped}.action(w.records, record("upsert")),
		remove(w.records, record("delete"), unstamped, nil),
		check(w.records, record("check"), "attribute_exists(#id) AND "+unstamped, nil),
		insert(w.units, item{"unit": text("id:" + id), "part": text("record"), "by": text("me")}, "attribute_not_exists(#unit)", nil),
	))
	require.Nil(t, w.read(t, w.locks, key)["unit"])
	require.Equal(t, text("me"), w.read(t, w.locks, key)["committedBy"])
	require.Equal(t, set("other address:9"), w.read(t, w.locks, ancestor)["below"])
	written := item{"balance": number(10), "_fence": number(token)}
	requireRow(t, with(record("put"), item{"_fence": number(token)}), w.read(t, w.records, record("put")))
	requireRow(t, with(record("update"), written), w.read(t, w.records, record("update")))
	requireRow(t, with(record("upsert"), written), w.read(t, w.records, record("upsert")))
	require.Nil(t, w.read(t, w.records, record("delete")))
	require.NotNil(t, w.read(t, w.records, record("check")))
	require.NotNil(t, w.read(t, w.units, item{"unit": text("id:" + id), "part": text("record")}))
}

// testStaleCommit: a lost lock or a newer stamp anywhere, and nothing is written.
func (w *world) testStaleCommit(t *testing.T) {
	for _, c := range []struct {
		name  string
		row   item
		stamp int64
		codes []string
	}{
		{"lost lock", held, token - 1, []string{conditionFailed, none, none}},
		{"newer stamp", ours, token + 1, []string{none, conditionFailed, none}},
		{"own stamp", ours, token, []string{none, conditionFailed, none}},
		{"both", held, token + 1, []string{conditionFailed, conditionFailed, none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, record, other := item{"key": text(fresh(t))}, item{"id": text(fresh(t))}, item{"id": text(fresh(t))}
			w.put(t, w.locks, with(c.row, key))
			before := with(record, item{"_fence": number(c.stamp)})
			w.put(t, w.records, before)
			err := w.transact(t, commit.action(w.locks, key),
				write{update: stamp, condition: unstamped}.action(w.records, record), insert(w.records, other, "", nil))
			reasons := cancelled(t, err, c.codes...)
			if c.codes[0] == conditionFailed {
				requireRow(t, with(c.row, key), reasons[0].Item)
			}
			if c.codes[1] == conditionFailed {
				requireRow(t, before, reasons[1].Item)
			}
			requireRow(t, with(c.row, key), w.read(t, w.locks, key))
			requireRow(t, before, w.read(t, w.records, record))
			require.Nil(t, w.read(t, w.records, other))
		})
	}
}

// testReasons: one reason for every action, in the order of the actions, all
// failures at once, each with its row.
func (w *world) testReasons(t *testing.T) {
	const n = 24
	var actions []types.TransactWriteItem
	var codes []string
	rows := make([]item, n)
	for i, k := range names(fresh(t), n) {
		key := item{"key": text(k)}
		codes = append(codes, none)
		if i%3 == 1 {
			rows[i] = with(held, key)
			codes[i] = conditionFailed
		} else if i%3 == 2 {
			w.put(t, w.locks, with(released, key))
		}
		if rows[i] != nil {
			w.put(t, w.locks, rows[i])
		}
		actions = append(actions, acquire.action(w.locks, key))
	}
	for i, reason := range cancelled(t, w.transact(t, actions...), codes...) {
		if rows[i] == nil {
			require.Nil(t, reason.Item)
			require.Nil(t, reason.Message)
			continue
		}
		requireRow(t, rows[i], reason.Item)
		require.Equal(t, "The conditional request failed", aws.ToString(reason.Message))
	}
	t.Run("every kind of action", func(t *testing.T) {
		id := item{"id": text(fresh(t))}
		w.put(t, w.records, with(id, item{"balance": number(3)}))
		other := func() item { return item{"id": text(fresh(t))} }
		reasons := cancelled(t, w.transact(t,
			insert(w.records, with(id, item{"balance": number(4)}), "attribute_not_exists(#id)", nil),
			remove(w.records, other(), "attribute_exists(#id)", nil),
			check(w.records, other(), "attribute_exists(#id)", nil),
			check(w.records, other(), "attribute_not_exists(#id)", nil),
		), conditionFailed, conditionFailed, conditionFailed, none)
		requireRow(t, with(id, item{"balance": number(3)}), reasons[0].Item)
		require.Nil(t, reasons[1].Item)
		require.Nil(t, reasons[2].Item)
	})
	t.Run("without ALL_OLD no rows", func(t *testing.T) {
		key := item{"key": text(fresh(t))}
		w.put(t, w.locks, with(held, key))
		action := acquire.action(w.locks, key)
		action.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
		require.Nil(t, cancelled(t, w.transact(t, action), conditionFailed)[0].Item)
	})
}

// testOneItemTwice: a transaction has one action for an item, also when one of
// them is a check. That is why a commit folds its checks into its writes.
func (w *world) testOneItemTwice(t *testing.T) {
	id := item{"id": text(fresh(t))}
	w.put(t, w.records, id)
	do := write{update: stamp}
	for _, c := range []struct {
		name   string
		second types.TransactWriteItem
	}{
		{"two updates", do.action(w.records, id)},
		{"update and check", check(w.records, id, "attribute_exists(#id)", nil)},
		{"update and put", insert(w.records, id, "", nil)},
		{"update and delete", remove(w.records, id, "", nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := w.transact(t, do.action(w.records, id), c.second)
			invalidRequest(t, err, "multiple operations on one item")
			requireRow(t, id, w.read(t, w.records, id))
		})
	}
	t.Run("a failed check before an update", func(t *testing.T) {
		err := w.transact(t, check(w.records, id, "attribute_not_exists(#id)", nil), do.action(w.records, id))
		if w.differs(FailedCheckHidesSecondAction) {
			cancelled(t, err, conditionFailed, none)
		} else {
			invalidRequest(t, err, "multiple operations on one item")
		}
		requireRow(t, id, w.read(t, w.records, id))
	})
	t.Run("one key in two tables", func(t *testing.T) {
		table := w.table(t, "twin", "id", "")
		require.NoError(t, w.transact(t, do.action(w.records, id), do.action(table, id)))
	})
}

func (w *world) testInsertIfAbsent(t *testing.T) {
	row := item{"unit": text(fresh(t)), "part": text("record"), "committed": yes()}
	require.NoError(t, w.transact(t, insert(w.units, row, "attribute_not_exists(#unit)", nil)))
	aborted := with(row, item{"committed": nil, "aborted": yes()})
	reasons := cancelled(t, w.transact(t, insert(w.units, aborted, "attribute_not_exists(#unit)", nil)), conditionFailed)
	requireRow(t, row, reasons[0].Item)
}

// testRequestTokens: a request that is sent again does nothing again, and says so.
func testRequestTokens(t *testing.T, w *world) {
	id, request := item{"id": text(fresh(t))}, uuid.NewString()
	send := func(amount int64) error {
		do := write{update: "SET #balance = :amount", condition: "attribute_not_exists(#balance)", values: item{":amount": number(amount)}}
		_, err := w.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String(request), TransactItems: []types.TransactWriteItem{do.action(w.records, id)}})
		return err
	}
	require.NoError(t, send(1))
	require.NoError(t, send(1), "the second sending of a committed request succeeds")
	requireRow(t, with(id, item{"balance": number(1)}), w.read(t, w.records, id))

	require.ErrorAs(t, send(2), new(*types.IdempotentParameterMismatchException))
	requireRow(t, with(id, item{"balance": number(1)}), w.read(t, w.records, id))

	// The row has moved on: a replay must neither write nor look at conditions.
	w.put(t, w.records, id)
	require.NoError(t, send(1))
	requireRow(t, id, w.read(t, w.records, id))

	t.Run("a refused request is tried anew", func(t *testing.T) {
		request = uuid.NewString()
		w.put(t, w.records, with(id, item{"balance": number(0)}))
		cancelled(t, send(1), conditionFailed)
		w.put(t, w.records, id)
		require.NoError(t, send(1))
		requireRow(t, with(id, item{"balance": number(1)}), w.read(t, w.records, id))
	})
	t.Run("the SDK writes a token into the input", func(t *testing.T) {
		in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			insert(w.records, item{"id": text(fresh(t))}, "", nil)}}
		_, err := w.TransactWriteItems(t.Context(), in)
		require.NoError(t, err)
		if _, sdk := w.API.(*dynamodb.Client); sdk {
			require.NotNil(t, in.ClientRequestToken)
		}
	})
}
