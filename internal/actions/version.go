package actions

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// Version is how far programs that know nothing of holdall have counted the changes of a
// record: each of their writes wants the number that they have read, and adds one. Nothing is known
// of a record that was not read.
type Version struct {
	Attribute string // which has it
	Key       string // an attribute of the record's key, which every record has
	Read      bool   // by [ReadVersion]
	found     bool   // the record was there
	number    string // empty if it had none
}

// ReadVersion is that of a record that was read; there is no item if it was not there.
func ReadVersion(attribute, key string, item map[string]types.AttributeValue) (Version, error) {
	v := Version{Attribute: attribute, Key: key, Read: true, found: len(item) > 0}
	value, there := item[attribute]
	if !there {
		return v, nil
	}
	n, isNumber := value.(*types.AttributeValueMemberN)
	if !isNumber || !isWhole(n.Value) {
		return v, fmt.Errorf("its version attribute %q is %s, which is no whole number", attribute, ValueText(value))
	}
	v.number = NumberText(n.Value)
	return v, nil
}

func isWhole(number string) bool { return plainInteger.MatchString(NumberText(number)) }

// String is for messages.
func (v Version) String() string {
	switch {
	case !v.found:
		return "not there"
	case v.number == "":
		return "without a number"
	}
	return v.number
}

// Same reports whether an item, as a refused write shows it, is as the record was read, as far
// as its version tells. Of one that was not read it tells nothing.
func (v Version) Same(item map[string]types.AttributeValue) bool {
	now, err := ReadVersion(v.Attribute, v.Key, item)
	return !v.Read || err == nil && now == v
}

// The placeholders that a version adds to a caller's expressions.
const (
	versionName  = "#holdallVersion"
	versionKey   = "#holdallKey"
	versionRead  = ":holdallVersion"
	versionZero  = ":holdallZero"
	versionOne   = ":holdallOne"
	countsChange = versionName + " = if_not_exists(" + versionName + ", " + versionZero + ") + " + versionOne
)

// On returns a copy of a caller's action that wants the version that was read, if it was, and, if
// it writes, leaves the next one. The caller's own expressions must have balanced parentheses,
// which [Stamper.Check] sees to.
func (v Version) On(item types.TransactWriteItem) (types.TransactWriteItem, error) {
	item, e := copied(item)
	if err := v.allow(e); err != nil {
		return item, err
	}
	names, values := map[string]string{}, map[string]types.AttributeValue{}
	switch {
	case !v.Read:
	case !v.found:
		e.Require("attribute_not_exists(" + versionKey + ")")
		names[versionKey] = v.Key
	case v.number == "":
		e.Require("attribute_exists(" + versionKey + ") AND attribute_not_exists(" + versionName + ")")
		names[versionKey], names[versionName] = v.Key, v.Attribute
	default:
		e.Require(versionName + " = " + versionRead)
		names[versionName] = v.Attribute
		values[versionRead] = &types.AttributeValueMemberN{Value: v.number}
	}
	switch {
	case item.Put != nil:
		item.Put.Item = maps.Clone(item.Put.Item)
		item.Put.Item[v.Attribute] = &types.AttributeValueMemberN{Value: v.next()}
	case item.Update != nil:
		*e.Update = aws.String(expressions.WithSet(aws.ToString(*e.Update), countsChange))
		names[versionName] = v.Attribute
		values[versionZero], values[versionOne] = &types.AttributeValueMemberN{Value: "0"}, &types.AttributeValueMemberN{Value: "1"}
	}
	*e.Names, *e.Values = expressions.With(names, *e.Names), expressions.With(values, *e.Values)
	return item, nil
}

// Check is the action that wants a record to have the version that was read, and writes nothing.
func (v Version) Check(table string, key map[string]types.AttributeValue) types.TransactWriteItem {
	check := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String(table), Key: key}}
	check, _ = v.On(check) // which refuses only what a caller's own expressions have
	return check
}

// next is the number behind the one that was read.
func (v Version) next() string {
	n, ok := new(big.Int).SetString(v.number, 10)
	if !ok { // it had none
		return "1"
	}
	return n.Add(n, big.NewInt(1)).String()
}

// allow refuses an update that counts by itself, and our placeholders.
func (v Version) allow(e expressions.Of) error {
	for _, own := range []string{versionName, versionKey, versionRead, versionZero, versionOne} {
		_, isName := (*e.Names)[own]
		_, isValue := (*e.Values)[own]
		if isName || isValue {
			return fmt.Errorf("the placeholder %s is holdall's own", own)
		}
	}
	if e.Update == nil {
		return nil
	}
	for _, t := range expressions.Lex(aws.ToString(*e.Update)) {
		if t.Text == v.Attribute || (*e.Names)[t.Text] == v.Attribute {
			return fmt.Errorf("the update names the version attribute %q, which holdall counts", v.Attribute)
		}
	}
	return nil
}
