package memdynamo

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is a parsed PartiQL statement: what can be known from its text
// alone, shared and immutable. Its conditions and updates are those of
// expressions, their slots filled from literals and parameters.
type statement struct {
	verb     verb // verbCheck is SELECT
	table    string
	columns  []path  // SELECT; nil for *
	update   update  // UPDATE
	document literal // INSERT
	where    []*node // what WHERE joins by AND
	slots    []literal
	params   int
}

// literal is a value written in a statement, parameters inside it open.
type literal struct {
	param  int // from 1; 0 for none
	value  value
	list   []literal // of a list, or a set
	set    bool
	fields []literalField
	kind   kind // kindL, kindM, or what value is
}

type literalField struct {
	name  string
	value literal
}

const maxStatement = 8192

func parseStatement(text string) (*statement, error) {
	if len(text) > maxStatement {
		return nil, constraint("…", "statements.1.member.statement", "have length less than or equal to 8192")
	}
	p := &sqlParser{reader: reader{lex: &sqlLexer{src: text}}, out: new(statement)}
	switch err := p.parsing(p.parse); {
	case errors.Is(err, errSQL):
		return nil, validation("%s: %s", errSQL, text)
	case err != nil:
		return nil, validation("%s", err)
	}
	return p.out, nil
}

// fill makes a literal's value, its parameters given.
func (l *literal) fill(params []value) (value, error) {
	switch {
	case l.param > 0:
		return params[l.param-1], nil
	case l.set:
		return l.fillSet(params)
	case l.kind == kindL:
		out := make(listValue, len(l.list))
		for i := range l.list {
			v, err := l.list[i].fill(params)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case l.kind == kindM:
		out := make(mapValue, 0, len(l.fields))
		for i := range l.fields {
			v, err := l.fields[i].value.fill(params)
			if err != nil {
				return nil, err
			}
			out = append(out, attr{l.fields[i].name, v})
		}
		sortAttrs(out)
		for i := range out {
			switch {
			case out[i].name == "":
				return nil, errEmptyName
			case i > 0 && out[i].name == out[i-1].name:
				return nil, errors.New("Attribute " + out[i].name + " is given twice")
			}
		}
		return out, nil
	}
	return l.value, nil
}

// fillSet makes a set of << … >>, whose elements must be of one scalar type.
func (l *literal) fillSet(params []value) (value, error) {
	var av types.AttributeValue
	ss, ns, bs := &types.AttributeValueMemberSS{}, &types.AttributeValueMemberNS{}, &types.AttributeValueMemberBS{}
	for i := range l.list {
		v, err := l.list[i].fill(params)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case strValue:
			ss.Value, av = append(ss.Value, string(v)), ss
		case decimal:
			ns.Value, av = append(ns.Value, v.String()), ns
		case binValue:
			bs.Value, av = append(bs.Value, []byte(v)), bs
		}
	}
	if n := len(l.list); len(ss.Value) != n && len(ns.Value) != n && len(bs.Value) != n || n == 0 {
		return nil, errors.New("A set must have elements, all of one type: strings, numbers or binaries")
	}
	return decode(av, 0)
}

// bind fills a statement's slots and checks what its values tell: cond is
// what remains of WHERE beside the key, known only with the table.
func (s *statement) bind(params []value) (*bound, error) {
	if len(params) != s.params {
		return nil, validation("Number of parameters in request and statement don't match.")
	}
	b := &bound{expr: &expr{update: s.update}, slots: make([]value, len(s.slots))}
	for i := range s.slots {
		v, err := s.slots[i].fill(params)
		if err != nil {
			return nil, validation("%s", err)
		}
		b.slots[i] = v
	}
	if s.update != nil {
		if err := b.checkUpdate(); err != nil {
			return nil, validation("%s", err)
		}
	}
	for _, n := range s.where {
		if err := b.checkNode(n); err != nil {
			return nil, validation("%s", err)
		}
	}
	return b, nil
}

var errNoKey = errors.New("Where clause does not contain a mandatory equality on all key attributes")

// split takes the key out of WHERE: its attributes, and the rest as one
// condition, nil if nothing remains.
func (s *statement) split(t *table, b *bound) ([]attr, *bound, error) {
	var attrs []attr
	var rest *node
	for _, n := range s.where {
		name, v := equality(n, b)
		if v == nil || !t.isKey(name) {
			if rest == nil {
				rest = n
			} else {
				rest = &node{op: "AND", of: []*node{rest, n}}
			}
			continue
		}
		if lookup(attrs, name) != nil {
			return nil, nil, errors.New("Multiple conditions on same key " + name + ". Only single item Update/Insert/Delete are supported")
		}
		want := t.rng.kind
		if name == t.hash.name {
			want = t.hash.kind
		}
		if v.kind() != want {
			return nil, nil, errors.New("Key attribute's data type should match its data type in table's schema: Key " + name)
		}
		attrs = append(attrs, attr{name, v})
		sortAttrs(attrs)
	}
	if lookup(attrs, t.hash.name) == nil || t.rng.name != "" && lookup(attrs, t.rng.name) == nil {
		return nil, nil, errNoKey
	}
	if rest == nil {
		return attrs, nil, nil
	}
	return attrs, &bound{expr: &expr{cond: rest}, slots: b.slots}, nil
}

// equality takes name = value apart, either side first; the value is nil for
// any other condition.
func equality(n *node, b *bound) (string, value) {
	if n.op != "=" {
		return "", nil
	}
	l, r := n.args[0], n.args[1]
	if _, ok := l.(slot); ok {
		l, r = r, l
	}
	p, ok1 := l.(path)
	v, ok2 := r.(slot)
	if !ok1 || !ok2 || len(p) != 1 {
		return "", nil
	}
	return p[0].name, b.slots[v]
}

// conjuncts lists what a condition joins by AND, left to right.
func conjuncts(n *node, to []*node) []*node {
	if n.op == "AND" {
		return conjuncts(n.of[1], conjuncts(n.of[0], to))
	}
	return append(to, n)
}
