// Package expressions joins the fence of a record to a caller's DynamoDB
// expressions.
package expressions

import (
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The placeholders that a fence adds to a caller's expressions.
const (
	Name  = "#holdallFence"
	Value = ":holdallToken"
)

// Conditions of a fence: what it finds is older than the token, or the token's own
// as well.
const (
	Newer    = "(attribute_not_exists(" + Name + ") OR " + Name + " < " + Value + ")"
	NotOlder = "(attribute_not_exists(" + Name + ") OR " + Name + " <= " + Value + ")"

	setFence = Name + " = " + Value
)

// Fence is a condition on an attribute of a record, and the token that a write
// leaves there.
type Fence struct {
	Attribute string
	Condition string // Newer or NotOlder, or what Same and None make of them

	// What every write with the fence has, for those that have nothing else: a unit
	// may have ten thousand. Never changed.
	Names  map[string]string
	Values map[string]types.AttributeValue
}

// New returns the fence of a token.
func New(attribute, condition string, token fmt.Stringer) Fence {
	return Fence{
		Attribute: attribute, Condition: condition,
		Names:  map[string]string{Name: attribute},
		Values: map[string]types.AttributeValue{Value: &types.AttributeValueMemberN{Value: token.String()}},
	}
}

// seen is the placeholder of a fence that was read.
const seen = ":holdallSeen"

// Same is the fence of the same token, which wants to find the one that was read, and that
// to be older.
func (f Fence) Same(read fmt.Stringer) Fence {
	f.Condition = Name + " = " + seen + " AND " + Name + " < " + Value
	f.Values = With(f.Values, map[string]types.AttributeValue{seen: &types.AttributeValueMemberN{Value: read.String()}})
	return f
}

// None is the fence of the same token, which also wants to find none.
func (f Fence) None() Fence {
	f.Condition += " AND attribute_not_exists(" + Name + ")"
	return f
}

// Token is the value that a write leaves.
func (f Fence) Token() types.AttributeValue { return f.Values[Value] }

// Of are where an action has a caller's expressions, and what else all actions have; only an
// update has an update expression.
type Of struct {
	Condition, Update **string
	Names             *map[string]string
	Values            *map[string]types.AttributeValue
	OnFailure         *types.ReturnValuesOnConditionCheckFailure

	Table **string
	Item  *map[string]types.AttributeValue // of a put; the key of any other
}

// In returns the parts of an action of a transaction.
func In(item types.TransactWriteItem) Of {
	switch put, update, del, check := item.Put, item.Update, item.Delete, item.ConditionCheck; {
	case check != nil:
		return Of{
			Table: &check.TableName, Item: &check.Key, Condition: &check.ConditionExpression,
			Names: &check.ExpressionAttributeNames, Values: &check.ExpressionAttributeValues,
			OnFailure: &check.ReturnValuesOnConditionCheckFailure,
		}
	case del != nil:
		return Of{
			Table: &del.TableName, Item: &del.Key, Condition: &del.ConditionExpression,
			Names: &del.ExpressionAttributeNames, Values: &del.ExpressionAttributeValues,
			OnFailure: &del.ReturnValuesOnConditionCheckFailure,
		}
	case update != nil:
		return Of{
			Table: &update.TableName, Item: &update.Key, Condition: &update.ConditionExpression, Update: &update.UpdateExpression,
			Names: &update.ExpressionAttributeNames, Values: &update.ExpressionAttributeValues,
			OnFailure: &update.ReturnValuesOnConditionCheckFailure,
		}
	default:
		return Of{
			Table: &put.TableName, Item: &put.Item, Condition: &put.ConditionExpression,
			Names: &put.ExpressionAttributeNames, Values: &put.ExpressionAttributeValues,
			OnFailure: &put.ReturnValuesOnConditionCheckFailure,
		}
	}
}

// Require joins a condition to the caller's.
func (e Of) Require(condition string) {
	if own := strings.TrimSpace(aws.ToString(*e.Condition)); own != "" {
		condition = "(" + own + ") AND " + condition
	}
	*e.Condition = aws.String(condition)
}

// Join joins the fence's condition to the caller's, and in an update sets the
// fence. A refusal is to bring the record: it says why. The error says in words
// what the expressions may not do.
func (f Fence) Join(e Of) error {
	if err := f.allow(e); err != nil {
		return err
	}
	e.Require(f.Condition)
	if e.Update != nil {
		*e.Update = aws.String(WithSet(aws.ToString(*e.Update), setFence))
	}
	*e.Names, *e.Values = With(f.Names, *e.Names), With(f.Values, *e.Values)
	*e.OnFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return nil
}

// With returns those of a fence and some more; the fence's own, never to be changed, if
// there are none.
func With[V any](fence, more map[string]V) map[string]V {
	if len(more) == 0 {
		return fence
	}
	all := maps.Clone(fence)
	maps.Copy(all, more)
	return all
}

// allow refuses expressions that touch the fence or our placeholders, and
// conditions whose parentheses would open ours.
func (f Fence) allow(e Of) error {
	for name, attribute := range *e.Names {
		switch {
		case name == Name:
			return fmt.Errorf("the placeholder %s is holdall's own", name)
		case attribute == f.Attribute:
			return fmt.Errorf("the placeholder %s names the fence attribute %q, which holdall sets and checks", name, attribute)
		}
	}
	for _, own := range []string{Value, seen} {
		if _, taken := (*e.Values)[own]; taken {
			return fmt.Errorf("the placeholder %s is holdall's own", own)
		}
	}
	for _, place := range []**string{e.Condition, e.Update} {
		if place == nil {
			continue
		}
		text := aws.ToString(*place)
		depth := 0
		for _, t := range Lex(text) {
			switch t.Text {
			case f.Attribute:
				return fmt.Errorf("the expression names the fence attribute %q, which holdall sets and checks", t.Text)
			case Name, Value, seen:
				return fmt.Errorf("the placeholder %s is holdall's own", t.Text)
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

// WithSet adds an assignment to the SET clause of an update expression, or adds
// that clause. SET is a reserved word, so a bare one is always the keyword.
func WithSet(update, assignment string) string {
	for _, t := range Lex(update) {
		if strings.EqualFold(t.Text, "SET") {
			end := t.At + len(t.Text)
			return update[:end] + " " + assignment + ", " + strings.TrimLeft(update[end:], " \t\r\n")
		}
	}
	return strings.TrimSpace(update + " SET " + assignment)
}

// Lexeme is one word, placeholder or sign of an expression.
type Lexeme struct {
	Text string
	At   int
}

// Lex cuts an expression into lexemes.
func Lex(expression string) []Lexeme {
	var all []Lexeme
	for at := 0; at < len(expression); {
		first, end := expression[at], at+1
		if wordByte(first) || first == '#' || first == ':' {
			for end < len(expression) && wordByte(expression[end]) {
				end++
			}
		}
		if first > ' ' {
			all = append(all, Lexeme{expression[at:end], at})
		}
		at = end
	}
	return all
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b >= 0x80
}
