package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// testAbsentRows: every kind of update creates a row that is not there. A write
// that must not needs a condition that fails there, so each condition used for
// that is tried as well.
func testAbsentRows(t *testing.T, w *world) {
	w.tryEach(t, []expression{
		{"SET", nil, write{update: "SET #fence = :token"}, item{"fence": number(token)}},
		{"ADD", nil, write{update: "ADD #below :entries"}, item{"below": set("me address:7")}},
		{"DELETE", nil, write{update: "DELETE #below :entries"}, item{}},
		{"REMOVE", nil, write{update: "REMOVE #unit"}, item{}},

		{"unit is mine", nil, write{"REMOVE #unit", mine, nil}, nil},
		{"unit is not another", nil, write{"SET #fence = :token", "#unit <> :other", nil}, item{"fence": number(token)}},
		{"row exists", nil, write{"SET #fence = :token", "attribute_exists(#key)", nil}, nil},
		{"fence is older", nil, write{"SET #fence = :token", "#fence < :token", nil}, nil},
		{"entry is there", nil, write{"DELETE #below :entries", within, nil}, nil},
		{"not in the queue", nil, write{"SET #fence = :token", "NOT contains(#queue, :waiter)", nil}, item{"fence": number(token)}},
		{"short", nil, write{"SET #fence = :token", "size(#below) < :most", nil}, nil},
	}...)
}

// testExpressionErrors: what DynamoDB refuses to understand is a ValidationException.
func testExpressionErrors(t *testing.T, w *world) {
	send := func(t *testing.T, in *dynamodb.UpdateItemInput) error {
		w.put(t, w.locks, with(held, in.Key))
		_, err := w.UpdateItem(t.Context(), in)
		return err
	}
	for _, c := range []struct {
		name    string
		known   Difference // engines that accept it; empty: none
		spoil   func(*dynamodb.UpdateItemInput)
		message string
	}{
		{"raw name with an underscore", AcceptsRawUnderscore, func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET _fence = :token")
		}, "Syntax error"},
		{"reserved words", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET data = :token")
		}, "reserved keyword"},
		{"unused name", "", func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeNames = map[string]string{"#fence": "fence", "#spare": "spare"}
		}, "unused in expressions"},
		{"unused value", "", func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues = item{":token": number(1), ":spare": number(2)}
		}, "unused in expressions"},
		{"undefined name", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET #nowhere = :token")
		}, "#nowhere"},
		{"undefined value", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET #fence = :nothing")
		}, ":nothing"},
		{"key in an update", "", func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeNames = map[string]string{"#fence": "key"}
		}, "part of the key"},
		{"one path twice", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET #fence = :token REMOVE #fence")
		}, "overlap"},
		{"nonsense", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("SET #fence == :token")
		}, "Syntax error"},
		{"number into a set", "", func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("ADD #fence :token")
			in.ExpressionAttributeValues = item{":token": set("x")}
		}, "incorrect data type"},
		{"empty set", "", func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues = item{":token": set()}
		}, "empty"},
		{"head of a queue that is not there", RemovesFromAbsentList, func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String("REMOVE #fence[0]")
			in.ExpressionAttributeNames = map[string]string{"#fence": "queue"}
			in.ExpressionAttributeValues = nil
		}, "document path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := item{"key": text(fresh(t))}
			in := write{update: "SET #fence = :token"}.alone(w.locks, key)
			c.spoil(in)
			if strings.Count(*in.UpdateExpression, "#fence") == 0 && in.ExpressionAttributeNames["#spare"] == "" {
				in.ExpressionAttributeNames = nil
			}
			err := send(t, in)
			if c.known != "" && w.differs(c.known) {
				require.NoError(t, err, "this engine used to accept it")
				return
			}
			invalidRequest(t, err, c.message)
			requireRow(t, with(held, key), w.read(t, w.locks, key))
		})
	}
}

