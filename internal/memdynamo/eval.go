package memdynamo

// test reports whether an item, nil if absent, meets the condition. What a
// condition cannot compare is not an error but false, as DynamoDB has it: an
// absent operand equals nothing, and differs from everything.
func (b *bound) test(it *item) bool {
	if b == nil {
		return true
	}
	return b.eval(b.cond, it)
}

func (b *bound) eval(n node, it *item) bool {
	switch n := n.(type) {
	case andNode:
		return b.eval(n.l, it) && b.eval(n.r, it)
	case orNode:
		return b.eval(n.l, it) || b.eval(n.r, it)
	case notNode:
		return !b.eval(n.x, it)
	case compareNode:
		return compare(n.op, b.operand(n.l, it), b.operand(n.r, it))
	case betweenNode:
		x := b.operand(n.x, it)
		lo, ok1 := order(x, b.operand(n.lo, it))
		hi, ok2 := order(x, b.operand(n.hi, it))
		return ok1 && ok2 && lo >= 0 && hi <= 0
	case inNode:
		x := b.operand(n.x, it)
		for _, y := range n.list {
			if equal(x, b.operand(y, it)) {
				return true
			}
		}
		return false
	case existsNode:
		return (b.at(n.p, it) != nil) != n.not
	case typeNode:
		x := b.operand(n.x, it)
		t, ok := b.operand(n.t, it).(strValue)
		return ok && x != nil && x.kind().String() == string(t)
	case beginsNode:
		return prefixed(b.operand(n.x, it), b.operand(n.prefix, it))
	case containsNode:
		return member(b.operand(n.x, it), b.operand(n.part, it))
	}
	return false
}

func compare(op string, l, r value) bool {
	switch op {
	case "=":
		return equal(l, r)
	case "<>":
		return !equal(l, r)
	}
	c, ok := order(l, r)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// operand is a condition's operand on an item, nil where it has no value.
func (b *bound) operand(x operand, it *item) value {
	switch x := x.(type) {
	case pathOperand:
		return b.at(x.p, it)
	case valueOperand:
		return b.slots[x.slot]
	case sizeOperand:
		if n, ok := length(b.operand(x.x, it)); ok {
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
