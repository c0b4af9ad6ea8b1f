package memdynamo

import (
	"errors"
	"strconv"
	"strings"
)

// errSQL is any statement that cannot be read; the caller adds the statement.
var errSQL = errors.New("Statement wasn't well formed, can't be processed")

// sqlLexer cuts a statement into tokens.
type sqlLexer struct {
	src string
	pos int
}

func (*sqlLexer) unexpected() error { return errSQL }

func (l *sqlLexer) next() token {
	l.pos = skipSpace(l.src, l.pos)
	start := l.pos
	if start == len(l.src) {
		return token{kind: tokEOF}
	}
	kind := tokPunct
	switch c := l.src[start]; {
	case isLetter(c) || c == '_':
		kind, l.pos = tokWord, word(l.src, start)
	case c == '"':
		return l.quoted(tokQuoted)
	case c == '\'':
		return l.quoted(tokString)
	case isDigit(c):
		kind = tokNumber
		l.number()
	default:
		l.pos++
		for _, two := range []string{"<=", ">=", "<>", "!=", "<<", ">>"} {
			if strings.HasPrefix(l.src[start:], two) {
				l.pos = start + 2
			}
		}
		if l.pos == start+1 && strings.IndexByte("()[]{},.:;*=<>+-?", c) < 0 {
			kind = tokBad
		}
	}
	return token{kind: kind, text: l.src[start:l.pos]}
}

// quoted reads up to the closing quote; a doubled one is one of the text.
func (l *sqlLexer) quoted(kind tokenKind) token {
	quote := l.src[l.pos]
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		if l.src[i] == quote {
			if i++; i == len(l.src) || l.src[i] != quote {
				l.pos = i
				return token{kind: kind, text: b.String()}
			}
		}
		b.WriteByte(l.src[i])
	}
	return token{kind: tokBad}
}

// number reads digits, a point, an exponent, as far as they go; whether they
// are a number is parseDecimal's to say.
func (l *sqlLexer) number() {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		sign := (c == '+' || c == '-') && (l.src[l.pos-1] == 'e' || l.src[l.pos-1] == 'E')
		if !isDigit(c) && c != '.' && c != 'e' && c != 'E' && !sign {
			return
		}
		l.pos++
	}
}

// sqlParser parses one statement by recursive descent.
type sqlParser struct {
	reader
	out *statement
}

// acceptWord moves past a keyword if it is here.
func (p *sqlParser) acceptWord(w string) bool {
	if !p.tok.is(w) {
		return false
	}
	p.advance()
	return true
}

// words moves past keywords that must be here.
func (p *sqlParser) words(ws ...string) {
	for _, w := range ws {
		if !p.acceptWord(w) {
			p.unexpected()
		}
	}
}

func (p *sqlParser) parse() {
	switch {
	case p.acceptWord("SELECT"):
		p.out.verb = verbCheck
		if !p.accept("*") {
			p.list(func() { p.out.columns = append(p.out.columns, p.parsePath()) })
		}
		p.words("FROM")
		p.parseTable()
		p.parseWhere()
	case p.acceptWord("INSERT"):
		p.out.verb = verbPut
		p.words("INTO")
		p.parseTable()
		p.words("VALUE")
		if p.out.document = p.parseLiteral(); p.out.document.kind != kindM {
			p.unexpected()
		}
	case p.acceptWord("UPDATE"):
		p.out.verb = verbUpdate
		p.parseTable()
		p.parseClauses()
		p.parseWhere()
	case p.acceptWord("DELETE"):
		p.out.verb = verbDelete
		p.words("FROM")
		p.parseTable()
		p.parseWhere()
	default:
		p.unexpected()
	}
	p.accept(";")
}

func (p *sqlParser) parseTable() {
	if p.tok.kind != tokWord && p.tok.kind != tokQuoted {
		p.unexpected()
	}
	p.out.table = p.tok.text
	p.advance()
}

