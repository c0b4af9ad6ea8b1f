package memdynamo

import "slices"

// test reports whether an item, nil if absent, meets the condition. What a
// condition cannot compare is not an error but false, as DynamoDB has it: an
// absent operand equals nothing, and differs from everything.
func (b *bound) test(it *item) bool {
	if b == nil {
		return true
	}
	return b.eval(b.cond, it)
}

func (b *bound) eval(n *node, it *item) bool {
	switch n.op {
	case "AND":
		return b.eval(n.of[0], it) && b.eval(n.of[1], it)
	case "OR":
		return b.eval(n.of[0], it) || b.eval(n.of[1], it)
	case "NOT":
		return !b.eval(n.of[0], it)
	}
	x := b.operand(n.args[0], it)
	switch n.op {
	case "attribute_exists":
		return x != nil
	case "attribute_not_exists":
		return x == nil
	case "IN":
		return slices.ContainsFunc(n.args[1:], func(y operand) bool { return equal(x, b.operand(y, it)) })
	}
	y := b.operand(n.args[1], it)
	switch n.op {
	case "=":
		return equal(x, y)
	case "<>":
		return !equal(x, y)
	case "attribute_type":
		name, ok := y.(strValue)
		return ok && x != nil && x.kind().String() == string(name)
	case "begins_with":
		return prefixed(x, y)
	case "contains":
		return member(x, y)
	}
	c, ok := order(x, y)
	if !ok {
		return false
	}
	switch n.op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	hi, ok := order(x, b.operand(n.args[2], it)) // BETWEEN
	return ok && c >= 0 && hi <= 0
}

// operand is a condition's operand on an item, nil where it has no value.
func (b *bound) operand(x operand, it *item) value {
	switch x := x.(type) {
	case path:
		return b.at(x, it)
	case slot:
		return b.slots[x]
	case call: // size
		if n, ok := length(b.operand(x.args[0], it)); ok {
			return smallDecimal(n)
		}
	}
	return nil
}

// at follows a path into an item; nil where it leads nowhere.
func (b *bound) at(p path, it *item) value {
	v := it.get(p[0].resolve(b.names))
	for i := 1; i < len(p) && v != nil; i++ {
		v = b.child(v, &p[i])
	}
	return v
}

func (b *bound) child(v value, s *step) value {
	switch v := v.(type) {
	case mapValue:
		if s.index < 0 {
			return lookup(v, s.resolve(b.names))
		}
	case listValue:
		if 0 <= s.index && s.index < len(v) {
			return v[s.index]
		}
	}
	return nil
}

// project is the part of an item a projection asks for: all of it without one.
func (b *bound) project(attrs []attr) []attr {
	if b == nil {
		return attrs
	}
	return b.projectTo(attrs, b.paths)
}

// projected is the names of the attributes that a projection leads into.
func (b *bound) projected() []string {
	names := make([]string, len(b.paths))
	for i, p := range b.paths {
		names[i] = p[0].resolve(b.names)
	}
	return names
}

// projectTo keeps of a map what the paths lead to, in the map's own order.
func (b *bound) projectTo(attrs []attr, paths []path) []attr {
	out := make([]attr, 0, len(paths))
	for i := range attrs {
		v := b.pick(attrs[i].value, paths, func(s *step) bool {
			return s.index < 0 && s.resolve(b.names) == attrs[i].name
		})
		if v != nil {
			out = append(out, attr{attrs[i].name, v})
		}
	}
	return out
}

// pick is what remains of one element: all of it if a path ends there, what
// the paths through it lead to, or nil.
func (b *bound) pick(v value, paths []path, here func(*step) bool) value {
	var through []path
	for _, p := range paths {
		if !here(&p[0]) {
			continue
		}
		if len(p) == 1 {
			return v
		}
		through = append(through, p[1:])
	}
	if through == nil {
		return nil
	}
	switch v := v.(type) {
	case mapValue:
		if m := b.projectTo(v, through); len(m) > 0 {
			return mapValue(m)
		}
	case listValue:
		var l listValue
		for i, e := range v {
			if e := b.pick(e, through, func(s *step) bool { return s.index == i }); e != nil {
				l = append(l, e)
			}
		}
		if len(l) > 0 {
			return l
		}
	}
	return nil
}
