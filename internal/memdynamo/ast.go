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
	cond   *node    // condition, key condition or filter
	update update
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

// node is a condition: AND, OR or NOT of others, or a comparison or a function of operands.
type node struct {
	op   string // in capitals, but for functions
	of   []*node
	args []operand
}

// operand is what conditions compare and updates compute: a path, a slot or a call.
type operand interface{ isOperand() }

type (
	// slot is the number of a value's placeholder.
	slot int
	// call is size in a condition; in an update it is +, -, if_not_exists, list_append and, of a
	// path and a value, ADD and DELETE, or PartiQL's set_add and set_delete.
	call struct {
		function string
		args     []operand
	}
)

func (path) isOperand() {}
func (slot) isOperand() {}
func (call) isOperand() {}

// update is what an update expression does: SET first, then REMOVE, ADD and DELETE.
type update []assignment

// assignment puts a value at a path, or, if x is nil, removes what is there.
type assignment struct {
	p path
	x operand
}

// paths are those that the update writes.
func (u update) paths() []path {
	out := make([]path, len(u))
	for i := range u {
		out[i] = u[i].p
	}
	return out
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
