package memdynamo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parseUpdate parses the clauses of an update expression, each at most once.
func (p *parser) parseUpdate() update {
	clauses := map[string]update{}
	for p.tok.kind != tokEOF {
		word := strings.ToUpper(p.tok.text)
		one := map[string]func(string) assignment{
			"SET": p.parseSet, "REMOVE": p.parseRemove, "ADD": p.parseChange, "DELETE": p.parseChange,
		}[word]
		if p.tok.kind != tokWord || one == nil {
			p.unexpected()
		}
		if clauses[word] != nil {
			fail(fmt.Errorf("The %q section can only be used once in an update expression;", word))
		}
		p.advance()
		p.list(func() { clauses[word] = append(clauses[word], one(word)) })
	}
	return slices.Concat(clauses["SET"], clauses["REMOVE"], clauses["ADD"], clauses["DELETE"])
}

func (p *parser) parseRemove(string) assignment { return assignment{p: p.parsePath()} }

// parseChange parses what ADD and DELETE take: path :value
func (p *parser) parseChange(word string) assignment {
	to := p.parsePath()
	return assignment{to, call{word, []operand{to, p.parseValue()}}}
}

// parseSet parses path = operand, or with one + or - after it, the right side
// in parentheses or not.
func (p *parser) parseSet(string) assignment {
	to := p.parsePath()
	p.expect("=")
	return assignment{to, p.parseSetValue(true)}
}

// parseSetValue parses operand [+|- operand]; where the first thing is "(",
// only what follows its ")" tells whether the whole stood in it.
func (p *parser) parseSetValue(outer bool) operand {
	var l operand
	if outer && p.punct("(") {
		l = p.parseParens(func() operand { return p.parseSetValue(false) })
		if isSum(l) {
			return l // the grammar ends here: no sum of sums
		}
	} else {
		l = p.parseSetOperand()
	}
	sign := p.tok.text
	if !p.punct("+") && !p.punct("-") {
		return l
	}
	p.operator()
	r := p.parseSetOperand()
	refuseAppended(l)
	refuseAppended(r)
	return call{sign, []operand{l, r}}
}

func isSum(x operand) bool {
	c, ok := x.(call)
	return ok && (c.function == "+" || c.function == "-")
}

// refuseAppended refuses list_append inside another function.
func refuseAppended(x operand) {
	if c, ok := x.(call); ok && c.function == "list_append" {
		failMisused("list_append")
	}
}

// parseParens parses ( x ), refusing ((x)).
func (p *parser) parseParens(inner func() operand) operand {
	p.expect("(")
	double := p.punct("(")
	x := inner()
	if double && p.punct(")") && !isSum(x) {
		fail(errRedundant)
	}
	p.expect(")")
	return x
}

// parseSetOperand parses a path, a value, a function or (operand).
func (p *parser) parseSetOperand() operand {
	if x, ok := p.parseTerm(p.parseSetFunction); ok {
		return x.op
	}
	return p.parseParens(p.parseSetOperand)
}

// parseSetFunction parses the arguments of a function whose name is read.
func (p *parser) parseSetFunction(name string) part {
	switch {
	case name == "if_not_exists" || name == "list_append":
	case functions[name] > 0:
		fail(errors.New("The function is not allowed in an update expression; function: " + name))
	default:
		fail(errors.New("Invalid function name; function: " + name))
	}
	p.operator()
	args := p.parseArguments(name, 2, func() operand {
		x := p.parseSetOperand()
		refuseAppended(x)
		return x
	})
	if name == "if_not_exists" {
		needPath(name, args[0])
	}
	return part{op: call{name, args}}
}
