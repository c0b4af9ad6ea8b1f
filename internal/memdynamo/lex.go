package memdynamo

import (
	"fmt"
	"strings"
)

// tokenKind is what the lexers of expressions and of statements tell apart.
type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokBad              // a text that begins no token
	tokWord             // an unquoted name, a keyword or a function: which one is the parser's to say
	tokName             // #placeholder
	tokValue            // :placeholder
	tokQuoted           // PartiQL's "name", unescaped
	tokString           // PartiQL's 'text', unescaped
	tokNumber           // digits; in PartiQL, any number
	tokPunct
)

type token struct {
	kind       tokenKind
	text       string
	start, end int // in an expression
}

func (t token) is(word string) bool { return t.kind == tokWord && strings.EqualFold(t.text, word) }

// lexer cuts an expression into tokens. It is the parser that asks, one token
// at a time, so that the first error is the leftmost one.
type lexer struct {
	src        string
	pos        int
	prev, last token // the last tokens given
}

func (l *lexer) next() token {
	l.pos = skipSpace(l.src, l.pos)
	kind, end := l.token(l.pos)
	l.prev, l.last = l.last, token{kind: kind, text: l.src[l.pos:end], start: l.pos, end: end}
	switch kind {
	case tokEOF:
		l.last.text = "<EOF>"
	case tokBad:
		l.last.text = l.src[l.pos : l.pos+1]
	}
	l.pos = end
	return l.last
}

// token is what begins at a position, and where it ends.
func (l *lexer) token(start int) (tokenKind, int) {
	if start == len(l.src) {
		return tokEOF, start
	}
	end := start + 1
	switch c := l.src[start]; {
	case isLetter(c):
		return tokWord, word(l.src, end)
	case isDigit(c):
		for end < len(l.src) && isDigit(l.src[end]) {
			end++
		}
		return tokNumber, end
	case c == '#' || c == ':':
		end = word(l.src, end)
		switch {
		case end == start+1:
			return tokBad, end
		case c == '#':
			return tokName, end
		}
		return tokValue, end
	case strings.IndexByte("()[],.+-=<>", c) < 0:
		return tokBad, word(l.src, end) // also what may not begin a raw name: an underscore, say
	}
	for _, two := range []string{"<>", "<=", ">="} {
		if strings.HasPrefix(l.src[start:], two) {
			return tokPunct, start + 2
		}
	}
	return tokPunct, end
}

// unexpected is the error for the last token, which may not stand where it
// does: near is the source from the token before it to the one after it.
func (l *lexer) unexpected() error {
	t, from := l.last, l.last.start
	if l.prev.end > 0 {
		from = l.prev.start
	}
	end := t.end
	if t.kind != tokEOF && t.kind != tokBad {
		if after := l.next(); after.kind != tokBad && after.kind != tokEOF {
			end = after.end
		}
	}
	return fmt.Errorf("Syntax error; token: %q, near: %q", t.text, l.src[from:end])
}

// word is where the letters, digits and underscores from a position end.
func word(s string, i int) int {
	for i < len(s) && (isLetter(s[i]) || isDigit(s[i]) || s[i] == '_') {
		i++
	}
	return i
}

func skipSpace(s string, i int) int {
	return len(s) - len(strings.TrimLeft(s[i:], " \t\n\r"))
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// reader reads tokens for a parser, which is one token ahead. What is wrong is found many calls
// deep: fail ends the parsing, and parsing returns the error.
type reader struct {
	lex interface {
		next() token
		unexpected() error
	}
	tok token
}

// failure is what fail panics with.
type failure struct{ error }

func fail(err error) { panic(failure{err}) }

// parsing runs a parser from the first token to the last.
func (r *reader) parsing(parse func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = f.error
		}
	}()
	r.advance()
	parse()
	if r.tok.kind != tokEOF {
		r.unexpected()
	}
	return nil
}

// advance moves to the next token.
func (r *reader) advance() {
	if r.tok = r.lex.next(); r.tok.kind == tokBad {
		r.unexpected()
	}
}

func (r *reader) unexpected() { fail(r.lex.unexpected()) }

func (r *reader) punct(text string) bool { return r.tok.kind == tokPunct && r.tok.text == text }

// accept moves past a punctuation mark if it is here.
func (r *reader) accept(text string) bool {
	if !r.punct(text) {
		return false
	}
	r.advance()
	return true
}

// expect moves past a punctuation mark that must be here.
func (r *reader) expect(text string) {
	if !r.accept(text) {
		r.unexpected()
	}
}

// list parses one, one, …
func (r *reader) list(one func()) {
	for more := true; more; more = r.accept(",") {
		one()
	}
}

// steps parses what follows a path's first name: {.name|[index]}.
func (r *reader) steps(to path, name, index func() step) path {
	for {
		switch {
		case r.accept("."):
			to = append(to, name())
		case r.accept("["):
			to = append(to, index())
			r.expect("]")
		default:
			return to
		}
	}
}
