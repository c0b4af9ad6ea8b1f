package memdynamo

import (
	"errors"
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
