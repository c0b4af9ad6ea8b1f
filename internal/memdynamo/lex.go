package memdynamo

import "fmt"

// tokenKind is what the lexer of expressions tells apart.
type tokenKind uint8

const (
	tokEOF   tokenKind = iota
	tokIdent           // a raw name, a keyword or a function: which one is the parser's to say
	tokName            // #placeholder
	tokValue           // :placeholder
	tokIndex           // digits
	tokPunct           // ( ) [ ] , . + - = <> < <= > >=
)

type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// lexer cuts an expression into tokens. It is the parser that asks, one token
// at a time, so that the first error is the leftmost one.
type lexer struct {
	src  string
	pos  int
	prev token // the last token given
}

// next gives the next token, or a text that begins no token.
func (l *lexer) next() (token, error) {
	for l.pos < len(l.src) && isSpace(l.src[l.pos]) {
		l.pos++
	}
	start := l.pos
	if start == len(l.src) {
		return token{kind: tokEOF, text: "<EOF>", start: start, end: start}, nil
	}
	kind, end := tokPunct, start+1
	switch c := l.src[start]; {
	case isLetter(c):
		kind, end = tokIdent, l.word(start+1)
	case isDigit(c):
		kind = tokIndex
		for end < len(l.src) && isDigit(l.src[end]) {
			end++
		}
	case c == '#' || c == ':':
		kind, end = tokName, l.word(start+1)
		if c == ':' {
			kind = tokValue
		}
		if end == start+1 {
			return token{}, l.syntax(token{text: l.src[start:end], start: start, end: end})
		}
	case c == '<' && end < len(l.src) && (l.src[end] == '>' || l.src[end] == '='),
		c == '>' && end < len(l.src) && l.src[end] == '=':
		end++
	case isPunct(c):
	default:
		// Also what may not begin a raw name: an underscore, say.
		return token{}, l.syntax(token{text: l.src[start:end], start: start, end: l.word(end)})
	}
	l.pos = end
	return token{kind: kind, text: l.src[start:end], start: start, end: end}, nil
}

// word is where the letters, digits and underscores from here end.
func (l *lexer) word(i int) int {
	for i < len(l.src) && (isLetter(l.src[i]) || isDigit(l.src[i]) || l.src[i] == '_') {
		i++
	}
	return i
}

// syntax is the error for a token that may not stand where it does; near is
// the source from the token before it.
func (l *lexer) syntax(t token) error {
	from := t.start
	if l.prev.end > 0 {
		from = l.prev.start
	}
	return fmt.Errorf("Syntax error; token: %q, near: %q", t.text, l.src[from:t.end])
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func isPunct(c byte) bool {
	switch c {
	case '(', ')', '[', ']', ',', '.', '+', '-', '=', '<', '>':
		return true
	}
	return false
}
