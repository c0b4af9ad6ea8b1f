package memdynamo

import (
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
	byName := map[string]node{}
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
	eq, ok := n.(compareNode)
	if !ok || eq.op != "=" {
		return nil, validation("Query key condition not supported")
	}
	hash, err := b.keyValue(eq.r, s.hash)
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
func facing(n node) node {
	c, ok := n.(compareNode)
	if !ok {
		return n
	}
	if _, ok := c.l.(valueOperand); !ok {
		return n
	}
	op := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[c.op]
	if op == "" {
		op = c.op
	}
	return compareNode{op, c.r, c.l}
}

// keyName is the attribute that a part of a key condition is about.
func (b *bound) keyName(n node) (string, error) {
	var x operand
	switch n := n.(type) {
	case compareNode:
		if n.op == "<>" {
			return "", errKeyOperator("<>")
		}
		x = n.l
	case betweenNode:
		x = n.x
	case beginsNode:
		x = n.x
	case orNode:
		return "", errKeyOperator("OR")
	case notNode:
		return "", errKeyOperator("NOT")
	case inNode:
		return "", errKeyOperator("IN")
	case existsNode:
		if n.not {
			return "", errKeyOperator("attribute_not_exists")
		}
		return "", errKeyOperator("attribute_exists")
	case typeNode:
		return "", errKeyOperator("attribute_type")
	case containsNode:
		return "", errKeyOperator("contains")
	}
	p, ok := x.(pathOperand)
	if !ok {
		return "", validation("Invalid KeyConditionExpression: A condition must have a key attribute as its first operand")
	}
	if len(p.p) > 1 {
		return "", validation("Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes")
	}
	return p.p[0].resolve(b.names), nil
}

func errKeyOperator(operator string) error {
	return validation("Invalid KeyConditionExpression: Invalid operator used in KeyConditionExpression: %s", operator)
}

// keyValue encodes an operand as a value of a key attribute.
func (b *bound) keyValue(x operand, a keyAttr) (string, error) {
	v, ok := x.(valueOperand)
	if !ok {
		return "", validation("Invalid KeyConditionExpression: A key must be compared with an expression attribute value")
	}
	got := b.slots[v.slot]
	if got.kind() != a.kind {
		return "", validation(invalidParameter + "Condition parameter type does not match schema type")
	}
	return encodeKeyValue(got, a.name)
}

// narrow sets a range's ends to what a condition on the range key says.
func (b *bound) narrow(r *keyRange, n node, a keyAttr) error {
	switch n := n.(type) {
	case compareNode:
		v, err := b.keyValue(n.r, a)
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
		}
		return err
	case betweenNode:
		lo, err := b.keyValue(n.lo, a)
		if err != nil {
			return err
		}
		hi, err := b.keyValue(n.hi, a)
		r.before = func(s string) bool { return s < lo }
		r.beyond = func(s string) bool { return s > hi }
		return err
	case beginsNode:
		if a.kind == kindN {
			return validation("Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N")
		}
		v, err := b.keyValue(n.prefix, a)
		r.before = func(s string) bool { return s < v }
		r.beyond = func(s string) bool { return s > v && !strings.HasPrefix(s, v) }
		return err
	}
	return validation("Query key condition not supported") // not reached: keyName lets no others through
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
	visit := func(x operand) {
		if s, ok := x.(sizeOperand); ok {
			x = s.x
		}
		if p, ok := x.(pathOperand); ok {
			names = append(names, p.p[0].resolve(b.names))
		}
	}
	var walk func(node)
	walk = func(n node) {
		switch n := n.(type) {
		case andNode:
			walk(n.l)
			walk(n.r)
		case orNode:
			walk(n.l)
			walk(n.r)
		case notNode:
			walk(n.x)
		case compareNode:
			visit(n.l)
			visit(n.r)
		case betweenNode:
			visit(n.x)
			visit(n.lo)
			visit(n.hi)
		case inNode:
			visit(n.x)
			for _, x := range n.list {
				visit(x)
			}
		case existsNode:
			visit(pathOperand{n.p})
		case typeNode:
			visit(n.x)
		case beginsNode:
			visit(n.x)
			visit(n.prefix)
		case containsNode:
			visit(n.x)
			visit(n.part)
		}
	}
	walk(b.cond)
	return names
}
