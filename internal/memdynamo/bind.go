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

func (c *exprCache) binder(names map[string]string, values map[string]types.AttributeValue) (b *binder, err error) {
	b = &binder{cache: c}
	b.names, err = placeholders("ExpressionAttributeNames", '#', names, func(name string) (string, error) {
		if name == "" {
			return "", errEmptyName
		}
		return name, nil
	})
	if err != nil {
		return nil, err
	}
	b.values, err = placeholders("ExpressionAttributeValues", ':', values, func(av types.AttributeValue) (value, error) {
		return decode(av, 0)
	})
	return b, err
}

// placeholders reads a field of a request, in the order of its keys: the error
// for two bad ones is always the same one.
func placeholders[In, T any](field string, mark byte, in map[string]In, read func(In) (T, error)) ([]placeholder[T], error) {
	if in == nil {
		return nil, nil
	}
	if len(in) == 0 {
		return nil, validation("%s must not be empty", field)
	}
	out := make([]placeholder[T], 0, len(in))
	for key := range in {
		out = append(out, placeholder[T]{key: key})
	}
	slices.SortFunc(out, func(a, b placeholder[T]) int { return strings.Compare(a.key, b.key) })
	for i := range out {
		key := out[i].key
		if !isPlaceholder(key, mark) {
			return nil, validation("%s contains invalid key: Syntax error; key: %q", field, key)
		}
		var err error
		if out[i].val, err = read(in[key]); err != nil {
			return nil, validation("%s contains invalid value: %s for key %s", field, strings.TrimSuffix(err.Error(), "."), key)
		}
	}
	return out, nil
}

// isPlaceholder reports whether the lexer could read the key as one token.
func isPlaceholder(key string, mark byte) bool {
	if len(key) < 2 || len(key) > 255 || key[0] != mark {
		return false
	}
	return word(key, 1) == len(key)
}

// filled are the values of an expression's slots.
func filled[T any](ps []placeholder[T], keys []string, kind exprKind, what string) ([]T, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	out := make([]T, len(keys))
	for i, key := range keys {
		at, ok := slices.BinarySearchFunc(ps, key, func(p placeholder[T], key string) int {
			return strings.Compare(p.key, key)
		})
		if !ok {
			return nil, validation("Invalid %s: An expression attribute %s: %s", kind, what, key)
		}
		ps[at].used = true
		out[i] = ps[at].val
	}
	return out, nil
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
	x.names, err = filled(b.names, e.names, kind, "name used in the document path is not defined; attribute name")
	if err != nil {
		return nil, err
	}
	x.slots, err = filled(b.values, e.values, kind, "value used in expression is not defined; attribute value")
	if err != nil {
		return nil, err
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
