package memdynamo

import (
	"errors"
	"fmt"
	"slices"
)

// check refuses what is wrong with a bound expression whatever the item:
// operands of impossible types, an operand compared with itself, a range upside
// down, paths in each other's way.
func (b *bound) check() error {
	switch {
	case b.update != nil:
		return b.checkUpdate()
	case b.cond != nil:
		return b.checkNode(b.cond)
	}
	return b.checkOverlap(b.paths)
}

func (b *bound) checkNode(n node) error {
	switch n := n.(type) {
	case andNode:
		return firstOf(b.checkNode(n.l), func() error { return b.checkNode(n.r) })
	case orNode:
		return firstOf(b.checkNode(n.l), func() error { return b.checkNode(n.r) })
	case notNode:
		return b.checkNode(n.x)
	case compareNode:
		if n.op == "=" || n.op == "<>" {
			return b.checkOperands(n.op, nil, n.l, n.r)
		}
		return b.checkOperands(n.op, kind.scalar, n.l, n.r)
	case betweenNode:
		return b.checkBetween(n)
	case inNode:
		return b.checkOperands("IN", nil, append([]operand{n.x}, n.list...)...)
	case typeNode:
		return b.checkType(n)
	case beginsNode:
		return b.checkOperands("begins_with", func(k kind) bool { return k == kindS || k == kindB }, n.x, n.prefix)
	case containsNode:
		return b.checkOperands("contains", nil, n.x, n.part)
	}
	return nil
}

func firstOf(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func errOperandType(operator string, k kind) error {
	return fmt.Errorf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, k)
}

// checkOperands checks what a comparison's operands are known to be, and that
// the first is none of the others.
func (b *bound) checkOperands(operator string, allowed func(kind) bool, xs ...operand) error {
	first, isPath := xs[0].(pathOperand)
	for i, x := range xs {
		if s, ok := x.(sizeOperand); ok {
			if k, ok := b.staticKind(s.x); ok && (k == kindN || k == kindBOOL || k == kindNULL) {
				return errOperandType("size", k)
			}
		}
		if k, ok := b.staticKind(x); ok && allowed != nil && !allowed(k) {
			return errOperandType(operator, k)
		}
		if p, ok := x.(pathOperand); ok && i > 0 && isPath && b.samePath(first.p, p.p) {
			return fmt.Errorf("The first operand must be distinct from the remaining operands for this operator or function; "+
				"operator: %s, first operand: %s", operator, first.p.display(b.names))
		}
	}
	return nil
}

func (b *bound) samePath(p, q path) bool {
	return slices.EqualFunc(p, q, func(s, t step) bool { return s.same(&t, b.names) })
}

// staticKind is an operand's type as far as the request alone tells.
func (b *bound) staticKind(x operand) (kind, bool) {
	switch x := x.(type) {
	case valueOperand:
		return b.slots[x.slot].kind(), true
	case sizeOperand, arithOperand:
		return kindN, true
	case appendOperand:
		return kindL, true
	}
	return 0, false
}

func (b *bound) checkBetween(n betweenNode) error {
	if err := b.checkOperands("BETWEEN", kind.scalar, n.x, n.lo, n.hi); err != nil {
		return err
	}
	lo, ok1 := n.lo.(valueOperand)
	hi, ok2 := n.hi.(valueOperand)
	if !ok1 || !ok2 {
		return nil
	}
	l, h := b.slots[lo.slot], b.slots[hi.slot]
	bounds := fmt.Sprintf("lower bound operand: %s, upper bound operand: %s", show(l), show(h))
	c, ok := order(l, h)
	if !ok {
		return errors.New("The BETWEEN operator requires same data type for lower and upper bounds; " + bounds)
	}
	if c > 0 {
		return errors.New("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; " + bounds)
	}
	return nil
}

// show prints a scalar as messages do.
func show(v value) string {
	text := fmt.Sprint(v)
	if bin, ok := v.(binValue); ok {
		text = fmt.Sprintf("%x", string(bin))
	}
	return fmt.Sprintf("AttributeValue: {%s:%s}", v.kind(), text)
}

func (b *bound) checkType(n typeNode) error {
	if k, ok := b.staticKind(n.t); ok && k != kindS {
		return errOperandType("attribute_type", k)
	}
	t, ok := n.t.(valueOperand)
	if !ok {
		return errors.New("The second operand of attribute_type must be an expression attribute value")
	}
	if name := string(b.slots[t.slot].(strValue)); !slices.Contains(kindNames[:], name) {
		return fmt.Errorf("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", name)
	}
	return b.checkOperands("attribute_type", nil, n.x, n.t)
}

func (b *bound) checkUpdate() error {
	paths := make([]path, 0, 16)
	b.update.each(func(p path) { paths = append(paths, p) })
	if err := b.checkOverlap(paths); err != nil {
		return err
	}
	for i := range b.update.set {
		if err := b.checkSet(b.update.set[i].x); err != nil {
			return err
		}
	}
	for i := range b.update.add {
		if k := b.slots[b.update.add[i].x.(valueOperand).slot].kind(); !set(k) && k != kindN {
			return errActionType("ADD", k)
		}
	}
	for i := range b.update.del {
		if k := b.slots[b.update.del[i].x.(valueOperand).slot].kind(); !set(k) {
			return errActionType("DELETE", k)
		}
	}
	return nil
}

func set(k kind) bool { return k == kindSS || k == kindNS || k == kindBS }

func errActionType(action string, k kind) error {
	return fmt.Errorf("Incorrect operand type for operator or function; operator: %[1]s, operand type: %[2]s, typeSet: ALLOWED_FOR_%[1]s_OPERAND",
		action, k.long())
}

// checkSet checks the operands of sums and appended lists.
func (b *bound) checkSet(x operand) error {
	must := func(operator string, want kind, xs ...operand) error {
		for _, x := range xs {
			if err := b.checkSet(x); err != nil {
				return err
			}
			if k, ok := b.staticKind(x); ok && k != want {
				return errOperandType(operator, k)
			}
		}
		return nil
	}
	switch x := x.(type) {
	case arithOperand:
		if x.minus {
			return must("-", kindN, x.l, x.r)
		}
		return must("+", kindN, x.l, x.r)
	case appendOperand:
		return must("list_append", kindL, x.l, x.r)
	case defaultOperand:
		if err := b.checkOperands("if_not_exists", nil, pathOperand{x.p}, x.x); err != nil {
			return err
		}
		return b.checkSet(x.x)
	case setOpOperand:
		if k, ok := b.staticKind(x.x); ok && !set(k) {
			return errOperandType("set_add", k)
		}
	}
	return nil
}

// checkOverlap refuses two paths one of which leads to, or through, the
// other's place, and two that take the same place for a list and for a map.
func (b *bound) checkOverlap(paths []path) error {
	for i, p := range paths {
		for _, q := range paths[i+1:] {
			if word := b.clash(p, q); word != "" {
				return fmt.Errorf("Two document paths %s with each other; must remove or rewrite one of these paths; "+
					"path one: %s, path two: %s", word, p.display(b.names), q.display(b.names))
			}
		}
	}
	return nil
}

func (b *bound) clash(p, q path) string {
	for i := range min(len(p), len(q)) {
		s, t := &p[i], &q[i]
		if s.same(t, b.names) {
			continue
		}
		if (s.index >= 0) != (t.index >= 0) {
			return "conflict"
		}
		return ""
	}
	return "overlap"
}
