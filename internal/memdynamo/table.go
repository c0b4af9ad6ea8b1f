package memdynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxHashKey  = 2048
	maxRangeKey = 1024
	maxItem     = 400 << 10
)

// table is a table's definition, immutable, its items, and its indexes.
type table struct {
	schema
	name       string
	id         string
	defined    []keyAttr // all keys, the indexes', too, as the definition has them
	created    time.Time
	billing    types.BillingMode
	throughput types.ProvisionedThroughput
	protected  bool

	ttl     string  // the attribute, "" while disabled
	soonest decimal // no item that is yet to expire does so earlier
	store
	indexes []*index // the global ones first
}

// schema is the keys of a table or an index.
type schema struct {
	hash, rng keyAttr // rng.name is "" without a range key
}

type keyAttr struct {
	name string
	kind kind
}

// isKey reports whether an attribute is one of the keys.
func (s schema) isKey(name string) bool {
	return name == s.hash.name || name == s.rng.name && name != ""
}

// get is the item of a primary key, or nil.
func (t *table) get(k key) *item { return t.store.get(k.hash, spot{rng: k.rng}) }

// set stores an item under its key, or, if it is nil, deletes what is there. All
// indexes follow.
func (t *table) set(k key, it *item) {
	if len(t.indexes) > 0 {
		old := t.get(k)
		for _, ix := range t.indexes {
			ix.follow(k, old, it)
		}
	}
	if at, ok := it.get(t.ttl).(decimal); ok && at.cmp(t.soonest) < 0 {
		t.soonest = at
	}
	t.store.set(k.hash, spot{rng: k.rng}, it)
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
	s := encoded(v)
	if s == "" {
		return "", validation(notValidKey+"The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", keyWord(v.kind()), name)
	}
	return s, nil
}

// encoded is a value of a key's type as strings sort: "" only if it is empty.
func encoded(v value) string {
	switch v := v.(type) {
	case strValue:
		return string(v)
	case binValue:
		return string(v)
	}
	return v.(decimal).sortable() // schemas allow no others
}

// keyWord is what messages call an empty value.
func keyWord(k kind) string {
	if k == kindB {
		return "binary"
	}
	return "string"
}
