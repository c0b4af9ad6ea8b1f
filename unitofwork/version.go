package unitofwork

import (
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/ordering"
)

// counted is a record whose changes others count, as the unit has first read it.
type counted struct {
	table   string
	key     map[string]types.AttributeValue
	guard   ordering.Key
	version actions.Version
}

// version is the attribute in which others count the record's changes, empty if there are no
// such others.
func (r *Ref[T]) version() string {
	if r.table.Guard == nil {
		return ""
	}
	return r.table.Version
}

// sawVersions notes the versions of records that were read. Without locks, one that has changed since the
// unit read it first makes the run void; under locks the commit will be refused.
func (u *Unit) sawVersions(records []Record, items []map[string]types.AttributeValue, shown []parsed) error {
	for i, r := range records {
		attribute := r.version()
		if attribute == "" {
			continue
		}
		table, key, _ := r.location()
		version, err := actions.ReadVersion(attribute, firstName(key), items[i])
		if err != nil {
			return refusal(table, actions.KeyText(key), err)
		}
		record := identityOf(r)
		first, again := u.counted[record]
		switch {
		case !again && u.counted == nil:
			u.counted = map[string]counted{record: {table, key, shown[i].guard, version}}
		case !again:
			u.counted[record] = counted{table, key, shown[i].guard, version}
		case u.optimistic != nil && first.version != version:
			return u.voidLocked(shown[i].guard, writtenSince)
		}
	}
	return nil
}

// firstName is the name of an attribute of a key, always the same one.
func firstName(key map[string]types.AttributeValue) string {
	return slices.Min(slices.Collect(maps.Keys(key)))
}

// versionOf is the version with which the unit has read a record, if it has.
func (u *Unit) versionOf(r Record) actions.Version {
	if c, read := u.counted[identityOf(r)]; read {
		return c.version
	}
	_, key, _ := r.location()
	return actions.Version{Attribute: r.version(), Key: firstName(key)}
}

// counts reports whether a write of a record counts its change: its Table has a Version, or another
// Table, by which the unit has read it, has one.
func (u *Unit) counts(r Record) bool {
	return r.version() != "" || len(u.counted) > 0 && u.versionOf(r).Attribute != ""
}

// knowsVersion returns an error for a record that is to be written whole, and whose number is not
// known.
func (u *Unit) knowsVersion(r Record) error {
	if r.version() != "" && !u.versionOf(r).Read {
		return errUncounted
	}
	return nil
}

var errUncounted = errors.New("its Table has a Version, and the unit has not read the record, so the next number is not known: Get it first")

// withVersion returns an action that counts the record's changes as others do, and the version that
// it wants, nil if it wants none.
func (u *Unit) withVersion(r Record, item types.TransactWriteItem) (types.TransactWriteItem, *actions.Version, error) {
	if err := u.stage.stamper.Check(item); err != nil {
		return item, nil, err
	}
	version := u.versionOf(r)
	item, err := version.On(item)
	return item, &version, err
}

// checkVersions stages a check of each record that the unit has read and does not write. A unit
// that writes nothing has nothing to commit.
func (u *Unit) checkVersions() {
	if u.stage.err != nil || u.stage.verdict != nil || len(u.stage.writes) == 0 && u.work.ID == "" {
		return
	}
	for _, record := range slices.Sorted(maps.Keys(u.counted)) {
		if c := u.counted[record]; !u.stage.records[record] {
			_ = u.stage.add(c.guard, c.key, c.version.Check(c.table, c.key), ErrCondition, &c.version, nil) // it keeps its error
		}
	}
}

// foundOtherwise says how a record was found that a write wants otherwise.
func (u *Unit) foundOtherwise(w write, item map[string]types.AttributeValue) error {
	e := &versionError{Attribute: w.version.Attribute, Read: w.version.String(), Found: "none that holdall knows"}
	if now, err := actions.ReadVersion(w.version.Attribute, firstName(w.key), item); err == nil {
		e.Found = now.String()
	}
	return e
}
