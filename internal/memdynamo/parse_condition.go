package memdynamo

import (
	"errors"
	"fmt"
)

// part is what a condition's grammar cannot tell apart until it has read on:
// after "(" may come a condition or an operand. One of cond and op is set.
type part struct {
	cond   node
	op     operand
	parens bool // stood in parentheses
}

func (p *parser) parseCondition() (node, error) {
	x, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	return p.asCondition(x)
}

// asCondition refuses an operand where a condition must be.
func (p *parser) asCondition(x part) (node, error) {
	if x.cond != nil {
		return x.cond, nil
	}
	if _, ok := x.op.(sizeOperand); ok {
		return nil, errMisused("size")
	}
	return nil, p.unexpected()
}

func errMisused(function string) error {
	return errors.New("The function is not allowed to be used this way in an expression; function: " + function)
}

func (p *parser) parseOr() (part, error) {
	return p.parseChain("OR", p.parseAnd, func(l, r node) node { return orNode{l, r} })
}

func (p *parser) parseAnd() (part, error) {
	return p.parseChain("AND", p.parseNot, func(l, r node) node { return andNode{l, r} })
}

// parseChain parses x {word x}, left to right.
func (p *parser) parseChain(word string, operand func() (part, error), join func(l, r node) node) (part, error) {
	x, err := operand()
	if err != nil {
		return part{}, err
	}
	for p.keyword(word) {
		l, err := p.asCondition(x)
		if err != nil {
			return part{}, err
		}
		if err := p.operator(); err != nil {
			return part{}, err
		}
		y, err := operand()
		if err != nil {
			return part{}, err
		}
		r, err := p.asCondition(y)
		if err != nil {
			return part{}, err
		}
		x = part{cond: join(l, r)}
	}
	return x, nil
}

// operator counts the current token as an operator and moves past it.
func (p *parser) operator() error {
	if err := p.count(); err != nil {
		return err
	}
	return p.advance()
}

func (p *parser) parseNot() (part, error) {
	if !p.keyword("NOT") {
		return p.parseComparison()
	}
	if err := p.operator(); err != nil {
		return part{}, err
	}
	x, err := p.parseNot()
	if err != nil {
		return part{}, err
	}
	c, err := p.asCondition(x)
	return part{cond: notNode{c}}, err
}

// parseComparison parses a condition without AND, OR, NOT, or the operand
// that a caller found parentheses around.
func (p *parser) parseComparison() (part, error) {
	x, err := p.parsePrimary()
	if err != nil || x.cond != nil {
		return x, err
	}
	switch {
	case p.keyword("BETWEEN"):
		return p.parseBetween(x.op)
	case p.keyword("IN"):
		return p.parseIn(x.op)
	case p.tok.kind == tokPunct:
		switch op := p.tok.text; op {
		case "=", "<>", "<", "<=", ">", ">=":
			if err := p.operator(); err != nil {
				return part{}, err
			}
			r, err := p.parseOperand()
			return part{cond: compareNode{op, x.op, r}}, err
		}
	}
	return x, nil
}

// parsePrimary parses (…), an operand or a function.
func (p *parser) parsePrimary() (part, error) {
	switch p.tok.kind {
	case tokValue:
		v, err := p.parseValue()
		return part{op: v}, err
	case tokIdent:
		name := p.tok
		if err := p.advance(); err != nil {
			return part{}, err
		}
		if p.punct("(") {
			return p.parseFunction(name.text)
		}
		if reserved(name.text) {
			return part{}, errors.New("Attribute name is a reserved keyword; reserved keyword: " + name.text)
		}
		x, err := p.parseSteps(path{{name: name.text, slot: -1, index: -1}})
		return part{op: pathOperand{x}}, err
	case tokName:
		x, err := p.parsePath()
		return part{op: pathOperand{x}}, err
	}
	if !p.punct("(") {
		return part{}, p.unexpected()
	}
	if err := p.advance(); err != nil {
		return part{}, err
	}
	x, err := p.parseOr()
	if err != nil {
		return part{}, err
	}
	if x.parens {
		return part{}, errRedundant
	}
	x.parens = true
	return x, p.expect(")")
}

// parseOperand parses an operand, which a condition must not be.
func (p *parser) parseOperand() (operand, error) {
	x, err := p.parsePrimary()
	if err != nil {
		return nil, err
	}
	if x.op == nil {
		return nil, p.notOperand(x.cond)
	}
	return x.op, nil
}

// notOperand is the error for a condition that stands where an operand must.
func (p *parser) notOperand(c node) error {
	switch c := c.(type) {
	case existsNode:
		if c.not {
			return errMisused("attribute_not_exists")
		}
		return errMisused("attribute_exists")
	case typeNode:
		return errMisused("attribute_type")
	case beginsNode:
		return errMisused("begins_with")
	case containsNode:
		return errMisused("contains")
	}
	return p.unexpected()
}

func (p *parser) parseBetween(x operand) (part, error) {
	if err := p.operator(); err != nil {
		return part{}, err
	}
	lo, err := p.parseOperand()
	if err != nil {
		return part{}, err
	}
	if !p.keyword("AND") {
		return part{}, p.unexpected()
	}
	if err := p.advance(); err != nil {
		return part{}, err
	}
	hi, err := p.parseOperand()
	return part{cond: betweenNode{x, lo, hi}}, err
}

func (p *parser) parseIn(x operand) (part, error) {
	if err := p.operator(); err != nil {
		return part{}, err
	}
	list, err := p.parseArguments()
	if err != nil {
		return part{}, err
	}
	if len(list) > maxIn {
		return part{}, fmt.Errorf("The IN operator is provided with too many operands; number of operands: %d", len(list))
	}
	return part{cond: inNode{x, list}}, nil
}

// parseArguments parses (operand, …), at least one.
func (p *parser) parseArguments() ([]operand, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var out []operand
	for {
		x, err := p.parseOperand()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if p.punct(")") {
			return out, p.advance()
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

// parseFunction parses a function's arguments, its name being read.
func (p *parser) parseFunction(name string) (part, error) {
	want, ok := map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
		"begins_with": 2, "contains": 2, "size": 1}[name]
	if !ok {
		if name == "if_not_exists" || name == "list_append" {
			return part{}, errors.New("The function is not allowed in a condition expression; function: " + name)
		}
		return part{}, errors.New("Invalid function name; function: " + name)
	}
	if err := p.count(); err != nil {
		return part{}, err
	}
	args, err := p.parseArguments()
	if err != nil {
		return part{}, err
	}
	if len(args) != want {
		return part{}, errOperands(name, len(args))
	}
	if _, ok := args[0].(pathOperand); !ok && (name == "attribute_exists" || name == "attribute_not_exists") {
		return part{}, errNoPath(name)
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		return part{cond: existsNode{args[0].(pathOperand).p, name == "attribute_not_exists"}}, nil
	case "attribute_type":
		return part{cond: typeNode{args[0], args[1]}}, nil
	case "begins_with":
		return part{cond: beginsNode{args[0], args[1]}}, nil
	case "contains":
		return part{cond: containsNode{args[0], args[1]}}, nil
	}
	return part{op: sizeOperand{args[0]}}, nil
}

func errOperands(function string, n int) error {
	return fmt.Errorf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d",
		function, n)
}

func errNoPath(function string) error {
	return errors.New("Operator or function requires a document path; operator or function: " + function)
}
