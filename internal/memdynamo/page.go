package memdynamo

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const maxPage = 1 << 20

// page is one answer of a Query or a Scan as it fills.
type page struct {
	cond, filter, proj *bound
	sel                types.Select
	limit              int    // 0 for none
	start              []attr // nil for none

	view
	consistent bool
	fetches    bool // the index does not have what is asked for: it is read from the table

	found   []*item
	scanned int
	size    int     // of what was scanned
	fetched float64 // units for what was fetched, consistently
	last    *item   // set where the page ended before the range did, or may have
}

// newPage fills a page, under the mutex, by what a request asks for: that of a
// Scan has no key condition.
func (db *DB) newPage(in *dynamodb.QueryInput, fill func(*page) error) (*page, error) {
	pg := &page{sel: in.Select, limit: int(aws.ToInt32(in.Limit)), consistent: aws.ToBool(in.ConsistentRead)}
	b, err := db.cache.binder(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	if pg.cond, err = b.bind(keyExpr, in.KeyConditionExpression); err != nil {
		return nil, err
	}
	if in.Limit != nil && pg.limit < 1 {
		return nil, constraint(pg.limit, "limit", "have value greater than or equal to 1")
	}
	if pg.filter, err = b.bind(filterExpr, in.FilterExpression); err != nil {
		return nil, err
	}
	if pg.proj, err = b.bind(projExpr, in.ProjectionExpression); err != nil {
		return nil, err
	}
	if err := b.done("FilterExpression is null"); err != nil {
		return nil, err
	}
	if err := checkSelect(in.Select, in.ProjectionExpression != nil, in.IndexName != nil); err != nil {
		return nil, err
	}
	if in.ExclusiveStartKey != nil {
		if pg.start, err = decodeMap(in.ExclusiveStartKey, 0); err != nil {
			return nil, validation("The provided starting key is invalid: %s", err)
		}
	}
	db.begin()
	defer db.mu.Unlock()
	if err := pg.open(db.tables[*in.TableName], in.IndexName); err != nil {
		return nil, err
	}
	if err := fill(pg); err != nil {
		return nil, err
	}
	db.charge(pg.costs())
	return pg, nil
}

func checkSelect(sel types.Select, projects, index bool) error {
	what := string(sel)
	switch sel {
	case "":
		return nil
	case types.SelectSpecificAttributes:
		if !projects {
			return validation("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
		return nil
	case types.SelectAllProjectedAttributes:
		if !index {
			return validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case types.SelectAllAttributes:
	case types.SelectCount:
		what = "only the Count"
	default:
		return oneOf(sel, "select", sel.Values()...)
	}
	if projects {
		return validation("Cannot specify the ProjectionExpression when choosing to get %s", what)
	}
	return nil
}

// open has the page read a table, or an index of it; the caller holds the mutex.
func (pg *page) open(t *table, index *string) (err error) {
	if t == nil {
		return tableNotFound()
	}
	if pg.view, err = t.view(index); err != nil || pg.ix == nil {
		return err
	}
	ix := pg.ix
	if ix.global && pg.consistent {
		return validation("Consistent reads are not supported on global secondary indexes")
	}
	if pg.filter != nil {
		if missing := ix.lacks(pg.filter.filtered()); len(missing) > 0 {
			return validation(invalidParameter+"Secondary index %s does not project one or more filter attributes: %s", ix.name, missing)
		}
	}
	if pg.sel == types.SelectAllAttributes && ix.projected != types.ProjectionTypeAll {
		if ix.global {
			return validation(invalidParameter+"Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", ix.name)
		}
		pg.fetches = true
	}
	if pg.proj != nil {
		missing := ix.lacks(pg.proj.projected())
		if len(missing) > 0 && ix.global {
			return validation(invalidParameter+"Global secondary index %s does not project %s", ix.name, missing)
		}
		pg.fetches = len(missing) > 0
	}
	return nil
}

// take adds a row to the page and reports whether the page takes more. It ends at its
// limit, or with the item that makes it a megabyte.
func (pg *page) take(r row) bool {
	pg.scanned++
	pg.size += r.item.size
	if pg.filter.test(r.item) {
		it := r.item
		if pg.fetches {
			it = pg.t.get(r.of)
			pg.fetched += readUnits(it.size, true)
		}
		pg.found = append(pg.found, it)
	}
	if pg.scanned == pg.limit || pg.size >= maxPage {
		pg.last = r.item
		return false
	}
	return true
}

// costs is what reading the page costs: what was scanned together, what was fetched item
// by item.
func (pg *page) costs() bill {
	c := charge{table: pg.t.name}
	if pg.ix == nil {
		c.read = readUnits(pg.size, pg.consistent)
		return bill{c}
	}
	c.of(pg.ix).read = readUnits(pg.size, pg.consistent)
	if c.read = pg.fetched; !pg.consistent {
		c.read /= 2
	}
	return bill{c}
}

func (pg *page) items() []map[string]types.AttributeValue {
	if pg.sel == types.SelectCount {
		return nil
	}
	out := make([]map[string]types.AttributeValue, len(pg.found))
	for i, it := range pg.found {
		out[i] = encodeMap(pg.proj.project(it.attrs))
	}
	return out
}

func (pg *page) lastKey() map[string]types.AttributeValue {
	if pg.last == nil {
		return nil
	}
	return encodeMap(pg.keyAttrs(pg.last))
}

// view is what a Query or a Scan reads: a table, or one of its indexes.
type view struct {
	schema
	*store
	t  *table
	ix *index // nil for the table itself
}

func (t *table) view(index *string) (view, error) {
	if index == nil {
		return view{schema: t.schema, store: &t.store, t: t}, nil
	}
	for _, ix := range t.indexes {
		if ix.name == *index {
			return view{schema: ix.schema, store: &ix.store, t: t, ix: ix}, nil
		}
	}
	return view{}, validation("The table does not have the specified index: %s", *index)
}

// keys is the attributes that say where in the view an item is: its own keys and, of an
// index, those of the table.
func (v *view) keys() []keyAttr {
	var out []keyAttr
	for _, a := range []keyAttr{v.hash, v.rng, v.t.hash, v.t.rng} {
		if a.name != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// keyAttrs is where an item is, as LastEvaluatedKey has it.
func (v *view) keyAttrs(it *item) []attr {
	var out []attr
	for _, a := range v.keys() {
		out = append(out, attr{a.name, it.get(a.name)})
	}
	sortAttrs(out)
	return out
}

// startKey is the place that ExclusiveStartKey names, where no item need be.
func (v *view) startKey(attrs []attr) (hash string, at spot, err error) {
	wrong := func(err error) (string, spot, error) {
		return "", spot{}, validation("The provided starting key is invalid: %s", messageOf(err))
	}
	keys := v.keys()
	if len(attrs) != len(keys) {
		return wrong(validation(keyMismatch))
	}
	for _, a := range keys {
		if got := lookup(attrs, a.name); got == nil || got.kind() != a.kind {
			return wrong(validation(keyMismatch))
		}
	}
	k, bad := v.t.encodeKey(lookup(attrs, v.t.hash.name), lookup(attrs, v.t.rng.name))
	if bad != nil {
		return wrong(bad)
	}
	if v.ix == nil {
		return k.hash, spot{rng: k.rng}, nil
	}
	if hash, err = encodeKeyValue(lookup(attrs, v.hash.name), v.hash.name); err != nil {
		return wrong(err)
	}
	at.of = k
	if v.rng.name != "" {
		if at.rng, err = encodeKeyValue(lookup(attrs, v.rng.name), v.rng.name); err != nil {
			return wrong(err)
		}
	}
	return hash, at, nil
}