// testClean: a stale intent goes only if its witness row is not that unit's, and
// only a transaction on both rows can tell.
func testClean(t *testing.T, w *world) {
	clean := write{update: releaseIntent.update, condition: releaseIntent.condition}
	for _, c := range []struct {
		name    string
		witness item
		entry   string
		codes   []string // nil: cleaned
	}{
		{"witness row is gone", nil, "me address:7", nil},
		{"witness row is free", released, "me address:7", nil},
		{"witness row has another unit", held, "me address:7", nil},
		{"witness row is still that unit's", ours, "me address:7", []string{conditionFailed, none}},
		{"entry is gone", held, "other address:9", []string{none, conditionFailed}},
		{"both", ours, "other address:9", []string{conditionFailed, conditionFailed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ancestor, witness := item{"key": text(fresh(t))}, item{"key": text(fresh(t) + "/address:7")}
			before := w.lay(t, w.locks, ancestor, with(carrier, item{"below": set(c.entry)}))
			w.lay(t, w.locks, witness, c.witness)
			err := w.transact(t, check(w.locks, witness, notMine, nil), clean.action(w.locks, ancestor))
			if c.codes == nil {
				require.NoError(t, err)
				requireRow(t, with(before, item{"below": nil, "turnAt": number(tableNow)}), w.read(t, w.locks, ancestor))
				return
			}
			reasons := cancelled(t, err, c.codes...)
			if c.codes[0] == conditionFailed {
				requireRow(t, with(c.witness, witness), reasons[0].Item)
			}
			if c.codes[1] == conditionFailed {
				requireRow(t, before, reasons[1].Item)
			}
			requireRow(t, before, w.read(t, w.locks, ancestor))
		})
	}
}

// testNumbers: tokens are microseconds below 2^53, compared as numbers and
// returned as they were written.
func testNumbers(t *testing.T, w *world) {
	const top = 1 << 53
	for _, c := range []struct {
		name     string
		row, new int64
		older    bool
	}{
		{"one below the top", top - 1, top, true},
		{"the top itself", top, top, false},
		{"one above", top, top - 1, false},
		{"beyond what a float can tell apart", top, top + 1, true},
		{"more digits", 9, 10, true},
		{"fewer digits", 10, 9, false},
		{"zero", 0, 1, true},
		{"below zero", -10, -9, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := fresh(t)
			w.put(t, w.locks, item{"key": text(key), "fence": number(c.row)})
			do := write{update: "SET #fence = :token", condition: "#fence < :token", values: item{":token": number(c.new)}}
			_, err := w.UpdateItem(t.Context(), do.alone(w.locks, item{"key": text(key)}))
			want := c.row
			if c.older {
				require.NoError(t, err)
				want = c.new
			} else {
				requireRow(t, item{"key": text(key), "fence": number(c.row)}, refusal(t, err))
			}
			require.Equal(t, number(want), w.get(t, key)["fence"])
		})
	}
}

// testPuts: a put under a condition, and what a refusal shows.
func testPuts(t *testing.T, w *world) {
	key := item{"unit": text(fresh(t)), "part": text("record")}
	row := with(key, item{"committed": yes()})
	put := func(row item) error {
		_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.units, Item: row,
			ConditionExpression: aws.String("attribute_not_exists(#unit)"), ExpressionAttributeNames: map[string]string{"#unit": "unit"},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
		return err
	}
	require.NoError(t, put(row))
	requireRow(t, row, refusal(t, put(with(key, item{"aborted": yes()}))))
	// Another part of the same unit is another item: the condition looks at one item only.
	require.NoError(t, put(with(key, item{"part": text("journal/000000")})))

	_, err := w.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.units, Key: key,
		ConditionExpression:                 aws.String("attribute_not_exists(committed)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
	requireRow(t, row, refusal(t, err))
	_, err = w.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.units, Key: key})
	require.NoError(t, err)
	require.Nil(t, w.read(t, w.units, key))
	_, err = w.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.units, Key: key})
	require.NoError(t, err, "deleting what is not there is no error")

	t.Run("without ALL_OLD a refusal shows nothing", func(t *testing.T) {
		w.put(t, w.units, row)
		in := write{update: "SET #balance = :amount", condition: "attribute_not_exists(#unit)"}.alone(w.units, key)
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
		_, err := w.UpdateItem(t.Context(), in)
		require.Nil(t, refusal(t, err))
	})
	t.Run("a returned value", func(t *testing.T) {
		w.put(t, w.units, row)
		in := write{update: "SET #balance = :amount"}.alone(w.units, key)
		in.ReturnValues = types.ReturnValueAllNew
		out, err := w.UpdateItem(t.Context(), in)
		require.NoError(t, err)
		requireRow(t, with(row, item{"balance": number(10)}), out.Attributes)
	})
}
