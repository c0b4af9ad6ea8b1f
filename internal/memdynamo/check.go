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

func (b *bound) checkNode(n *node) error {
	for _, sub := range n.of {
		if err := b.checkNode(sub); err != nil {
			return err
		}
	}
	switch n.op {
	case "AND", "OR", "NOT":
		return nil
	case "<", "<=", ">", ">=":
		return b.checkOperands(n.op, kind.scalar, n.args)
	case "BETWEEN":
		return b.checkBetween(n.args)
	case "attribute_type":
		return b.checkType(n.args)
	case "begins_with":
		return b.checkOperands(n.op, func(k kind) bool { return k == kindS || k == kindB }, n.args)
	}
	return b.checkOperands(n.op, nil, n.args)
}

func errOperandType(operator string, k kind) error {
	return fmt.Errorf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, k)
}

// checkOperands checks what a comparison's operands are known to be, and that
// the first is none of the others.
func (b *bound) checkOperands(operator string, allowed func(kind) bool, xs []operand) error {
	first, isPath := xs[0].(path)
	for i, x := range xs {
		if size, ok := x.(call); ok && size.function == "size" {
			if k, ok := b.staticKind(size.args[0]); ok && (k == kindN || k == kindBOOL || k == kindNULL) {
				return errOperandType("size", k)
			}
		}
		if k, ok := b.staticKind(x); ok && allowed != nil && !allowed(k) {
			return errOperandType(operator, k)
		}
		if p, ok := x.(path); ok && i > 0 && isPath && b.samePath(first, p) {
			return fmt.Errorf("The first operand must be distinct from the remaining operands for this operator or function; "+
				"operator: %s, first operand: %s", operator, first.display(b.names))
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
	case slot:
		return b.slots[x].kind(), true
	case call:
		switch x.function {
		case "size", "+", "-":
			return kindN, true
		case "list_append":
			return kindL, true
		}
	}
	return 0, false
}

func (b *bound) checkBetween(args []operand) error {
	if err := b.checkOperands("BETWEEN", kind.scalar, args); err != nil {
		return err
	}
	lo, ok1 := args[1].(slot)
	hi, ok2 := args[2].(slot)
	if !ok1 || !ok2 {
		return nil
	}
	l, h := b.slots[lo], b.slots[hi]
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

func (b *bound) checkType(args []operand) error {
	if k, ok := b.staticKind(args[1]); ok && k != kindS {
		return errOperandType("attribute_type", k)
	}
	t, ok := args[1].(slot)
	if !ok {
		return errors.New("The second operand of attribute_type must be an expression attribute value")
	}
	if name := string(b.slots[t].(strValue)); !slices.Contains(kindNames[:], name) {
		return fmt.Errorf("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", name)
	}
	return b.checkOperands("attribute_type", nil, args)
}

func (b *bound) checkUpdate() error {
	if err := b.checkOverlap(b.update.paths()); err != nil {
		return err
	}
	for _, a := range b.update {
		if err := b.checkSet(a.x); err != nil {
			return err
		}
	}
	return nil
}

func set(k kind) bool { return k == kindSS || k == kindNS || k == kindBS }

func errActionType(action string, k kind) error {
	return fmt.Errorf("Incorrect operand type for operator or function; operator: %[1]s, operand type: %[2]s, typeSet: ALLOWED_FOR_%[1]s_OPERAND",
		action, k.long())
}

// checkSet checks the operands of what an update computes.
func (b *bound) checkSet(x operand) error {
	c, ok := x.(call)
	if !ok {
		return nil
	}
	want := kindN
	switch c.function {
	case "if_not_exists":
		if err := b.checkOperands(c.function, nil, c.args); err != nil {
			return err
		}
		return b.checkSet(c.args[1])
	case "ADD", "DELETE", "set_add", "set_delete":
		k, known := b.staticKind(c.args[1])
		switch {
		case !known || set(k) || k == kindN && c.function == "ADD":
			return nil
		case c.function == "ADD" || c.function == "DELETE":
			return errActionType(c.function, k)
		}
		return errOperandType("set_add", k)
	case "list_append":
		want = kindL
	}
	for _, x := range c.args {
		if err := b.checkSet(x); err != nil {
			return err
		}
		if k, ok := b.staticKind(x); ok && k != want {
			return errOperandType(c.function, k)
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