// parseClauses parses SET a = x, b = y, and REMOVE c, in any number and order.
func (p *sqlParser) parseClauses() {
	var removed update
	for {
		switch {
		case p.acceptWord("SET"):
			p.list(func() {
				to := p.parsePath()
				p.expect("=")
				p.out.update = append(p.out.update, assignment{to, p.parseSum()})
			})
		case p.acceptWord("REMOVE"):
			removed = append(removed, assignment{p: p.parsePath()})
		default:
			if p.out.update = append(p.out.update, removed...); p.out.update == nil {
				p.unexpected()
			}
			return
		}
	}
}

// parseSum parses x [+|- y]
func (p *sqlParser) parseSum() operand {
	l, sign := p.parseTerm(), p.tok.text
	if !p.accept("+") && !p.accept("-") {
		return l
	}
	return call{sign, []operand{l, p.parseTerm()}}
}

// parseTerm parses what SET may compute.
func (p *sqlParser) parseTerm() operand {
	return p.parseFunction(p.parseTerm, map[string]int{"list_append": 2, "set_add": 2, "set_delete": 2})
}

// parseOperand parses what conditions may compare.
func (p *sqlParser) parseOperand() operand {
	return p.parseFunction(p.parseOperand, map[string]int{"size": 1})
}

// parseFunction parses a literal, a parameter, a path or one of some functions, which are given
// with how many operands they have.
func (p *sqlParser) parseFunction(one func() operand, functions map[string]int) operand {
	if !p.startsPath() {
		return p.parseSlot()
	}
	name := p.tok
	x := p.parsePath()
	if !p.punct("(") {
		return x
	}
	c := call{strings.ToLower(name.text), nil}
	want, ok := functions[c.function]
	if !ok || name.kind != tokWord || len(x) > 1 {
		p.unexpected()
	}
	c.args = p.parseList("(", ")", want, one)
	if _, ok := c.args[0].(path); !ok && strings.HasPrefix(c.function, "set_") {
		p.unexpected()
	}
	return c
}

// parseList parses open x, y, … close, as many as wanted, or, with 0, at least one.
func (p *sqlParser) parseList(open, end string, want int, one func() operand) (out []operand) {
	p.expect(open)
	p.list(func() { out = append(out, one()) })
	p.expect(end)
	if want > 0 && len(out) != want {
		p.unexpected()
	}
	return out
}

func (p *sqlParser) parseWhere() {
	if p.acceptWord("WHERE") { // no key without: refused with the table known
		p.out.where = conjuncts(p.parseOr(), nil)
	}
}

// startsPath reports whether a name begins here, and no word of the language.
func (p *sqlParser) startsPath() bool {
	return p.tok.kind == tokQuoted || p.tok.kind == tokWord && !sqlKeywords[strings.ToUpper(p.tok.text)]
}

var sqlKeywords = map[string]bool{"AND": true, "OR": true, "NOT": true, "IN": true, "IS": true, "BETWEEN": true,
	"MISSING": true, "NULL": true, "TRUE": true, "FALSE": true, "SET": true, "REMOVE": true, "WHERE": true, "FROM": true,
	"VALUE": true, "RETURNING": true, "SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "INTO": true}

func (p *sqlParser) parsePath() path {
	return p.steps(path{p.parseName()}, p.parseName, p.parseIndex)
}

func (p *sqlParser) parseName() step {
	if !p.startsPath() {
		p.unexpected()
	}
	s := step{name: p.tok.text, slot: -1, index: -1}
	p.advance()
	return s
}

func (p *sqlParser) parseIndex() step {
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if p.tok.kind != tokNumber || err != nil {
		p.unexpected()
	}
	p.advance()
	return step{slot: -1, index: int(n)}
}

// parseSlot parses a literal or a parameter into a slot of its own.
func (p *sqlParser) parseSlot() operand { return p.newSlot(p.parseLiteral()) }

func (p *sqlParser) newSlot(l literal) slot {
	p.out.slots = append(p.out.slots, l)
	return slot(len(p.out.slots) - 1)
}
