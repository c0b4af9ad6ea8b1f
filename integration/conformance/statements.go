package conformance

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// renewal is a heartbeat as a statement, never over a higher RVN. Both attributes are in one SET clause,
// because not every engine takes two. Attribute names are quoted: key is a keyword, and some are reserved
// words.
func (w *world) renewal(key, unit, rvn string) types.BatchStatementRequest {
	return types.BatchStatementRequest{
		Statement: aws.String(fmt.Sprintf(
			`UPDATE "%s" SET "recordVersionNumber"=?, "renewedAt"=? WHERE "key"=? AND "unit"=? AND "recordVersionNumber"<=?`, w.locks)),
		Parameters:                          []types.AttributeValue{text(rvn), number(tableNow), text(key), text(unit), text(rvn)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (w *world) batch(t *testing.T, statements ...types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	t.Helper()
	out, err := w.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: statements})
	if err != nil {
		return nil, err
	}
	require.Len(t, out.Responses, len(statements))
	return out.Responses, nil
}

// mine is the key of a row that "me" has.
func (w *world) mine(t *testing.T) (key string) {
	t.Helper()
	key = fresh(t)
	w.put(t, w.locks, with(ours, item{"key": text(key)}))
	return key
}

// refusedFor asserts that one statement of a batch was refused, by this code.
func refusedFor(t *testing.T, code types.BatchStatementErrorCodeEnum, r types.BatchStatementResponse, said ...any) {
	t.Helper()
	require.NotNil(t, r.Error, said...)
	require.Equal(t, code, r.Error.Code, said...)
}

func testStatements(t *testing.T, w *world) {
	t.Run("25 renewals", w.testRenewals)
	t.Run("some lost", w.testLostRenewals)
	t.Run("what is renewed", w.testWhatIsRenewed)
	t.Run("26 statements", func(t *testing.T) {
		var all []types.BatchStatementRequest
		keys := names(fresh(t), 26)
		for _, key := range keys {
			w.put(t, w.locks, with(ours, item{"key": text(key)}))
			all = append(all, w.renewal(key, "me", "rvn-2"))
		}
		_, err := w.batch(t, all...)
		invalidRequest(t, err, "25")
		for _, key := range keys {
			require.Equal(t, text("rvn-1"), w.get(t, key)["recordVersionNumber"])
		}
	})
	w.testStatementErrors(t)
	w.testStatementText(t)
}

// testStatementErrors: what is wrong with one statement is no reason to refuse the others.
func (w *world) testStatementErrors(t *testing.T) {
	t.Run("no statement", func(t *testing.T) {
		_, err := w.batch(t, []types.BatchStatementRequest{}...)
		invalidRequest(t, err, "")
	})
	t.Run("a statement that makes no sense", func(t *testing.T) {
		key := w.mine(t)
		bad := w.renewal(key, "me", "rvn-2")
		bad.Statement = aws.String(fmt.Sprintf(`UPDATE "%s" at all`, w.locks))
		out, err := w.batch(t, bad)
		if err != nil {
			invalidRequest(t, err, "")
		} else {
			refusedFor(t, types.BatchStatementErrorCodeEnumValidationError, out[0])
		}
		require.Equal(t, text("rvn-1"), w.get(t, key)["recordVersionNumber"])
	})
	t.Run("a missing table", func(t *testing.T) {
		key := w.mine(t)
		lost := w.renewal(key, "me", "rvn-2")
		lost.Statement = aws.String(fmt.Sprintf(`UPDATE "%sabsent" SET "recordVersionNumber"=?, "renewedAt"=? WHERE "key"=? AND "unit"=? AND "recordVersionNumber"<=?`, w.prefix))
		out, err := w.batch(t, lost, w.renewal(key, "me", "rvn-2"))
		require.NoError(t, err)
		refusedFor(t, types.BatchStatementErrorCodeEnumResourceNotFound, out[0])
		require.Nil(t, out[1].Error, "the others are carried out")
		require.Equal(t, text("rvn-2"), w.get(t, key)["recordVersionNumber"])
	})
}

// testStatementText: how a statement is written.
func (w *world) testStatementText(t *testing.T) {
	t.Run("names need quotes", func(t *testing.T) {
		key := w.mine(t)
		raw := w.renewal(key, "me", "rvn-2")
		raw.Statement = aws.String(fmt.Sprintf(`UPDATE "%s" SET "recordVersionNumber"=?, "renewedAt"=? WHERE key=? AND "unit"=? AND "recordVersionNumber"<=?`, w.locks))
		out, err := w.batch(t, raw)
		require.NoError(t, err)
		if w.differs(AcceptsKeyUnquoted) {
			require.Nil(t, out[0].Error)
			return
		}
		refusedFor(t, types.BatchStatementErrorCodeEnumValidationError, out[0])
		require.Equal(t, text("rvn-1"), w.get(t, key)["recordVersionNumber"])
	})
	t.Run("two clauses", func(t *testing.T) {
		key := w.mine(t)
		two := w.renewal(key, "me", "rvn-2")
		two.Statement = aws.String(fmt.Sprintf(`UPDATE "%s" SET "recordVersionNumber"=? SET "data"=? WHERE "key"=? AND "unit"=?`, w.locks))
		two.Parameters = []types.AttributeValue{text("rvn-2"), text("new"), text(key), text("me")}
		out, err := w.batch(t, two)
		require.NoError(t, err)
		if w.differs(OneSetClause) {
			require.NotNil(t, out[0].Error)
			require.Equal(t, text("rvn-1"), w.get(t, key)["recordVersionNumber"])
			return
		}
		require.Nil(t, out[0].Error)
		require.Equal(t, text("rvn-2"), w.get(t, key)["recordVersionNumber"])
		require.Equal(t, text("new"), w.get(t, key)["data"])
	})
}

func (w *world) testRenewals(t *testing.T) {
	var all []types.BatchStatementRequest
	keys := names(fresh(t), 25)
	for i, key := range keys {
		w.put(t, w.locks, with(ours, item{"key": text(key)}))
		all = append(all, w.renewal(key, "me", fmt.Sprint("rvn-2-", i)))
	}
	out, err := w.batch(t, all...)
	require.NoError(t, err)
	for i, r := range out {
		require.Nil(t, r.Error)
		requireRow(t, with(ours, item{"key": text(keys[i]), "recordVersionNumber": text(fmt.Sprint("rvn-2-", i)), "renewedAt": number(tableNow)}), w.get(t, keys[i]))
	}
}

// testWhatIsRenewed: one statement writes both signs of life, whatever the table's time on the row was, or
// neither of them.
func (w *world) testWhatIsRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		row  item
		done bool
	}{
		"dated":                  {ours, true},
		"not dated":              {with(ours, item{"renewedAt": nil}), true},
		"dated later":            {with(ours, item{"renewedAt": number(tableNow + 1)}), true},
		"dated by a text":        {with(ours, item{"renewedAt": text("x")}), true},
		"marked":                 {with(ours, item{"pending": text("units"), "expiresAt": nil}), true},
		"this renewal again":     {with(ours, item{"recordVersionNumber": text("rvn-2"), "renewedAt": number(aliveAt)}), true},
		"a later renewal":        {with(ours, item{"recordVersionNumber": text("rvn-3")}), false},
		"no RVN":                 {with(ours, item{"recordVersionNumber": nil}), false},
		"an RVN that is no text": {with(ours, item{"recordVersionNumber": number(1)}), false},
		"a unit that is no text": {with(ours, item{"unit": number(1)}), false},
		"another's":              {with(held, item{"renewedAt": nil}), false},
	} {
		t.Run(name, func(t *testing.T) {
			key := fresh(t)
			row := w.lay(t, w.locks, item{"key": text(key)}, c.row)
			out, err := w.batch(t, w.renewal(key, "me", "rvn-2"))
			require.NoError(t, err)
			if c.done {
				require.Nil(t, out[0].Error)
				requireRow(t, with(row, item{"recordVersionNumber": text("rvn-2"), "renewedAt": number(tableNow)}), w.get(t, key))
				return
			}
			refusedFor(t, types.BatchStatementErrorCodeEnumConditionalCheckFailed, out[0])
			requireRow(t, row, w.get(t, key))
		})
	}
}

// testLostRenewals: each statement stands alone, the answers are in order, and
// one that is refused says so by its code.
func (w *world) testLostRenewals(t *testing.T) {
	keys := names(fresh(t), 4)
	rows := []item{ours, held, nil, released}
	var all []types.BatchStatementRequest
	for i, key := range keys {
		w.lay(t, w.locks, item{"key": text(key)}, rows[i])
		all = append(all, w.renewal(key, "me", "rvn-2"))
	}
	out, err := w.batch(t, all...)
	require.NoError(t, err)
	require.Nil(t, out[0].Error)
	require.Equal(t, text("rvn-2"), w.get(t, keys[0])["recordVersionNumber"])
	for i := 1; i < 4; i++ {
		refusedFor(t, types.BatchStatementErrorCodeEnumConditionalCheckFailed, out[i], keys[i])
		if rows[i] == nil {
			require.Nil(t, w.get(t, keys[i]), "a renewal created a row")
			continue
		}
		row := with(rows[i], item{"key": text(keys[i])})
		requireRow(t, row, w.get(t, keys[i]))
		if w.differs(NoRowInStatementErrors) {
			require.Nil(t, out[i].Error.Item)
		} else {
			requireRow(t, row, out[i].Error.Item)
		}
	}
}
