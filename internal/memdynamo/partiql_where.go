package memdynamo

import "strings"

func (p *sqlParser) parseOr() (node, error) {
	l, err := p.parseAnd()
	for err == nil && p.word("OR") {
		if err = p.advance(); err != nil {
			break
		}
		var r node
		r, err = p.parseAnd()
		l = orNode{l, r}
	}
	return l, err
}

func (p *sqlParser) parseAnd() (node, error) {
	l, err := p.parseNot()
	for err == nil && p.word("AND") {
		if err = p.advance(); err != nil {
			break
		}
		var r node
		r, err = p.parseNot()
		l = andNode{l, r}
	}
	return l, err
}

func (p *sqlParser) parseNot() (node, error) {
	if p.word("NOT") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.parseNot()
		return notNode{x}, err
	}
	if more, err := p.accept("("); err != nil {
		return nil, err
	} else if more {
		x, err := p.parseOr()
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	}
	return p.parseComparison()
}

func (p *sqlParser) parseComparison() (node, error) {
	if p.tok.kind == sqlWord {
		if want, ok := sqlFunctions[strings.ToLower(p.tok.text)]; ok {
			return p.parseFunction(strings.ToLower(p.tok.text), want)
		}
	}
	l, err := p.parseOperand()
	if err != nil {
		return nil, err
	}
	return p.parseOperator(l)
}

// sqlFunctions are the functions that are conditions, and their arguments.
var sqlFunctions = map[string]int{"attribute_type": 2, "begins_with": 2, "contains": 2}

func (p *sqlParser) parseFunction(name string, want int) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	args, err := p.parseList("(", ")", p.parseOperand)
	if err != nil || len(args) != want {
		return nil, errSQL
	}
	switch name {
	case "attribute_type":
		return typeNode{args[0], args[1]}, nil
	case "begins_with":
		return beginsNode{args[0], args[1]}, nil
	default:
		return containsNode{args[0], args[1]}, nil
	}
}

// parseOperand parses a path, a literal, a parameter or size(path).
func (p *sqlParser) parseOperand() (operand, error) {
	if !p.startsPath() {
		return p.parseSlot()
	}
	function := p.tok
	x, err := p.parsePath()
	if err != nil || !p.punct("(") {
		return pathOperand{x}, err
	}
	if !isWord(function, "size") || len(x) > 1 {
		return nil, errSQL
	}
	args, err := p.parseList("(", ")", p.parseOperand)
	if err != nil || len(args) != 1 {
		return nil, errSQL
	}
	return sizeOperand{args[0]}, nil
}

func (p *sqlParser) parseOperator(l operand) (node, error) {
	switch {
	case p.word("IS"):
		return p.parseIs(l)
	case p.word("BETWEEN"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		lo, err := p.parseOperand()
		if err != nil {
			return nil, err
		}
		if err := p.words("AND"); err != nil {
			return nil, err
		}
		hi, err := p.parseOperand()
		return betweenNode{l, lo, hi}, err
	case p.word("IN"):
		return p.parseIn(l)
	case p.tok.kind != sqlPunct:
		return nil, errSQL
	}
	op := p.tok.text
	switch op {
	case "!=":
		op = "<>"
	case "=", "<>", "<", "<=", ">", ">=":
	default:
		return nil, errSQL
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	r, err := p.parseOperand()
	return compareNode{op, l, r}, err
}

func (p *sqlParser) parseIn(l operand) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	open, end := "[", "]"
	if p.punct("(") {
		open, end = "(", ")"
	}
	list, err := p.parseList(open, end, p.parseOperand)
	if err == nil && len(list) > maxIn {
		return nil, errSQL
	}
	return inNode{l, list}, err
}

// parseIs parses IS [NOT] MISSING and IS [NOT] NULL.
func (p *sqlParser) parseIs(l operand) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	not := p.word("NOT")
	if not {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	x, ok := l.(pathOperand)
	switch {
	case !ok:
		return nil, errSQL
	case p.word("MISSING"):
		return existsNode{x.p, !not}, p.advance()
	case p.word("NULL"):
		p.out.slots = append(p.out.slots, literal{value: strValue("NULL"), kind: kindS})
		var n node = typeNode{l, valueOperand{len(p.out.slots) - 1}}
		if not {
			n = notNode{n}
		}
		return n, p.advance()
	}
	return nil, errSQL
}

// parseLiteral parses ?, 'text', a number, TRUE, FALSE, NULL, [ … ], { … },
// << … >>
func (p *sqlParser) parseLiteral() (literal, error) {
	switch {
	case p.tok.kind == sqlString:
		l := literal{value: strValue(p.tok.text), kind: kindS}
		return l, p.advance()
	case p.tok.kind == sqlNumber || p.punct("-"):
		return p.parseNumber()
	case p.word("TRUE"), p.word("FALSE"):
		l := literal{value: boolValue(p.word("TRUE")), kind: kindBOOL}
		return l, p.advance()
	case p.word("NULL"):
		return literal{value: nullValue{}, kind: kindNULL}, p.advance()
	case p.punct("?"):
		p.out.params++
		return literal{param: p.out.params}, p.advance()
	case p.punct("["):
		list, err := p.parseLiterals("[", "]")
		return literal{list: list, kind: kindL}, err
	case p.punct("<<"):
		list, err := p.parseLiterals("<<", ">>")
		return literal{list: list, set: true}, err
	case p.punct("{"):
		return p.parseDocument()
	}
	return literal{}, errSQL
}

func (p *sqlParser) parseNumber() (literal, error) {
	sign := ""
	if more, err := p.accept("-"); err != nil {
		return literal{}, err
	} else if more {
		sign = "-"
	}
	if p.tok.kind != sqlNumber {
		return literal{}, errSQL
	}
	d, err := parseDecimal(sign + p.tok.text)
	if err != nil {
		return literal{}, err
	}
	return literal{value: d, kind: kindN}, p.advance()
}

// parseLiterals parses open x, y, … close, possibly none.
func (p *sqlParser) parseLiterals(open, end string) ([]literal, error) {
	if err := p.expect(open); err != nil {
		return nil, err
	}
	var out []literal
	for !p.punct(end) {
		if len(out) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		l, err := p.parseLiteral()
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, p.advance()
}

// parseDocument parses {'name': value, …}.
func (p *sqlParser) parseDocument() (literal, error) {
	if err := p.expect("{"); err != nil {
		return literal{}, err
	}
	out := literal{kind: kindM}
	for !p.punct("}") {
		if len(out.fields) > 0 {
			if err := p.expect(","); err != nil {
				return literal{}, err
			}
		}
		if p.tok.kind != sqlString && p.tok.kind != sqlQuoted {
			return literal{}, errSQL
		}
		name := p.tok.text
		if err := p.advance(); err != nil {
			return literal{}, err
		}
		if err := p.expect(":"); err != nil {
			return literal{}, err
		}
		l, err := p.parseLiteral()
		if err != nil {
			return literal{}, err
		}
		out.fields = append(out.fields, literalField{name, l})
	}
	return out, p.advance()
}
