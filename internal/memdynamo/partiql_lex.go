package memdynamo

import (
	"errors"
	"strings"
)

// sqlKind is what the lexer of statements tells apart.
type sqlKind uint8

const (
	sqlEOF    sqlKind = iota
	sqlWord           // an unquoted name, a keyword or a function
	sqlQuoted         // "name", unescaped
	sqlString         // 'text', unescaped
	sqlNumber
	sqlPunct
)

type sqlToken struct {
	kind sqlKind
	text string
}

// errSQL is any statement that cannot be read; the caller adds the statement.
var errSQL = errors.New("Statement wasn't well formed, can't be processed")

// sqlLexer cuts a statement into tokens.
type sqlLexer struct {
	src string
	pos int
}

func (l *sqlLexer) next() (sqlToken, error) {
	for l.pos < len(l.src) && isSpace(l.src[l.pos]) {
		l.pos++
	}
	start := l.pos
	if start == len(l.src) {
		return sqlToken{kind: sqlEOF}, nil
	}
	switch c := l.src[start]; {
	case isLetter(c) || c == '_':
		words := lexer{src: l.src}
		l.pos = words.word(start)
		return sqlToken{sqlWord, l.src[start:l.pos]}, nil
	case c == '"':
		text, err := l.quoted('"')
		return sqlToken{sqlQuoted, text}, err
	case c == '\'':
		text, err := l.quoted('\'')
		return sqlToken{sqlString, text}, err
	case isDigit(c):
		l.number()
		return sqlToken{sqlNumber, l.src[start:l.pos]}, nil
	}
	for _, two := range []string{"<=", ">=", "<>", "!=", "<<", ">>"} {
		if strings.HasPrefix(l.src[start:], two) {
			l.pos += 2
			return sqlToken{sqlPunct, two}, nil
		}
	}
	if strings.IndexByte("()[]{},.:;*=<>+-?", l.src[start]) < 0 {
		return sqlToken{}, errSQL
	}
	l.pos++
	return sqlToken{sqlPunct, l.src[start:l.pos]}, nil
}

// quoted reads up to the closing quote; a doubled one is one of the text.
func (l *sqlLexer) quoted(quote byte) (string, error) {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		if l.src[i] != quote {
			b.WriteByte(l.src[i])
			continue
		}
		if i+1 < len(l.src) && l.src[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		l.pos = i + 1
		return b.String(), nil
	}
	return "", errSQL
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
