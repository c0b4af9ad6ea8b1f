package memdynamo

import (
	"cmp"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type verb uint8

const (
	verbPut verb = iota
	verbUpdate
	verbDelete
	verbCheck
)

// action is one write, whichever call it came by: alone, in a transaction, in
// a batch, as a statement; or, as a check without a condition, the reading of
// an item. It is prepared without the mutex and without looking at any table.
type action struct {
	verb   verb
	table  string
	attrs  []attr // the key; a put's whole item
	size   int    // of a put's item
	cond   *bound
	update *bound
	proj   *bound // of the reading of an item

	mustExist bool // PartiQL's UPDATE
	mustBeNew bool // PartiQL's INSERT
	absentOK  bool // PartiQL's DELETE: no item, no condition
	wantOld   bool // ReturnValuesOnConditionCheckFailure

	// where, what was there, what will be: filled in under the mutex.
	t        *table
	key      key
	old, new *item
	bad      error // what evaluate says, if it is of the whole request
}

var (
	errCondition = conditionFailed(nil)
	errDuplicate = errors.New("Duplicate primary key exists in table")
)

// request is a write as inputs have it.
type request struct {
	verb      verb
	table     *string
	item      map[string]types.AttributeValue // a put's; the key of any other
	names     map[string]string
	values    map[string]types.AttributeValue
	cond      *string
	update    *string
	onFailure types.ReturnValuesOnConditionCheckFailure
	returns   types.ReturnValue
}

// prepare makes an action of a request.
func (db *DB) prepare(in request) (a action, err error) {
	if err := a.decode(in.verb, *in.table, in.item); err != nil {
		return a, err
	}
	if err := cmp.Or(checkReturns(in.verb, in.returns), a.setOnFailure(in.onFailure)); err != nil {
		return a, err
	}
	b, err := db.cache.binder(in.names, in.values)
	if err != nil {
		return a, err
	}
	if a.update, err = b.bind(updateExpr, in.update); err != nil {
		return a, err
	}
	if a.cond, err = b.bind(condExpr, in.cond); err != nil {
		return a, err
	}
	without := "ConditionExpression is null"
	if a.verb == verbUpdate {
		without = "UpdateExpression and ConditionExpression are null"
	}
	return a, b.done(without)
}

// decode begins an action with a put's item, or with the key of any other.
func (a *action) decode(v verb, table string, in map[string]types.AttributeValue) (err error) {
	a.verb, a.table = v, table
	if a.attrs, err = decodeMap(in, 0); err != nil {
		return validation("%s", err)
	}
	if v != verbPut {
		return nil
	}
	return a.weigh()
}

// weigh takes the size of a put's item and refuses one that is too large.
func (a *action) weigh() error {
	if a.size = attrsSize(a.attrs); a.size > maxItem {
		return validation("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// checkReturns checks ReturnValues: only an update can return more than what was there.
func checkReturns(v verb, what types.ReturnValue) error {
	if v == verbUpdate {
		return oneOf(what, "returnValues", types.ReturnValueNone, types.ReturnValueAllOld,
			types.ReturnValueUpdatedOld, types.ReturnValueAllNew, types.ReturnValueUpdatedNew)
	}
	switch what {
	case types.ReturnValueAllNew, types.ReturnValueUpdatedNew, types.ReturnValueUpdatedOld:
		return validation("ReturnValues can only be ALL_OLD or NONE")
	}
	return oneOf(what, "returnValues", types.ReturnValueAllOld, types.ReturnValueNone)
}

func (a *action) setOnFailure(what types.ReturnValuesOnConditionCheckFailure) error {
	a.wantOld = what == types.ReturnValuesOnConditionCheckFailureAllOld
	return oneOf(what, "returnValuesOnConditionCheckFailure",
		types.ReturnValuesOnConditionCheckFailureAllOld, types.ReturnValuesOnConditionCheckFailureNone)
}

// find is locate for an action by itself.
func (db *DB) find(a *action) error {
	mismatch, bad := db.locate(a)
	return cmp.Or(bad, mismatch)
}

// locate finds an action's table and key. The first error is one of the
// action against its table's schema, which a transaction reports as that
// action's reason; the second is one of the request. The caller holds the
// mutex.
func (db *DB) locate(a *action) (mismatch, bad error) {
	if a.t = db.tables[a.table]; a.t == nil {
		return nil, tableNotFound()
	}
	if a.verb == verbPut {
		a.key, mismatch, bad = a.t.itemKey(a.attrs)
		if mismatch == nil && bad == nil {
			mismatch, bad = a.t.checkKeys(a.attrs, false)
		}
	} else {
		a.key, mismatch, bad = a.t.exactKey(a.attrs)
	}
	if mismatch == nil && bad == nil && a.update != nil {
		for _, x := range a.update.update {
			if name := x.p[0].resolve(a.update.names); a.t.isKey(name) {
				return validation(invalidParameter+"Cannot update attribute %s. This attribute is part of the key", name), nil
			}
		}
	}
	return mismatch, bad
}

// evaluate computes what a located action would do, or why it may not:
// errCondition, errDuplicate or a validation error. Nothing changes yet. The
// caller holds the mutex.
func (a *action) evaluate() error {
	a.old = a.t.get(a.key)
	switch {
	case a.mustBeNew && a.old != nil:
		return errDuplicate
	case a.mustExist && a.old == nil:
		return errCondition
	case a.absentOK && a.old == nil:
		return nil
	case !a.cond.test(a.old):
		return errCondition
	}
	switch a.verb {
	case verbPut:
		a.new = &item{attrs: a.attrs, size: a.size}
	case verbCheck:
		a.new = a.old
	case verbUpdate:
		return a.evaluateUpdate()
	}
	return nil
}

func (a *action) evaluateUpdate() error {
	base := a.old
	if base == nil {
		base = newItem(a.attrs)
	}
	if a.update == nil {
		a.new = base
		return nil
	}
	attrs, err := a.update.updated(base)
	if err != nil {
		return validation("%s", err)
	}
	mismatch, bad := a.t.checkKeys(attrs, true)
	if a.bad = bad; mismatch != nil || bad != nil {
		return cmp.Or(bad, mismatch)
	}
	a.new = newItem(attrs)
	if a.new.size > maxItem {
		return validation("Item size to update has exceeded the maximum allowed size")
	}
	if a.update.deepened() && nesting(mapValue(attrs))-1 > maxNesting {
		return validation(nestedTooDeep)
	}
	return nil
}

// deepened reports whether an update can nest values deeper than its operands
// or the old item did: whether it writes below the top level.
func (b *bound) deepened() bool {
	return slices.ContainsFunc(b.update, func(a assignment) bool { return len(a.p) > 1 })
}

// nesting is how many lists and maps are inside each other in a value.
func nesting(v value) int {
	deepest := 0
	switch v := v.(type) {
	case listValue:
		for _, e := range v {
			deepest = max(deepest, nesting(e))
		}
	case mapValue:
		for i := range v {
			deepest = max(deepest, nesting(v[i].value))
		}
	default:
		return 0
	}
	return deepest + 1
}

// store does what evaluate computed. The caller holds the mutex.
func (a *action) store() {
	if a.verb != verbCheck && a.new != a.old {
		a.t.set(a.key, a.new)
	}
}

// units is what the write costs, failed or not, outside transactions.
func (a *action) units() float64 {
	return units(max(a.old.bytes(), a.new.bytes()), writeUnit)
}
