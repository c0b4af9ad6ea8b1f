package memdynamo

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzExpressions: no text makes the parser, the checks, a condition's
// evaluation or an update's application panic or hang, and an update that
// succeeds leaves an item in order.
func FuzzExpressions(f *testing.F) {
	for kind, texts := range map[exprKind][]string{
		condExpr:   {"a = :v AND NOT (b[0].c < size(d) OR contains(#n, :v))", "a BETWEEN :v AND :w OR a IN (:v, b)", "((((a", "begins_with(a, :s)"},
		updateExpr: {"SET a = if_not_exists(a, :v) + :v, b[3].c = list_append(:l, l) REMOVE d[0], d[2] ADD e :v DELETE s :t", "SET a=((b))"},
		projExpr:   {"a, b.c[0], #n", "a[1][2], a[0]"},
		keyExpr:    {"k = :s AND begins_with(r, :s)"},
	} {
		for _, text := range texts {
			f.Add(uint8(kind), text)
		}
	}
	all := map[string]types.AttributeValue{
		":v": &types.AttributeValueMemberN{Value: "1.5"}, ":w": &types.AttributeValueMemberN{Value: "2"}, ":s": &types.AttributeValueMemberS{Value: "s"},
		":t": &types.AttributeValueMemberSS{Value: []string{"a"}}, ":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	}
	it := newItem([]attr{{"a", smallDecimal(3)}, {"b", listValue{mapValue{{"c", smallDecimal(1)}}, strValue("x")}},
		{"d", listValue{smallDecimal(1), smallDecimal(2), smallDecimal(3)}}, {"k", strValue("k")}, {"l", listValue{}}, {"s", strSet{"a", "b"}}})
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		var cache exprCache
		b, err := cache.binder(map[string]string{"#n": "s"}, all)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.bind(exprKind(kind%uint8(projExpr+1)), aws.String(text))
		if err != nil {
			return
		}
		switch {
		case x.update != nil:
			if attrs, err := x.updated(it); err == nil {
				inOrder(t, mapValue(attrs))
			}
		case x.cond != nil:
			_ = x.test(it)
			_ = x.test(nil)
			_, _ = schema{hash: keyAttr{"k", kindS}, rng: keyAttr{"r", kindS}}.keyRange(x)
		default:
			inOrder(t, mapValue(x.project(it.attrs)))
		}
	})
}

// inOrder checks what every stored value must be: sorted, without holes and
// without empty sets.
func inOrder(t *testing.T, v value) {
	switch v := v.(type) {
	case nil:
		t.Fatal("a hole")
	case mapValue:
		for i := range v {
			if i > 0 && v[i-1].name >= v[i].name {
				t.Fatalf("%q before %q", v[i-1].name, v[i].name)
			}
			inOrder(t, v[i].value)
		}
	case listValue:
		for _, e := range v {
			inOrder(t, e)
		}
	case strSet:
		if len(v) == 0 {
			t.Fatal("an empty set")
		}
	}
}

// FuzzStatements: no statement makes the parser panic or hang.
func FuzzStatements(f *testing.F) {
	for _, text := range []string{
		`UPDATE "t" SET a=?, b=list_append(b, [1,?]) SET c={'x':<<1>>} REMOVE d[0].e WHERE k='it''s' AND (a IS NOT MISSING OR size(b) > 1)`,
		`SELECT a, "b".c FROM t WHERE k=? AND n BETWEEN -1 AND 1e5`, `INSERT INTO t VALUE {'k':?}`, `DELETE FROM t WHERE NOT a IN [1,2]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStatement(text)
		if err != nil {
			return
		}
		params := make([]value, s.params)
		for i := range params {
			params[i] = strValue("p")
		}
		b, err := s.bind(params)
		if err != nil {
			return
		}
		_, _, _ = s.split(&table{schema: schema{hash: keyAttr{"k", kindS}}}, b)
	})
}

// FuzzDecimal: what is read is printed, and read again, as the same number.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1.50e3", "99999999999999999999999999999999999999", "1E-130", ".5", "1e125"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDecimal(s)
		if err != nil {
			return
		}
		if again, err := parseDecimal(d.String()); err != nil || again != d {
			t.Fatalf("%q: %s, then %s, %v", s, d, again, err)
		}
	})
}
