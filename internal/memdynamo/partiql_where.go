package memdynamo

import "strings"

func (p *sqlParser) parseOr() *node  { return p.parseChain("OR", p.parseAnd) }
func (p *sqlParser) parseAnd() *node { return p.parseChain("AND", p.parseNot) }

// parseChain parses x {word x}, left to right.
func (p *sqlParser) parseChain(word string, one func() *node) *node {
	n := one()
	for p.acceptWord(word) {
		n = &node{op: word, of: []*node{n, one()}}
	}
	return n
}

func (p *sqlParser) parseNot() *node {
	switch {
	case p.acceptWord("NOT"):
		return &node{op: "NOT", of: []*node{p.parseNot()}}
	case p.accept("("):
		n := p.parseOr()
		p.expect(")")
		return n
	}
	return p.parseComparison()
}

func (p *sqlParser) parseComparison() *node {
	switch name := strings.ToLower(p.tok.text); name {
	case "attribute_type", "begins_with", "contains":
		if p.tok.kind == tokWord {
			p.advance()
			return &node{op: name, args: p.parseList("(", ")", 2, p.parseOperand)}
		}
	}
	l := p.parseOperand()
	switch {
	case p.acceptWord("IS"):
		return p.parseIs(l)
	case p.acceptWord("BETWEEN"):
		lo := p.parseOperand()
		p.words("AND")
		return &node{op: "BETWEEN", args: []operand{l, lo, p.parseOperand()}}
	case p.acceptWord("IN"):
		return p.parseIn(l)
	case p.tok.kind != tokPunct:
		p.unexpected()
	}
	op := p.tok.text
	switch op {
	case "!=":
		op = "<>"
	case "=", "<>", "<", "<=", ">", ">=":
	default:
		p.unexpected()
	}
	p.advance()
	return &node{op: op, args: []operand{l, p.parseOperand()}}
}

func (p *sqlParser) parseIn(l operand) *node {
	open, end := "[", "]"
	if p.punct("(") {
		open, end = "(", ")"
	}
	list := p.parseList(open, end, 0, p.parseOperand)
	if len(list) > maxIn {
		p.unexpected()
	}
	return &node{op: "IN", args: append([]operand{l}, list...)}
}

// parseIs parses IS [NOT] MISSING and IS [NOT] NULL.
func (p *sqlParser) parseIs(l operand) *node {
	not := p.acceptWord("NOT")
	if _, ok := l.(path); !ok {
		p.unexpected()
	}
	if p.acceptWord("MISSING") {
		op := "attribute_not_exists"
		if not {
			op = "attribute_exists"
		}
		return &node{op: op, args: []operand{l}}
	}
	p.words("NULL")
	n := &node{op: "attribute_type", args: []operand{l, p.newSlot(literal{value: strValue("NULL"), kind: kindS})}}
	if not {
		return &node{op: "NOT", of: []*node{n}}
	}
	return n
}

// parseLiteral parses ?, 'text', a number, TRUE, FALSE, NULL, [ … ], { … },
// << … >>
func (p *sqlParser) parseLiteral() literal {
	t := p.tok
	switch {
	case t.kind == tokString:
		p.advance()
		return literal{value: strValue(t.text), kind: kindS}
	case t.kind == tokNumber || p.punct("-"):
		return p.parseNumber()
	case p.acceptWord("TRUE"):
		return literal{value: boolValue(true), kind: kindBOOL}
	case p.acceptWord("FALSE"):
		return literal{value: boolValue(false), kind: kindBOOL}
	case p.acceptWord("NULL"):
		return literal{value: nullValue{}, kind: kindNULL}
	case p.accept("?"):
		p.out.params++
		return literal{param: p.out.params}
	case p.accept("["):
		return literal{list: p.parseLiterals("]"), kind: kindL}
	case p.accept("<<"):
		return literal{list: p.parseLiterals(">>"), set: true}
	case p.accept("{"):
		return p.parseDocument()
	}
	p.unexpected()
	return literal{}
}

func (p *sqlParser) parseNumber() literal {
	sign := ""
	if p.accept("-") {
		sign = "-"
	}
	if p.tok.kind != tokNumber {
		p.unexpected()
	}
	d, err := parseDecimal(sign + p.tok.text)
	if err != nil {
		fail(err)
	}
	p.advance()
	return literal{value: d, kind: kindN}
}

// parseLiterals parses x, y, … close, possibly none.
func (p *sqlParser) parseLiterals(end string) (out []literal) {
	if !p.punct(end) {
		p.list(func() { out = append(out, p.parseLiteral()) })
	}
	p.expect(end)
	return out
}

// parseDocument parses 'name': value, …}, possibly none.
func (p *sqlParser) parseDocument() literal {
	out := literal{kind: kindM}
	if !p.punct("}") {
		p.list(func() {
			name := p.tok
			if name.kind != tokString && name.kind != tokQuoted {
				p.unexpected()
			}
			p.advance()
			p.expect(":")
			out.fields = append(out.fields, literalField{name.text, p.parseLiteral()})
		})
	}
	p.expect("}")
	return out
}
