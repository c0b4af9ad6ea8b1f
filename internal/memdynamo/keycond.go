package memdynamo

import (
	"cmp"
	"sort"
)

// keyRange is what a key condition asks for: one partition, and in it the
// rows from from on to before to.
type keyRange struct {
	hash, from, to string // to is "" without an end
}

func (r *keyRange) has(rng string) bool { return rng >= r.from && (rng < r.to || r.to == "") }

// bounds are the places in a partition that the range is between.
func (r *keyRange) bounds(p *partition) (from, to int) {
	if p == nil {
		return 0, 0
	}
	from = sort.Search(len(p.rows), func(i int) bool { return p.rows[i].rng >= r.from })
	to = from + sort.Search(len(p.rows)-from, func(i int) bool { return !r.has(p.rows[from+i].rng) })
	return from, to
}

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
	r := &keyRange{hash: hash}
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
	switch after := v + "\x00"; n.op { // after is the least text that is greater
	case "=":
		r.from, r.to = v, after
	case "<":
		r.to = v
	case "<=":
		r.to = after
	case ">":
		r.from = after
	case ">=":
		r.from = v
	case "BETWEEN":
		hi, err := b.keyValue(n.args[2], a)
		r.from, r.to = v, hi+"\x00"
		return err
	case "begins_with":
		r.from = v
		end := []byte(v)
		for len(end) > 0 && end[len(end)-1] == 0xff {
			end = end[:len(end)-1]
		}
		if len(end) > 0 {
			end[len(end)-1]++
			r.to = string(end)
		}
	}
	return nil
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
