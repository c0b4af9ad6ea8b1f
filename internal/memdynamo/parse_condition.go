package memdynamo

import (
	"errors"
	"fmt"
)

// part is what a condition's grammar cannot tell apart until it has read on:
// after "(" may come a condition or an operand. One of cond and op is set.
type part struct {
	cond   *node
	op     operand
	parens bool // stood in parentheses
}

func condition(op string, args ...operand) part { return part{cond: &node{op: op, args: args}} }

// asCondition refuses an operand where a condition must be.
func (p *parser) asCondition(x part) *node {
	if x.cond == nil {
		if _, ok := x.op.(call); ok {
			failMisused("size")
		}
		p.unexpected()
	}
	return x.cond
}

func (p *parser) parseOr() part  { return p.parseChain("OR", p.parseAnd) }
func (p *parser) parseAnd() part { return p.parseChain("AND", p.parseNot) }

// parseChain parses x {word x}, left to right.
func (p *parser) parseChain(word string, one func() part) part {
	x := one()
	for p.tok.is(word) {
		l := p.asCondition(x)
		p.operator()
		x = part{cond: &node{op: word, of: []*node{l, p.asCondition(one())}}}
	}
	return x
}

func (p *parser) parseNot() part {
	if !p.tok.is("NOT") {
		return p.parseComparison()
	}
	p.operator()
	return part{cond: &node{op: "NOT", of: []*node{p.asCondition(p.parseNot())}}}
}

// parseComparison parses a condition without AND, OR, NOT, or the operand
// that a caller found parentheses around.
func (p *parser) parseComparison() part {
	x := p.parsePrimary()
	switch {
	case x.cond != nil:
	case p.tok.is("BETWEEN"):
		p.operator()
		lo := p.parseOperand()
		if !p.tok.is("AND") {
			p.unexpected()
		}
		p.advance()
		return condition("BETWEEN", x.op, lo, p.parseOperand())
	case p.tok.is("IN"):
		return p.parseIn(x.op)
	case p.tok.kind == tokPunct:
		switch op := p.tok.text; op {
		case "=", "<>", "<", "<=", ">", ">=":
			p.operator()
			return condition(op, x.op, p.parseOperand())
		}
	}
	return x
}

func (p *parser) parseIn(x operand) part {
	p.operator()
	p.expect("(")
	args := []operand{x}
	p.list(func() { args = append(args, p.parseOperand()) })
	p.expect(")")
	if n := len(args) - 1; n > maxIn {
		fail(fmt.Errorf("The IN operator is provided with too many operands; number of operands: %d", n))
	}
	return condition("IN", args...)
}

// parsePrimary parses (…), an operand or a function.
func (p *parser) parsePrimary() part {
	if x, ok := p.parseTerm(p.parseFunction); ok {
		return x
	}
	p.expect("(")
	x := p.parseOr()
	if x.parens {
		fail(errRedundant)
	}
	p.expect(")")
	x.parens = true
	return x
}

// parseOperand parses an operand, which a condition must not be.
func (p *parser) parseOperand() operand {
	x := p.parsePrimary()
	if x.op == nil {
		if functions[x.cond.op] > 0 {
			failMisused(x.cond.op)
		}
		p.unexpected()
	}
	return x.op
}

// functions are those of conditions, and how many operands they have.
var functions = map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
	"begins_with": 2, "contains": 2, "size": 1}

// parseFunction parses a function's arguments, its name being read.
func (p *parser) parseFunction(name string) part {
	want, ok := functions[name]
	switch {
	case name == "if_not_exists" || name == "list_append":
		fail(errors.New("The function is not allowed in a condition expression; function: " + name))
	case !ok:
		fail(errors.New("Invalid function name; function: " + name))
	}
	p.operator()
	args := p.parseArguments(name, want, p.parseOperand)
	switch name {
	case "size":
		return part{op: call{name, args}}
	case "attribute_exists", "attribute_not_exists":
		needPath(name, args[0])
	}
	return condition(name, args...)
}
