package unitofwork

// Pure: decides, does no I/O.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
)

// The placeholders that stamping adds to a caller's expressions.
const (
	fenceName  = "#holdallFence"
	tokenValue = ":holdallToken"
	isNewer    = "(attribute_not_exists(" + fenceName + ") OR " + fenceName + " < " + tokenValue + ")"
	setFence   = fenceName + " = " + tokenValue
)

// stamper puts a unit's token on what it writes: every write sets the record's
// fence and is carried out only if the fence it finds is older.
type stamper struct {
	attr  string // the fence attribute
	token fencing.Token

	// What every stamped action has, for those that have nothing else: a unit may
	// have ten thousand. Never changed.
	names  map[string]string
	values map[string]types.AttributeValue
}

func newStamper(attr string, token fencing.Token) stamper {
	s := stamper{attr: attr, token: token, names: map[string]string{fenceName: attr}}
	s.values = map[string]types.AttributeValue{tokenValue: s.value()}
	return s
}

// stamp returns a copy of the caller's action with the fence set and checked.
// The caller's own action is not changed. The error says in words what the
// expressions may not do.
func (s stamper) stamp(item types.TransactWriteItem) (types.TransactWriteItem, error) {
	if put := item.Put; put != nil {
		if _, touched := put.Item[s.attr]; touched {
			return item, fmt.Errorf("the item has the fence attribute %q, which holdall sets", s.attr)
		}
	}
	item, e := copied(item)
	if put := item.Put; put != nil {
		put.Item = maps.Clone(put.Item)
		put.Item[s.attr] = s.value()
	}
	return item, s.guard(e)
}

// copied returns a copy of an action, and where the copy has its expressions.
func copied(item types.TransactWriteItem) (types.TransactWriteItem, expressions) {
	switch {
	case item.Put != nil:
		put := *item.Put
		return types.TransactWriteItem{Put: &put}, expressions{
			put.TableName, &put.ConditionExpression, nil, &put.ExpressionAttributeNames, &put.ExpressionAttributeValues, &put.ReturnValuesOnConditionCheckFailure,
		}
	case item.Update != nil:
		update := *item.Update
		return types.TransactWriteItem{Update: &update}, expressions{
			update.TableName, &update.ConditionExpression, &update.UpdateExpression, &update.ExpressionAttributeNames, &update.ExpressionAttributeValues, &update.ReturnValuesOnConditionCheckFailure,
		}
	case item.Delete != nil:
		del := *item.Delete
		return types.TransactWriteItem{Delete: &del}, expressions{
			del.TableName, &del.ConditionExpression, nil, &del.ExpressionAttributeNames, &del.ExpressionAttributeValues, &del.ReturnValuesOnConditionCheckFailure,
		}
	default:
		check := *item.ConditionCheck
		return types.TransactWriteItem{ConditionCheck: &check}, expressions{
			check.TableName, &check.ConditionExpression, nil, &check.ExpressionAttributeNames, &check.ExpressionAttributeValues, &check.ReturnValuesOnConditionCheckFailure,
		}
	}
}

// onlyNewer returns an action, stamped, whose only condition is that the stamp
// it finds is older.
func (s stamper) onlyNewer(item types.TransactWriteItem) types.TransactWriteItem {
	item, e := copied(item)
	*e.condition, *e.onFailure = aws.String(isNewer), types.ReturnValuesOnConditionCheckFailureAllOld
	names, values := *e.names, *e.values
	*e.names, *e.values = s.names, s.values
	if e.update != nil {
		used := lex(aws.ToString(*e.update))
		*e.names, *e.values = with(s.names, named(names, used)), with(s.values, named(values, used))
	}
	return item
}

// condition returns the whole condition of a stamped action as a check of its
// record, which has this key.
func condition(item types.TransactWriteItem, key map[string]types.AttributeValue) types.TransactWriteItem {
	if item.ConditionCheck != nil {
		return item
	}
	_, e := copied(item)
	used := lex(aws.ToString(*e.condition))
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: e.table, Key: key, ConditionExpression: *e.condition,
		ExpressionAttributeNames: named(*e.names, used), ExpressionAttributeValues: named(*e.values, used),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// named are the placeholders that an expression uses: DynamoDB refuses others.
func named[V any](all map[string]V, used []lexeme) map[string]V {
	some := map[string]V{}
	for _, t := range used {
		if v, ok := all[t.text]; ok {
			some[t.text] = v
		}
	}
	return some
}

// with returns those of the fence and some more.
func with[V any](fence, more map[string]V) map[string]V {
	if len(more) == 0 {
		return fence
	}
	all := maps.Clone(fence)
	maps.Copy(all, more)
	return all
}

func (s stamper) value() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: s.token.String()}
}

