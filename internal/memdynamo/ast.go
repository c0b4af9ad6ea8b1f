package memdynamo

import (
	"strconv"
	"strings"
)

// exprKind says which of a request's expressions this is: they share names
// and values, differ in grammar, and name themselves in their errors.
type exprKind uint8

const (
	condExpr exprKind = iota
	updateExpr
	keyExpr
	filterExpr
	projExpr
)

func (k exprKind) String() string {
	return [...]string{"ConditionExpression", "UpdateExpression", "KeyConditionExpression",
		"FilterExpression", "ProjectionExpression"}[k]
}

// expr is a parsed expression: what can be known from its text alone, shared
// by all requests that use the text, and immutable. Placeholders are numbered
// slots, which a request's names and values fill (see bound).
type expr struct {
	kind   exprKind
	text   string
	names  []string // #placeholders by slot
	values []string // :placeholders by slot
	cond   node     // condition, key condition or filter
	update *update
	paths  []path // projection
}

// path is a document path: a.b[3].#c
type path []step

// step is one element of a path: a name, a #placeholder or an index.
type step struct {
	name  string // raw
	slot  int    // of the placeholder, or -1
	index int    // or -1
}

// node is a condition.
type node interface{ isNode() }

type (
	andNode struct{ l, r node }
	orNode  struct{ l, r node }
	notNode struct{ x node }

	// compareNode is l op r, op one of = <> < <= > >=
	compareNode struct {
		op   string
		l, r operand
	}
	betweenNode struct{ x, lo, hi operand }
	inNode      struct {
		x    operand
		list []operand
	}
	existsNode struct {
		p   path
		not bool
	}
	typeNode     struct{ x, t operand }
	beginsNode   struct{ x, prefix operand }
	containsNode struct{ x, part operand }
)

func (andNode) isNode()      {}
func (orNode) isNode()       {}
func (notNode) isNode()      {}
func (compareNode) isNode()  {}
func (betweenNode) isNode()  {}
func (inNode) isNode()       {}
func (existsNode) isNode()   {}
func (typeNode) isNode()     {}
func (beginsNode) isNode()   {}
func (containsNode) isNode() {}

// operand is what conditions compare and updates compute.
type operand interface{ isOperand() }

type (
	pathOperand  struct{ p path }
	valueOperand struct{ slot int }
	sizeOperand  struct{ x operand }

	// Only in updates:
	arithOperand struct {
		minus bool
		l, r  operand
	}
	defaultOperand struct { // if_not_exists
		p path
		x operand
	}
	appendOperand struct{ l, r operand }
	// Only in PartiQL:
	setOpOperand struct { // set_add, set_delete
		minus bool
		p     path
		x     operand
	}
)

func (pathOperand) isOperand()    {}
func (valueOperand) isOperand()   {}
func (sizeOperand) isOperand()    {}
func (arithOperand) isOperand()   {}
func (defaultOperand) isOperand() {}
func (appendOperand) isOperand()  {}
func (setOpOperand) isOperand()   {}

// update is an update expression, clause by clause.
type update struct {
	set    []setAction
	remove []path
	add    []setAction // the operand is a value
	del    []setAction // likewise
}

type setAction struct {
	p path
	x operand
}

// paths are those the update writes, in the order of its text by clause.
func (u *update) each(do func(path)) {
	for i := range u.set {
		do(u.set[i].p)
	}
	for i := range u.remove {
		do(u.remove[i])
	}
	for i := range u.add {
		do(u.add[i].p)
	}
	for i := range u.del {
		do(u.del[i].p)
	}
}

// display prints a path as messages do: [a, b, [3]].
func (p path) display(names []string) string {
	parts := make([]string, len(p))
	for i := range p {
		if p[i].index >= 0 {
			parts[i] = "[" + strconv.Itoa(p[i].index) + "]"
		} else {
			parts[i] = p[i].resolve(names)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// resolve is the attribute name a step stands for.
func (s *step) resolve(names []string) string {
	if s.slot >= 0 {
		return names[s.slot]
	}
	return s.name
}

// same reports whether two steps lead to the same place.
func (s *step) same(t *step, names []string) bool {
	if s.index >= 0 || t.index >= 0 {
		return s.index == t.index
	}
	return s.resolve(names) == t.resolve(names)
}
