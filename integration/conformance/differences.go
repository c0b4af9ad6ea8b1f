package conformance

import (
	"testing"

	"github.com/holdall/holdall/integration/engines"
)

// Difference names a way in which an engine departs from what AWS documents or
// was measured to do. Each is asserted where it is known: an engine that mends
// its ways fails the suite, and its list gets shorter.
type Difference string

const (
	// AcceptsRawUnderscore: `SET _fence = :t` is accepted. AWS has a syntax error:
	// a raw name begins with a letter.
	AcceptsRawUnderscore Difference = "accepts raw names that begin with an underscore"

	// RemovesFromAbsentList: `REMOVE queue[0]` on a row without a queue is
	// accepted. AWS finds the document path invalid.
	RemovesFromAbsentList Difference = "removes an element of a list that is not there"

	// RemovesInTurn: `REMOVE queue[0], queue[2]` removes one element after the other, so
	// the second index counts in what the first has left. AWS documents that both mean the
	// list as it was before the update. The library removes from the end, which gives the
	// same result either way.
	RemovesInTurn Difference = "removes the elements of a list one after the other"

	// AcceptsKeyUnquoted: a statement may name the attribute key without quotes. It
	// is a keyword to DynamoDB Local, the only engine here that runs AWS's parser.
	AcceptsKeyUnquoted Difference = "accepts the name key without quotes in a statement"

	// OneSetClause: a statement has one SET clause. AWS documents any number.
	OneSetClause Difference = "one SET clause in a statement"

	// NoRowInStatementErrors: a refused statement does not show the row, although
	// ALL_OLD was asked for. AWS documents that it does, and captures of its answers
	// disagree: the library never relies on it.
	NoRowInStatementErrors Difference = "no row in a refused statement"

	// KeepsKeyInTransactGet: TransactGetItems with a projection returns the key as
	// well. AWS returns what was asked for.
	KeepsKeyInTransactGet Difference = "keeps the key in a projection of TransactGetItems"

	// EnablesTimeToLiveTwice: enabling a time to live that is enabled succeeds. AWS
	// answers with ValidationException.
	EnablesTimeToLiveTwice Difference = "enables a time to live twice"

	// CountsSentSize: against the 4 MB of a transaction an update counts as what it
	// sends. AWS documents the size of the items.
	CountsSentSize Difference = "counts what an update sends, not its item, against 4 MB"

	// ReadsAnySize: TransactGetItems returns more than 4 MB. AWS documents that it does not.
	ReadsAnySize Difference = "reads more than 4 MB as of one moment"

	// InvalidActionFailsRequest: an action that cannot be applied (a wrong key, a
	// wrong type, an item beyond 400 KB) fails the request with ValidationException.
	// AWS cancels the transaction and says ValidationError in that action's reason.
	InvalidActionFailsRequest Difference = "an invalid action fails the request instead of cancelling it"

	// CancelsOverExpressions: an expression in a transaction that is none, or names a
	// value that is not there, is that action's reason, ValidationError. AWS refuses
	// the request before it looks at any item.
	CancelsOverExpressions Difference = "an expression that is none cancels the transaction"

	// ChangesKeys: an update may set or remove an attribute of its item's key. AWS
	// does not change keys.
	ChangesKeys Difference = "an update may change the key"

	// OneReasonForKeys: a transaction with an update that would change a key is
	// cancelled with one reason, whatever the number of actions. On AWS there is one
	// for each.
	OneReasonForKeys Difference = "one reason for all actions if one would change a key"

	// CancelsReadsWithoutReasons: TransactGetItems with a wrong key is cancelled, and
	// no reasons are given. On AWS there is one for each item.
	CancelsReadsWithoutReasons Difference = "cancels transactional reads without reasons"

	// FailedCheckHidesSecondAction: a check that fails is reported as a failed
	// condition, although a later action has the same item. AWS refuses such a
	// request before it looks at any item.
	FailedCheckHidesSecondAction Difference = "a failed check hides a second action on its item"

	// UpdatesCostOneInTransactions: the capacity reported for a transaction has one
	// unit for an update of a small item. AWS uses two.
	UpdatesCostOneInTransactions Difference = "an update in a transaction costs one unit"

	// TakesAnyIndexKeyInUpdates: an update may give the key of an index another type,
	// or more bytes than a key has. AWS documents that no write may.
	TakesAnyIndexKeyInUpdates Difference = "an update may give the key of an index any type and length"

	// LongIndexKeys: the key of an index may have any length. AWS documents that of a
	// table's.
	LongIndexKeys Difference = "any length of an index's key"

	// ProjectsMoreThan20: an index may include any number of attributes. AWS documents
	// at most 20.
	ProjectsMoreThan20 Difference = "more than 20 attributes in one index"

	// LooksAtNoProjection: all indexes together may include more than 100 attributes,
	// one twice, or one without a name. AWS documents that they may not.
	LooksAtNoProjection Difference = "does not look at the attributes of projections"

	// IndexesByThreeKeys: an index may have three keys.
	IndexesByThreeKeys Difference = "an index of three keys"

	// NothingForUnprojected: an attribute that an index does not have is missing from
	// the answer, and from what a filter sees. AWS refuses the request, or, for an
	// answer of a local index, reads the table.
	NothingForUnprojected Difference = "answers without what an index does not have"

	// LooksForAnything: a query of an index may look for a value that no key has, of
	// another type or empty.
	LooksForAnything Difference = "looks for any value in an index"

	// StartsAnywhere: a query of an index may begin after a key that it does not ask for.
	StartsAnywhere Difference = "a query of an index starts anywhere"

	// NoStatementCapacity: no capacity is reported for BatchExecuteStatement.
	NoStatementCapacity Difference = "no capacity for statements"
)

// What is known of each engine.
var (
	OfDynamoDBLocal = []Difference{
		CountsSentSize, InvalidActionFailsRequest, CancelsReadsWithoutReasons, FailedCheckHidesSecondAction,
		OneReasonForKeys, UpdatesCostOneInTransactions, NoStatementCapacity,
		TakesAnyIndexKeyInUpdates, ProjectsMoreThan20,
	}
	OfDynoxide = []Difference{
		AcceptsRawUnderscore, RemovesFromAbsentList, RemovesInTurn, AcceptsKeyUnquoted, OneSetClause,
		NoRowInStatementErrors, KeepsKeyInTransactGet, EnablesTimeToLiveTwice, CountsSentSize, CancelsOverExpressions, ChangesKeys,
		ReadsAnySize, LongIndexKeys, ProjectsMoreThan20, LooksAtNoProjection, IndexesByThreeKeys,
		NothingForUnprojected, LooksForAnything, StartsAnywhere,
	}
	OfMemdynamo = []Difference{NoRowInStatementErrors, AcceptsKeyUnquoted}
)

// Of is what is known of an engine; of AWS, against which the suite is written, nothing.
func Of(kind engines.Kind) []Difference {
	switch kind {
	case engines.KindLocal:
		return OfDynamoDBLocal
	case engines.KindDynoxide:
		return OfDynoxide
	case engines.KindEmbedded:
		return OfMemdynamo
	}
	return nil
}

// differs reports whether a difference is known of this engine. The test that
// asks asserts the engine's own behaviour then.
func (w *world) differs(d Difference) bool {
	w.seen[d] = true
	return w.known[d]
}

// differencesSeen fails when a difference is listed that no test asks for: its
// entry would stay for ever, whatever the engine does.
func (w *world) differencesSeen(t *testing.T) {
	for d := range w.known {
		if !w.seen[d] {
			t.Errorf("%q is listed, and no test asks for it", d)
		}
	}
}