// expressions are where an action, our copy of it, has the caller's; only an
// update has an update expression.
type expressions struct {
	table             *string
	condition, update **string
	names             *map[string]string
	values            *map[string]types.AttributeValue
	onFailure         *types.ReturnValuesOnConditionCheckFailure
}

// guard joins the condition on the fence to the caller's, and in an update sets
// the fence. A refusal is to bring the record: it says why.
func (s stamper) guard(e expressions) error {
	if err := s.allow(e); err != nil {
		return err
	}
	condition := isNewer
	if own := strings.TrimSpace(aws.ToString(*e.condition)); own != "" {
		condition = "(" + own + ") AND " + isNewer
	}
	*e.condition = aws.String(condition)
	if e.update != nil {
		*e.update = aws.String(withSet(aws.ToString(*e.update)))
	}
	*e.names, *e.values = with(s.names, *e.names), with(s.values, *e.values)
	*e.onFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return nil
}

// allow refuses expressions that touch the fence or our placeholders, and
// conditions whose parentheses would open ours.
func (s stamper) allow(e expressions) error {
	for name, attr := range *e.names {
		if name == fenceName {
			return fmt.Errorf("the placeholder %s is holdall's own", name)
		}
		if attr == s.attr {
			return fmt.Errorf("the placeholder %s names the fence attribute %q, which holdall sets and checks", name, attr)
		}
	}
	if _, taken := (*e.values)[tokenValue]; taken {
		return fmt.Errorf("the placeholder %s is holdall's own", tokenValue)
	}
	for _, place := range []**string{e.condition, e.update} {
		if place == nil {
			continue
		}
		text := aws.ToString(*place)
		depth := 0
		for _, t := range lex(text) {
			switch t.text {
			case s.attr:
				return fmt.Errorf("the expression names the fence attribute %q, which holdall sets and checks", t.text)
			case fenceName, tokenValue:
				return fmt.Errorf("the placeholder %s is holdall's own", t.text)
			case "(":
				depth++
			case ")":
				depth--
			}
			if depth < 0 {
				break
			}
		}
		if depth != 0 {
			return fmt.Errorf("the parentheses of the expression %q do not match", text)
		}
	}
	return nil
}

// withSet adds the fence to the SET clause of an update expression, or adds
// that clause. SET is a reserved word, so a bare one is always the keyword.
func withSet(update string) string {
	for _, t := range lex(update) {
		if strings.EqualFold(t.text, "SET") {
			end := t.at + len(t.text)
			return update[:end] + " " + setFence + ", " + strings.TrimLeft(update[end:], " \t\r\n")
		}
	}
	return strings.TrimSpace(update + " SET " + setFence)
}

// lexeme is one word, placeholder or sign of an expression.
type lexeme struct {
	text string
	at   int
}

func lex(expression string) []lexeme {
	var lexemes []lexeme
	for i := 0; i < len(expression); {
		if !wordByte(expression[i]) {
			if expression[i] > ' ' {
				lexemes = append(lexemes, lexeme{expression[i : i+1], i})
			}
			i++
			continue
		}
		start := i
		for i++; i < len(expression) && wordByte(expression[i]) && !strings.ContainsRune("#:", rune(expression[i])); i++ {
		}
		lexemes = append(lexemes, lexeme{expression[start:i], start})
	}
	return lexemes
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '#' || b == ':' || b >= 0x80
}

// fenceOf returns the fence of a record, zero if it has none. It reports whether
// that is one: anybody may have written something else there.
func (s stamper) fenceOf(item map[string]types.AttributeValue) (fencing.Token, bool) {
	value, there := item[s.attr]
	if !there {
		return 0, true
	}
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	t, err := strconv.ParseInt(n.Value, 10, 64)
	return fencing.Token(t), err == nil && fencing.Token(t).Valid()
}

// keyText writes a record's primary key for people, and for telling two apart.
func keyText(key map[string]types.AttributeValue) string {
	parts := make([]string, 0, len(key))
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, name+"="+valueText(key[name]))
	}
	return strings.Join(parts, " ")
}

func valueText(value types.AttributeValue) string {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return numberText(v.Value)
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("%x", v.Value)
	default:
		return fmt.Sprintf("%T", v)
	}
}
