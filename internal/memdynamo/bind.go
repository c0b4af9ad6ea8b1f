package memdynamo

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// bound is an expression with a request's names and values in its slots.
type bound struct {
	*expr
	names []string
	slots []value
}

// binder fills the expressions of one request, or of one action of a
// transaction, which share ExpressionAttributeNames and -Values, and knows at
// the end which of those nobody used.
type binder struct {
	cache  *exprCache
	names  []placeholder[string]
	values []placeholder[value]
	bound  bool // there was an expression
}

type placeholder[T any] struct {
	key  string
	val  T
	used bool
}

func (c *exprCache) binder(names map[string]string, values map[string]types.AttributeValue) (*binder, error) {
	b := &binder{cache: c}
	if names != nil {
		if len(names) == 0 {
			return nil, validation("ExpressionAttributeNames must not be empty")
		}
		b.names = make([]placeholder[string], 0, len(names))
		for _, key := range sortedKeys(names, make([]string, 0, 16)) {
			if err := checkName(key, names[key]); err != nil {
				return nil, err
			}
			b.names = append(b.names, placeholder[string]{key: key, val: names[key]})
		}
	}
	if values != nil {
		if len(values) == 0 {
			return nil, validation("ExpressionAttributeValues must not be empty")
		}
		b.values = make([]placeholder[value], 0, len(values))
		for _, key := range sortedKeys(values, make([]string, 0, 16)) {
			if !isPlaceholder(key, ':') {
				return nil, validation("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
			}
			v, err := decode(values[key], 0)
			if err != nil {
				return nil, validation("ExpressionAttributeValues contains invalid value: %s for key %s",
					strings.TrimSuffix(err.Error(), "."), key)
			}
			b.values = append(b.values, placeholder[value]{key: key, val: v})
		}
	}
	return b, nil
}

func checkName(key, name string) error {
	if !isPlaceholder(key, '#') {
		return validation("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
	}
	if name == "" {
		return validation("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
	}
	return nil
}

// isPlaceholder reports whether the lexer could read the key as one token.
func isPlaceholder(key string, mark byte) bool {
	if len(key) < 2 || len(key) > 255 || key[0] != mark {
		return false
	}
	return word(key, 1) == len(key)
}

// sortedKeys appends a map's keys in order: the error for two bad ones is always
// the same one.
func sortedKeys[V any](m map[string]V, to []string) []string {
	for key := range m {
		to = append(to, key)
	}
	slices.Sort(to)
	return to
}

func findPlaceholder[T any](ps []placeholder[T], key string) *placeholder[T] {
	i, ok := slices.BinarySearchFunc(ps, key, func(p placeholder[T], key string) int { return strings.Compare(p.key, key) })
	if !ok {
		return nil
	}
	ps[i].used = true
	return &ps[i]
}

// bind parses an expression and fills its slots; nil for none.
func (b *binder) bind(kind exprKind, text *string) (*bound, error) {
	if text == nil {
		return nil, nil
	}
	b.bound = true
	e, err := b.cache.parse(kind, *text)
	if err != nil {
		return nil, err
	}
	x := &bound{expr: e}
	if len(e.names) > 0 {
		x.names = make([]string, len(e.names))
	}
	for i, key := range e.names {
		p := findPlaceholder(b.names, key)
		if p == nil {
			return nil, validation("Invalid %s: An expression attribute name used in the document path is not defined; attribute name: %s",
				kind, key)
		}
		x.names[i] = p.val
	}
	if len(e.values) > 0 {
		x.slots = make([]value, len(e.values))
	}
	for i, key := range e.values {
		p := findPlaceholder(b.values, key)
		if p == nil {
			return nil, validation("Invalid %s: An expression attribute value used in expression is not defined; attribute value: %s",
				kind, key)
		}
		x.slots[i] = p.val
	}
	if err := x.check(); err != nil {
		return nil, validation("Invalid %s: %s", kind, err)
	}
	return x, nil
}

// done refuses what no expression used. without says which expressions the
// request could have had, for the message where it had none.
func (b *binder) done(without string) error {
	if !b.bound {
		if b.names != nil {
			return validation("ExpressionAttributeNames can only be specified when using expressions")
		}
		if b.values != nil {
			return validation("ExpressionAttributeValues can only be specified when using expressions: %s", without)
		}
		return nil
	}
	if keys := unused(b.names); keys != "" {
		return validation("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", keys)
	}
	if keys := unused(b.values); keys != "" {
		return validation("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", keys)
	}
	return nil
}

func unused[T any](ps []placeholder[T]) string {
	var keys []string
	for i := range ps {
		if !ps[i].used {
			keys = append(keys, ps[i].key)
		}
	}
	return strings.Join(keys, ", ")
}
