package memdynamo

import (
	"errors"
	"fmt"
	"strings"
)

// parseUpdate parses the clauses of an update expression, each at most once.
func (p *parser) parseUpdate() (*update, error) {
	u := new(update)
	seen := map[string]bool{}
	for p.tok.kind != tokEOF {
		if p.tok.kind != tokIdent {
			return nil, p.unexpected()
		}
		word := strings.ToUpper(p.tok.text)
		switch word {
		case "SET", "REMOVE", "ADD", "DELETE":
		default:
			return nil, p.unexpected()
		}
		if seen[word] {
			return nil, fmt.Errorf("The %q section can only be used once in an update expression;", word)
		}
		seen[word] = true
		if err := p.advance(); err != nil {
			return nil, err
		}
		if err := p.parseClause(u, word); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (p *parser) parseClause(u *update, word string) (err error) {
	switch word {
	case "SET":
		u.set, err = p.parseActions(p.parseSet)
	case "REMOVE":
		u.remove, err = p.parsePaths()
	case "ADD":
		u.add, err = p.parseActions(p.parsePathValue)
	case "DELETE":
		u.del, err = p.parseActions(p.parsePathValue)
	}
	return err
}

func (p *parser) parseActions(one func() (setAction, error)) ([]setAction, error) {
	var out []setAction
	for {
		a, err := one()
		if err != nil {
			return nil, err
		}
		out = append(out, a)
		if !p.punct(",") {
			return out, nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// parsePathValue parses what ADD and DELETE take: path :value
func (p *parser) parsePathValue() (setAction, error) {
	x, err := p.parsePath()
	if err != nil {
		return setAction{}, err
	}
	v, err := p.parseValue()
	return setAction{x, v}, err
}

// parseSet parses path = operand, or with one + or - after it, the right side
// in parentheses or not.
func (p *parser) parseSet() (setAction, error) {
	to, err := p.parsePath()
	if err != nil {
		return setAction{}, err
	}
	if err := p.expect("="); err != nil {
		return setAction{}, err
	}
	x, err := p.parseSetValue(true)
	return setAction{to, x}, err
}

// parseSetValue parses operand [+|- operand]; where the first thing is "(",
// only what follows its ")" tells whether the whole stood in it.
func (p *parser) parseSetValue(outer bool) (operand, error) {
	var l operand
	var err error
	if outer && p.punct("(") {
		if l, err = p.parseParens(func() (operand, error) { return p.parseSetValue(false) }); err != nil {
			return nil, err
		}
		if _, ok := l.(arithOperand); ok {
			return l, nil // the grammar ends here: no sum of sums
		}
	} else if l, err = p.parseSetOperand(); err != nil {
		return nil, err
	}
	if !p.punct("+") && !p.punct("-") {
		return l, nil
	}
	minus := p.punct("-")
	if err := p.operator(); err != nil {
		return nil, err
	}
	r, err := p.parseSetOperand()
	if err != nil {
		return nil, err
	}
	for _, x := range []operand{l, r} {
		if _, ok := x.(appendOperand); ok {
			return nil, errMisused("list_append")
		}
	}
	return arithOperand{minus: minus, l: l, r: r}, nil
}

// parseParens parses ( x ), refusing ((x)).
func (p *parser) parseParens(inner func() (operand, error)) (operand, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	double := p.punct("(")
	x, err := inner()
	if err != nil {
		return nil, err
	}
	if double && p.punct(")") {
		if _, sum := x.(arithOperand); !sum {
			return nil, errRedundant
		}
	}
	return x, p.expect(")")
}

// parseSetOperand parses a path, a value, a function or (operand).
func (p *parser) parseSetOperand() (operand, error) {
	switch p.tok.kind {
	case tokValue:
		return p.parseValue()
	case tokName:
		x, err := p.parsePath()
		return pathOperand{x}, err
	case tokIdent:
		name := p.tok.text
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.punct("(") {
			return p.parseSetFunction(name)
		}
		if reserved(name) {
			return nil, errors.New("Attribute name is a reserved keyword; reserved keyword: " + name)
		}
		x, err := p.parseSteps(path{{name: name, slot: -1, index: -1}})
		return pathOperand{x}, err
	}
	if p.punct("(") {
		return p.parseParens(p.parseSetOperand)
	}
	return nil, p.unexpected()
}

// parseSetFunction parses the arguments of a function whose name is read.
func (p *parser) parseSetFunction(name string) (operand, error) {
	switch name {
	case "if_not_exists", "list_append":
	case "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size":
		return nil, errors.New("The function is not allowed in an update expression; function: " + name)
	default:
		return nil, errors.New("Invalid function name; function: " + name)
	}
	if err := p.operator(); err != nil { // past "("
		return nil, err
	}
	var args []operand
	for {
		x, err := p.parseSetOperand()
		if err != nil {
			return nil, err
		}
		if _, ok := x.(appendOperand); ok {
			return nil, errMisused("list_append")
		}
		args = append(args, x)
		if p.punct(")") {
			break
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if len(args) != 2 {
		return nil, errOperands(name, len(args))
	}
	if name == "list_append" {
		return appendOperand{args[0], args[1]}, nil
	}
	x, ok := args[0].(pathOperand)
	if !ok {
		return nil, errNoPath(name)
	}
	return defaultOperand{x.p, args[1]}, nil
}
