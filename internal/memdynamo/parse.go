package memdynamo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxExpression = 4096 // bytes
	maxOperators  = 300
	maxIn         = 100
	maxPath       = 32
)

var (
	errEmptyExpression = errors.New("The expression can not be empty;")
	errRedundant       = errors.New("The expression has redundant parentheses;")
)

// parser parses one expression by recursive descent, one token ahead.
type parser struct {
	lex       lexer
	tok       token
	out       *expr
	operators int
}

// parse parses an expression's text. It neither sees nor needs a request:
// that the text is wrong is true of every request that has it.
func parse(kind exprKind, text string) (*expr, error) {
	p := &parser{lex: lexer{src: text}, out: &expr{kind: kind, text: text}}
	err := p.parse()
	if err != nil {
		return nil, validation("Invalid %s: %s", kind, err)
	}
	return p.out, nil
}

func (p *parser) parse() error {
	if len(p.lex.src) > maxExpression {
		return fmt.Errorf("Expression size has exceeded the maximum allowed size; expression size: %d", len(p.lex.src))
	}
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.kind == tokEOF {
		return errEmptyExpression
	}
	var err error
	switch p.out.kind {
	case updateExpr:
		p.out.update, err = p.parseUpdate()
	case projExpr:
		p.out.paths, err = p.parsePaths()
	default:
		p.out.cond, err = p.parseCondition()
	}
	if err != nil {
		return err
	}
	if p.tok.kind != tokEOF {
		return p.unexpected()
	}
	return nil
}

// advance moves to the next token.
func (p *parser) advance() error {
	p.lex.prev = p.tok
	t, err := p.lex.next()
	if err != nil {
		return err
	}
	p.tok = t
	return nil
}

// unexpected is the syntax error at the current token; its text reaches to
// the end of the token after it.
func (p *parser) unexpected() error {
	t := p.tok
	if t.kind != tokEOF {
		if after, err := p.lex.next(); err == nil && after.kind != tokEOF {
			t.end = after.end
		}
	}
	return p.lex.syntax(t)
}

func (p *parser) punct(text string) bool { return p.tok.kind == tokPunct && p.tok.text == text }

func (p *parser) keyword(word string) bool {
	return p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, word)
}

// expect moves past a punctuation mark that must be here.
func (p *parser) expect(text string) error {
	if !p.punct(text) {
		return p.unexpected()
	}
	return p.advance()
}

// count counts an operator or a function.
func (p *parser) count() error {
	p.operators++
	if p.operators > maxOperators {
		return fmt.Errorf("The expression contains too many operators; operator count: %d", p.operators)
	}
	return nil
}

// parsePaths parses path, path, …
func (p *parser) parsePaths() ([]path, error) {
	var out []path
	for {
		x, err := p.parsePath()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if !p.punct(",") {
			return out, nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// parsePath parses name{.name|[index]}.
func (p *parser) parsePath() (path, error) {
	s, err := p.parseName()
	if err != nil {
		return nil, err
	}
	return p.parseSteps(path{s})
}

// parseSteps parses what follows a path's first name.
func (p *parser) parseSteps(to path) (path, error) {
	for {
		var s step
		var err error
		switch {
		case p.punct("."):
			if err := p.advance(); err != nil {
				return nil, err
			}
			s, err = p.parseName()
		case p.punct("["):
			s, err = p.parseIndex()
		default:
			if len(to) > maxPath {
				return nil, fmt.Errorf("The document path has too many nesting levels; nesting levels: %d", len(to))
			}
			return to, nil
		}
		if err != nil {
			return nil, err
		}
		to = append(to, s)
	}
}

func (p *parser) parseName() (step, error) {
	t := p.tok
	switch t.kind {
	case tokIdent:
		if reserved(t.text) {
			return step{}, errors.New("Attribute name is a reserved keyword; reserved keyword: " + t.text)
		}
		return step{name: t.text, slot: -1, index: -1}, p.advance()
	case tokName:
		return step{slot: slot(&p.out.names, t.text), index: -1}, p.advance()
	}
	return step{}, p.unexpected()
}

func (p *parser) parseIndex() (step, error) {
	if err := p.advance(); err != nil {
		return step{}, err
	}
	if p.tok.kind != tokIndex {
		return step{}, p.unexpected()
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		return step{}, errors.New("List index is not within the allowable range; index: [" + p.tok.text + "]")
	}
	if err := p.advance(); err != nil {
		return step{}, err
	}
	return step{slot: -1, index: int(n)}, p.expect("]")
}

func (p *parser) parseValue() (valueOperand, error) {
	if p.tok.kind != tokValue {
		return valueOperand{}, p.unexpected()
	}
	return valueOperand{slot: slot(&p.out.values, p.tok.text)}, p.advance()
}

// slot is the number of a placeholder, the same for the same text.
func slot(slots *[]string, text string) int {
	if i := slices.Index(*slots, text); i >= 0 {
		return i
	}
	*slots = append(*slots, text)
	return len(*slots) - 1
}
