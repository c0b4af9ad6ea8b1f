package memdynamo

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxHashKey  = 2048
	maxRangeKey = 1024
	maxItem     = 400 << 10
)

// table is a table's definition, immutable, and its items.
type table struct {
	name       string
	id         string
	hash, rng  keyAttr // rng.name is "" without a range key
	created    time.Time
	billing    types.BillingMode
	throughput types.ProvisionedThroughput
	protected  bool

	ttl   string // the attribute, "" while disabled
	parts map[string]*partition
	// order is the partitions' keys, sorted, as far as sorted says so; keys of
	// partitions that are gone stay until the next sorting.
	order  []string
	sorted bool
	count  int
	bytes  int
}

type keyAttr struct {
	name string
	kind kind
}

// partition is the items of one hash key, sorted by their encoded range key;
// without a range key there is one, its range key "".
type partition struct{ rows []row }

type row struct {
	rng  string
	item *item
}

// key is an encoded primary key: strings sort as DynamoDB sorts the values.
type key struct{ hash, rng string }

func (p *partition) find(rng string) (int, bool) {
	if p == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(p.rows, rng, func(r row, s string) int { return strings.Compare(r.rng, s) })
}

func (t *table) get(k key) *item {
	p := t.parts[k.hash]
	if i, ok := p.find(k.rng); ok {
		return p.rows[i].item
	}
	return nil
}

// set stores an item under its key, or, if it is nil, deletes what is there.
func (t *table) set(k key, it *item) {
	p := t.parts[k.hash]
	i, ok := p.find(k.rng)
	switch {
	case it == nil && !ok:
	case it == nil:
		t.count--
		t.bytes -= p.rows[i].item.size
		p.rows = slices.Delete(p.rows, i, i+1)
		if len(p.rows) == 0 {
			delete(t.parts, k.hash)
			t.sorted = false
		}
	case ok:
		t.bytes += it.size - p.rows[i].item.size
		p.rows[i].item = it
	default:
		if p == nil {
			p = new(partition)
			t.parts[k.hash] = p
			t.order = append(t.order, k.hash)
			t.sorted = false
			if len(t.order) > 2*len(t.parts)+64 {
				t.partitions() // or keys that come and go would pile up
			}
		}
		t.count++
		t.bytes += it.size
		p.rows = slices.Insert(p.rows, i, row{k.rng, it})
	}
}

// partitions is the keys of all partitions, sorted.
func (t *table) partitions() []string {
	if !t.sorted {
		slices.Sort(t.order)
		t.order = slices.Compact(t.order)
		t.order = slices.DeleteFunc(t.order, func(k string) bool { return t.parts[k] == nil })
		t.sorted = true
	}
	return t.order
}

// isKey reports whether an attribute is part of the primary key.
func (t *table) isKey(name string) bool {
	return name == t.hash.name || name == t.rng.name && name != ""
}

// exactKey encodes a key given as such, which must be the key's attributes
// and no others. The second result says that the schema is met and the value
// is not: DynamoDB sees that before it looks at any table.
func (t *table) exactKey(attrs []attr) (k key, mismatch, bad error) {
	want := 1
	if t.rng.name != "" {
		want = 2
	}
	hash := lookup(attrs, t.hash.name)
	if len(attrs) != want || hash == nil || hash.kind() != t.hash.kind {
		return key{}, validation(keyMismatch), nil
	}
	var rng value
	if want == 2 {
		if rng = lookup(attrs, t.rng.name); rng == nil || rng.kind() != t.rng.kind {
			return key{}, validation(keyMismatch), nil
		}
	}
	k, bad = t.encodeKey(hash, rng)
	return k, nil, bad
}

// itemKey encodes the key of a whole item.
func (t *table) itemKey(attrs []attr) (k key, mismatch, bad error) {
	var v [2]value
	for i, a := range []keyAttr{t.hash, t.rng} {
		if a.name == "" {
			continue
		}
		v[i] = lookup(attrs, a.name)
		if v[i] == nil {
			return key{}, validation(invalidParameter+"Missing the key %s in the item", a.name), nil
		}
		if v[i].kind() != a.kind {
			return key{}, validation(invalidParameter+"Type mismatch for key %s expected: %s actual: %s",
				a.name, a.kind, v[i].kind()), nil
		}
	}
	k, bad = t.encodeKey(v[0], v[1])
	return k, nil, bad
}

func (t *table) encodeKey(hash, rng value) (k key, err error) {
	if k.hash, err = encodeKeyValue(hash, t.hash.name); err != nil {
		return key{}, err
	}
	if len(k.hash) > maxHashKey {
		return key{}, validation(invalidParameter+"Size of hashkey has exceeded the maximum size limit of%d bytes", maxHashKey)
	}
	if rng == nil {
		return k, nil
	}
	if k.rng, err = encodeKeyValue(rng, t.rng.name); err != nil {
		return key{}, err
	}
	if len(k.rng) > maxRangeKey {
		return key{}, validation(invalidParameter+"Aggregated size of all range keys has exceeded the size limit of %d bytes", maxRangeKey)
	}
	return k, nil
}

func encodeKeyValue(v value, name string) (string, error) {
	switch v := v.(type) {
	case strValue:
		if v == "" {
			return "", validation(notValidKey+"The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
		}
		return string(v), nil
	case binValue:
		if v == "" {
			return "", validation(notValidKey+"The AttributeValue for a key attribute cannot contain an empty binary value. Key: %s", name)
		}
		return string(v), nil
	case decimal:
		return v.sortable(), nil
	}
	return "", validation(keyMismatch) // not reached: schemas allow no others
}

// keyAttrs is an item's key, as LastEvaluatedKey has it.
func (t *table) keyAttrs(it *item) []attr {
	out := []attr{{t.hash.name, it.get(t.hash.name)}}
	if t.rng.name != "" {
		out = append(out, attr{t.rng.name, it.get(t.rng.name)})
	}
	sortAttrs(out)
	return out
}
