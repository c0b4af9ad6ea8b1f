package memdynamo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// parser parses one expression by recursive descent.
type parser struct {
	reader
	out       *expr
	operators int
}

// parse parses an expression's text. It neither sees nor needs a request:
// that the text is wrong is true of every request that has it.
func parse(kind exprKind, text string) (*expr, error) {
	if len(text) > maxExpression {
		return nil, validation("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d", kind, len(text))
	}
	p := &parser{reader: reader{lex: &lexer{src: text}}, out: &expr{kind: kind, text: text}}
	if err := p.parsing(p.parse); err != nil {
		return nil, validation("Invalid %s: %s", kind, err)
	}
	return p.out, nil
}

func (p *parser) parse() {
	if p.tok.kind == tokEOF {
		fail(errEmptyExpression)
	}
	switch p.out.kind {
	case updateExpr:
		p.out.update = p.parseUpdate()
	case projExpr:
		p.list(func() { p.out.paths = append(p.out.paths, p.parsePath()) })
	default:
		p.out.cond = p.asCondition(p.parseOr())
	}
}

// operator counts the current token as an operator, or as the parenthesis of a
// function, and moves past it.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		fail(fmt.Errorf("The expression contains too many operators; operator count: %d", p.operators))
	}
	p.advance()
}

func (p *parser) parsePath() path { return p.parseSteps(path{p.parseName()}) }

// parseSteps parses what follows a path's first name.
func (p *parser) parseSteps(to path) path {
	to = p.steps(to, p.parseName, p.parseIndex)
	if len(to) > maxPath {
		fail(fmt.Errorf("The document path has too many nesting levels; nesting levels: %d", len(to)))
	}
	return to
}

func (p *parser) parseName() (s step) {
	switch p.tok.kind {
	case tokWord:
		s = rawName(p.tok.text)
	case tokName:
		s = step{slot: slotOf(&p.out.names, p.tok.text), index: -1}
	default:
		p.unexpected()
	}
	p.advance()
	return s
}

func rawName(text string) step {
	if reserved(text) {
		fail(errors.New("Attribute name is a reserved keyword; reserved keyword: " + text))
	}
	return step{name: text, slot: -1, index: -1}
}

func (p *parser) parseIndex() step {
	if p.tok.kind != tokNumber {
		p.unexpected()
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		fail(errors.New("List index is not within the allowable range; index: [" + p.tok.text + "]"))
	}
	p.advance()
	return step{slot: -1, index: int(n)}
}

func (p *parser) parseValue() slot {
	if p.tok.kind != tokValue {
		p.unexpected()
	}
	s := slot(slotOf(&p.out.values, p.tok.text))
	p.advance()
	return s
}

// slotOf is the number of a placeholder, the same for the same text.
func slotOf(slots *[]string, text string) int {
	if i := slices.Index(*slots, text); i >= 0 {
		return i
	}
	*slots = append(*slots, text)
	return len(*slots) - 1
}

// parseTerm parses a value, a path or a function; ok is false if none of them begins here.
func (p *parser) parseTerm(function func(name string) part) (x part, ok bool) {
	t := p.tok
	switch t.kind {
	case tokValue:
		return part{op: p.parseValue()}, true
	case tokName:
		return part{op: p.parsePath()}, true
	case tokWord:
		p.advance()
		if p.punct("(") {
			return function(t.text), true
		}
		return part{op: p.parseSteps(path{rawName(t.text)})}, true
	}
	return part{}, false
}

// parseArguments parses operand, …) and checks how many there are.
func (p *parser) parseArguments(function string, want int, one func() operand) (args []operand) {
	p.list(func() { args = append(args, one()) })
	p.expect(")")
	if len(args) != want {
		fail(fmt.Errorf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d",
			function, len(args)))
	}
	return args
}

// needPath refuses a function's operand that is no path.
func needPath(function string, x operand) {
	if _, ok := x.(path); !ok {
		fail(errors.New("Operator or function requires a document path; operator or function: " + function))
	}
}

func failMisused(function string) {
	fail(errors.New("The function is not allowed to be used this way in an expression; function: " + function))
}
