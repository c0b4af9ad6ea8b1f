package memdynamo

import (
	"cmp"
	"sort"
	"strings"
)

// keyRange is what a key condition asks for: one partition, and in it the
// rows from the first that is not before the range to the first beyond it.
type keyRange struct {
	hash   string
	before func(rng string) bool
	beyond func(rng string) bool
}

// bounds are the places in a partition that the range is between.
func (r *keyRange) bounds(p *partition) (from, to int) {
	if p == nil {
		return 0, 0
	}
	from = sort.Search(len(p.rows), func(i int) bool { return !r.before(p.rows[i].rng) })
	to = sort.Search(len(p.rows), func(i int) bool { return r.beyond(p.rows[i].rng) })
	return from, max(from, to)
}

func never(string) bool { return false }

// keyRange reads a key condition against the keys of what is queried.
func (s schema) keyRange(b *bound) (*keyRange, error) {
	all := conjuncts(b.cond, nil)
	if len(all) > 2 {
		return nil, validation("Conditions can be of length 1 or 2 only")
	}
	byName := map[string]*node{}
	for i := range all {
		n := facing(all[i])
		name, err := b.keyName(n)
		if err != nil {
			return nil, err
		}
		if byName[name] != nil {
			return nil, validation("KeyConditionExpressions must only contain one condition per key")
		}
		byName[name] = n
	}
	n, ok := byName[s.hash.name]
	if !ok {
		return nil, validation("Query condition missed key schema element: %s", s.hash.name)
	}
	if n.op != "=" {
		return nil, validation("Query key condition not supported")
	}
	hash, err := b.keyValue(n.args[1], s.hash)
	if err != nil {
		return nil, err
	}
	r := &keyRange{hash: hash, before: never, beyond: never}
	if len(all) == 1 {
		return r, nil
	}
	n, ok = byName[s.rng.name]
	if !ok || s.rng.name == "" {
		return nil, validation("Query condition missed key schema element: %s", s.rng.name)
	}
	return r, b.narrow(r, n, s.rng)
}

// facing turns value op path into path op value.
func facing(n *node) *node {
	switch n.op {
	case "=", "<>", "<", "<=", ">", ">=":
		if _, ok := n.args[0].(slot); ok {
			op := cmp.Or(map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[n.op], n.op)
			return &node{op: op, args: []operand{n.args[1], n.args[0]}}
		}
	}
	return n
}

// keyName is the attribute that a part of a key condition is about.
func (b *bound) keyName(n *node) (string, error) {
	switch n.op {
	case "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with":
	default:
		return "", validation("Invalid KeyConditionExpression: Invalid operator used in KeyConditionExpression: %s", n.op)
	}
	p, ok := n.args[0].(path)
	if !ok {
		return "", validation("Invalid KeyConditionExpression: A condition must have a key attribute as its first operand")
	}
	if len(p) > 1 {
		return "", validation("Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes")
	}
	return p[0].resolve(b.names), nil
}

// keyValue encodes an operand as a value of a key attribute.
func (b *bound) keyValue(x operand, a keyAttr) (string, error) {
	v, ok := x.(slot)
	if !ok {
		return "", validation("Invalid KeyConditionExpression: A key must be compared with an expression attribute value")
	}
	got := b.slots[v]
	if got.kind() != a.kind {
		return "", validation(invalidParameter + "Condition parameter type does not match schema type")
	}
	return encodeKeyValue(got, a.name)
}

// narrow sets a range's ends to what a condition on the range key says.
func (b *bound) narrow(r *keyRange, n *node, a keyAttr) error {
	if n.op == "begins_with" && a.kind == kindN {
		return validation("Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N")
	}
	v, err := b.keyValue(n.args[1], a)
	if err != nil {
		return err
	}
	less, notMore := func(s string) bool { return s < v }, func(s string) bool { return s <= v }
	more, notLess := func(s string) bool { return s > v }, func(s string) bool { return s >= v }
	switch n.op {
	case "=":
		r.before, r.beyond = less, more
	case "<":
		r.beyond = notLess
	case "<=":
		r.beyond = more
	case ">":
		r.before = notMore
	case ">=":
		r.before = less
	case "BETWEEN":
		hi, err := b.keyValue(n.args[2], a)
		r.before, r.beyond = less, func(s string) bool { return s > hi }
		return err
	case "begins_with":
		r.before, r.beyond = less, func(s string) bool { return s > v && !strings.HasPrefix(s, v) }
	}
	return nil
}

// keyInFilter is the first key attribute that a filter looks at, or "".
func (s schema) keyInFilter(b *bound) (name string) {
	for _, n := range b.filtered() {
		if s.isKey(n) {
			return n
		}
	}
	return ""
}

// filtered is the names of the attributes that a filter looks at, in its order.
func (b *bound) filtered() (names []string) {
	var visit func(operand)
	visit = func(x operand) {
		switch x := x.(type) {
		case path:
			names = append(names, x[0].resolve(b.names))
		case call: // size
			visit(x.args[0])
		}
	}
	var walk func(*node)
	walk = func(n *node) {
		for _, sub := range n.of {
			walk(sub)
		}
		for _, x := range n.args {
			visit(x)
		}
	}
	walk(b.cond)
	return names
}
