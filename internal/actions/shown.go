package actions

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// MaxCompared is how many attributes a record has at most that a condition compares with what
// was shown: an expression has 300 operators, and each attribute takes two.
const MaxCompared = 149

// OnlyAsShown returns a write with the fence of [Stamper.OnlyNewer] that is carried out on a record
// only as it was shown, whatever its stamp is. The record has at most [MaxCompared] attributes, and
// at least its key. An attribute that it has got since is not noticed: no condition can tell.
func (s Stamper) OnlyAsShown(item types.TransactWriteItem, shown map[string]types.AttributeValue) types.TransactWriteItem {
	item, e := copied(s.OnlyNewer(item))
	names, values := map[string]string{expressions.Name: s.Attribute}, map[string]types.AttributeValue{}
	if e.Update != nil {
		maps.Copy(names, *e.Names)
		maps.Copy(values, *e.Values)
	}
	mark := freeMark(names, values)
	var all []string
	if _, there := shown[s.Attribute]; !there {
		all = append(all, "attribute_not_exists("+expressions.Name+")")
	}
	for i, name := range sortedNames(shown) {
		placeholder := "#" + mark + strconv.Itoa(i)
		if name == s.Attribute {
			placeholder = expressions.Name
		}
		value := ":" + mark + strconv.Itoa(i)
		names[placeholder], values[value] = name, shown[name]
		all = append(all, placeholder+" = "+value)
	}
	*e.Condition = aws.String(strings.Join(all, " AND "))
	*e.Names, *e.Values = names, values
	return item
}

// freeMark begins placeholders that no other does.
func freeMark(names map[string]string, values map[string]types.AttributeValue) string {
	all := slices.Concat(sortedNames(names), sortedNames(values))
	for mark := "s"; ; mark += "s" {
		taken := slices.ContainsFunc(all, func(placeholder string) bool { return strings.HasPrefix(placeholder[1:], mark) })
		if !taken {
			return mark
		}
	}
}

// StampOnly is the write that changes nothing of a record but its stamp.
func (s Stamper) StampOnly(table string, key map[string]types.AttributeValue) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(table), Key: key,
		UpdateExpression: aws.String("SET " + expressions.Name + " = " + expressions.Value),
	}}
}

// RecordKey finds the primary key of a record in an item of which only the text of the key is
// known, as [KeyText] writes it.
func RecordKey(item map[string]types.AttributeValue, text string) (map[string]types.AttributeValue, error) {
	var possible []string
	for _, name := range sortedNames(item) {
		if CheckKeyValue(item[name]) == nil && strings.Contains(text, name+"="+ValueText(item[name])) {
			possible = append(possible, name)
		}
	}
	var found []map[string]types.AttributeValue
	try := func(names ...string) {
		key := map[string]types.AttributeValue{}
		for _, name := range names {
			key[name] = item[name]
		}
		if KeyText(key) == text {
			found = append(found, key)
		}
	}
	for i, hash := range possible {
		try(hash)
		for _, sort := range possible[i+1:] {
			try(hash, sort)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("which attributes are the key of record %s cannot be told", text)
	}
	return found[0], nil
}
