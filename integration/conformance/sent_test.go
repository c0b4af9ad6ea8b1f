package conformance

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// recorder notes the conditions and updates that the suite sends.
type recorder struct {
	API
	expressions map[string]bool // canonical
}

func (r recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.expressions[canonical(in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames)] = true
	return r.API.UpdateItem(ctx, in, opts...)
}

func (r recorder) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, action := range in.TransactItems {
		if u, c := action.Update, action.ConditionCheck; u != nil || c != nil {
			r.expressions[canonicalAction(action)] = true
		}
	}
	return r.API.TransactWriteItems(ctx, in, opts...)
}

// canonicalAction is canonical for an update or a check.
func canonicalAction(action types.TransactWriteItem) string {
	if u := action.Update; u != nil {
		return canonical(u.ConditionExpression, u.UpdateExpression, u.ExpressionAttributeNames)
	}
	c := action.ConditionCheck
	return canonical(c.ConditionExpression, nil, c.ExpressionAttributeNames)
}

var placeholder = regexp.MustCompile(`[#:][a-zA-Z]+`)

// canonical returns the expressions of an action without its choice of placeholders: each attribute by its
// name, and each value by a number, in the order in which the values first occur.
func canonical(condition, update *string, names map[string]string) string {
	numbers := map[string]string{}
	return placeholder.ReplaceAllStringFunc(aws.ToString(condition)+" => "+aws.ToString(update), func(p string) string {
		if p[0] == '#' {
			return names[p]
		}
		if numbers[p] == "" {
			numbers[p] = fmt.Sprintf(":%d", len(numbers)+1)
		}
		return numbers[p]
	})
}

// complete fails if the library can send an action on a lock row that the suite has not sent. Apart from
// their placeholders the expressions must be equal, so a changed clause of the library needs a changed case.
func (r recorder) complete(t *testing.T) {
	for builder, actions := range protocol() {
		told := map[string]bool{}
		for _, action := range actions {
			if text := canonicalAction(action); !r.expressions[text] && !told[text] {
				told[text] = true
				t.Errorf("the suite does not send this action of Table.%s: %s", builder, text)
			}
		}
	}
}

// TestProtocol fails if the actions that are compared with the suite leave out a method that builds some,
// or a constant of which expressions are made.
func TestProtocol(t *testing.T) {
	built := protocol()
	require.ElementsMatch(t, builders(), slices.Collect(maps.Keys(built)))
	var all []string
	for _, actions := range built {
		for _, a := range actions {
			if a.Update != nil {
				all = append(all, aws.ToString(a.Update.ConditionExpression), aws.ToString(a.Update.UpdateExpression))
			} else {
				all = append(all, aws.ToString(a.ConditionCheck.ConditionExpression))
			}
		}
	}
	for name, clause := range clauses(t) {
		if !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, clause) }) {
			t.Errorf("no action that is compared with the suite has the constant %s: %s", name, clause)
		}
	}
}
