package memdynamo

import "strconv"

// sqlParser parses one statement by recursive descent, one token ahead.
type sqlParser struct {
	lex sqlLexer
	tok sqlToken
	out *statement
}

func (p *sqlParser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *sqlParser) word(w string) bool  { return isWord(p.tok, w) }
func (p *sqlParser) punct(s string) bool { return p.tok.kind == sqlPunct && p.tok.text == s }

// words moves past keywords that must be here.
func (p *sqlParser) words(ws ...string) error {
	for _, w := range ws {
		if !p.word(w) {
			return errSQL
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (p *sqlParser) expect(s string) error {
	if !p.punct(s) {
		return errSQL
	}
	return p.advance()
}

// accept moves past a punctuation mark if it is here.
func (p *sqlParser) accept(s string) (bool, error) {
	if !p.punct(s) {
		return false, nil
	}
	return true, p.advance()
}

func (p *sqlParser) parse() error {
	if err := p.advance(); err != nil {
		return err
	}
	var err error
	switch {
	case p.word("SELECT"):
		err = p.parseSelect()
	case p.word("INSERT"):
		err = p.parseInsert()
	case p.word("UPDATE"):
		err = p.parseUpdate()
	case p.word("DELETE"):
		err = p.parseDelete()
	default:
		return errSQL
	}
	if err != nil {
		return err
	}
	if _, err := p.accept(";"); err != nil {
		return err
	}
	if p.tok.kind != sqlEOF {
		return errSQL
	}
	return nil
}

func (p *sqlParser) parseSelect() error {
	p.out.verb = sqlSelect
	if err := p.advance(); err != nil {
		return err
	}
	if all, err := p.accept("*"); err != nil {
		return err
	} else if !all {
		for {
			x, err := p.parsePath()
			if err != nil {
				return err
			}
			p.out.columns = append(p.out.columns, x)
			if more, err := p.accept(","); err != nil {
				return err
			} else if !more {
				break
			}
		}
	}
	if err := p.words("FROM"); err != nil {
		return err
	}
	return p.parseTableWhere()
}

func (p *sqlParser) parseDelete() error {
	p.out.verb = sqlDelete
	if err := p.words("DELETE", "FROM"); err != nil {
		return err
	}
	return p.parseTableWhere()
}

func (p *sqlParser) parseInsert() error {
	p.out.verb = sqlInsert
	if err := p.words("INSERT", "INTO"); err != nil {
		return err
	}
	if err := p.parseTable(); err != nil {
		return err
	}
	if err := p.words("VALUE"); err != nil {
		return err
	}
	var err error
	p.out.document, err = p.parseLiteral()
	if err == nil && p.out.document.kind != kindM {
		return errSQL
	}
	return err
}

func (p *sqlParser) parseUpdate() error {
	p.out.verb, p.out.update = sqlUpdate, new(update)
	if err := p.words("UPDATE"); err != nil {
		return err
	}
	if err := p.parseTable(); err != nil {
		return err
	}
	clauses := 0
	for ; ; clauses++ {
		switch {
		case p.word("SET"):
			if err := p.parseSets(); err != nil {
				return err
			}
			continue
		case p.word("REMOVE"):
			if err := p.advance(); err != nil {
				return err
			}
			x, err := p.parsePath()
			if err != nil {
				return err
			}
			p.out.update.remove = append(p.out.update.remove, x)
			continue
		}
		break
	}
	if clauses == 0 {
		return errSQL
	}
	return p.parseWhere()
}

// parseSets parses SET a = x, b = y
func (p *sqlParser) parseSets() error {
	for more := true; more; {
		if err := p.advance(); err != nil { // past SET, or a comma
			return err
		}
		to, err := p.parsePath()
		if err != nil {
			return err
		}
		if err := p.expect("="); err != nil {
			return err
		}
		x, err := p.parseSum()
		if err != nil {
			return err
		}
		p.out.update.set = append(p.out.update.set, setAction{to, x})
		more = p.punct(",")
	}
	return nil
}

// parseSum parses x [+|- y]
func (p *sqlParser) parseSum() (operand, error) {
	l, err := p.parseTerm()
	if err != nil {
		return nil, err
	}
	if !p.punct("+") && !p.punct("-") {
		return l, nil
	}
	minus := p.punct("-")
	if err := p.advance(); err != nil {
		return nil, err
	}
	r, err := p.parseTerm()
	return arithOperand{minus: minus, l: l, r: r}, err
}

// parseTerm parses a literal, a parameter, a path or a function of SET.
func (p *sqlParser) parseTerm() (operand, error) {
	if !p.startsPath() {
		return p.parseSlot()
	}
	function := p.tok
	x, err := p.parsePath()
	if err != nil || !p.punct("(") {
		return pathOperand{x}, err
	}
	if function.kind != sqlWord || len(x) > 1 {
		return nil, errSQL
	}
	args, err := p.parseList("(", ")", p.parseTerm)
	if err != nil || len(args) != 2 {
		return nil, errSQL
	}
	switch {
	case isWord(function, "list_append"):
		return appendOperand{args[0], args[1]}, nil
	case isWord(function, "set_add"), isWord(function, "set_delete"):
		to, ok := args[0].(pathOperand)
		if !ok {
			return nil, errSQL
		}
		return setOpOperand{minus: isWord(function, "set_delete"), p: to.p, x: args[1]}, nil
	}
	return nil, errSQL
}

// parseList parses open x, y, … close, at least one.
func (p *sqlParser) parseList(open, end string, one func() (operand, error)) ([]operand, error) {
	if err := p.expect(open); err != nil {
		return nil, err
	}
	var out []operand
	for {
		x, err := one()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if more, err := p.accept(","); err != nil {
			return nil, err
		} else if !more {
			return out, p.expect(end)
		}
	}
}

func (p *sqlParser) parseTable() error {
	if p.tok.kind != sqlWord && p.tok.kind != sqlQuoted {
		return errSQL
	}
	p.out.table = p.tok.text
	return p.advance()
}

func (p *sqlParser) parseTableWhere() error {
	if err := p.parseTable(); err != nil {
		return err
	}
	return p.parseWhere()
}

func (p *sqlParser) parseWhere() error {
	if !p.word("WHERE") {
		return nil // no key then: refused with the table known
	}
	if err := p.advance(); err != nil {
		return err
	}
	n, err := p.parseOr()
	p.out.where = conjuncts(n, nil)
	return err
}

// startsPath reports whether a name begins here, and no word of the language.
func (p *sqlParser) startsPath() bool {
	return p.tok.kind == sqlQuoted || p.tok.kind == sqlWord && !sqlKeyword(p.tok)
}

func sqlKeyword(t sqlToken) bool {
	for _, w := range [...]string{"AND", "OR", "NOT", "IN", "IS", "BETWEEN", "MISSING", "NULL", "TRUE", "FALSE",
		"SET", "REMOVE", "WHERE", "FROM", "VALUE", "RETURNING", "SELECT", "INSERT", "UPDATE", "DELETE", "INTO"} {
		if isWord(t, w) {
			return true
		}
	}
	return false
}

func (p *sqlParser) parsePath() (path, error) {
	var out path
	for {
		if !p.startsPath() {
			return nil, errSQL
		}
		out = append(out, step{name: p.tok.text, slot: -1, index: -1})
		if err := p.advance(); err != nil {
			return nil, err
		}
		for p.punct("[") {
			s, err := p.parseIndex()
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		if more, err := p.accept("."); err != nil {
			return nil, err
		} else if !more {
			return out, nil
		}
	}
}

func (p *sqlParser) parseIndex() (step, error) {
	if err := p.advance(); err != nil {
		return step{}, err
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if p.tok.kind != sqlNumber || err != nil {
		return step{}, errSQL
	}
	if err := p.advance(); err != nil {
		return step{}, err
	}
	return step{slot: -1, index: int(n)}, p.expect("]")
}

// parseSlot parses a literal or a parameter into a slot of its own.
func (p *sqlParser) parseSlot() (operand, error) {
	l, err := p.parseLiteral()
	if err != nil {
		return nil, err
	}
	p.out.slots = append(p.out.slots, l)
	return valueOperand{len(p.out.slots) - 1}, nil
}
