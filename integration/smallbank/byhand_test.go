package smallbank

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Pauses of a careful user after a refusal: full jitter, the first as long as holdall's.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = 640 * time.Millisecond
)

// byHand are transactions as people write them with the SDK. With versions what was read is
// still true at the commit, or all is done again; without them the last write wins.
//
// Two accounts are read by TransactGetItems: what a refusal goes by must be one state, and
// nothing checks it later. One account is read and written by requests that are no
// transactions, for half of the price.
func (b *bed) byHand(name string, versions bool) *contestant {
	c := b.contestant(name, versions)
	c.do = func(ctx context.Context, client int, o order) (more int64, err error) {
		for n := 0; ; n++ {
			if more, err = c.attempt(ctx, o, versions); !isInTheWay(err) {
				return more, err
			}
			time.Sleep(time.Duration(rand.Int64N(int64(min(firstPause<<min(n, 10), mostPause)))))
		}
	}
	return c
}

func (c *contestant) attempt(ctx context.Context, o order, versions bool) (more int64, err error) {
	all := o.accounts()
	items, err := c.read(ctx, all)
	if err != nil {
		return 0, err
	}
	had := make([]int64, len(all))
	for i, item := range items {
		if had[i], err = number(item, "Balance"); err != nil {
			return 0, err
		}
	}
	has, more, err := o.carriedOut(had)
	if err != nil || o.kind == balance {
		return more, err
	}
	if len(all) == 1 {
		u := c.update(all[0], has[0], items[0], versions)
		_, err = c.wire.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		})
		return more, err
	}
	var actions []types.TransactWriteItem
	for i, a := range all {
		switch u := c.update(a, has[i], items[i], versions); {
		case o.writes(i):
			actions = append(actions, types.TransactWriteItem{Update: u})
		case versions:
			actions = append(actions, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: u.TableName, Key: u.Key, ConditionExpression: u.ConditionExpression,
				ExpressionAttributeNames:  map[string]string{"#version": "Version"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":seen": items[i]["Version"]},
			}})
		}
	}
	_, err = c.wire.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return more, err
}

func (c *contestant) read(ctx context.Context, all []account) ([]map[string]types.AttributeValue, error) {
	if len(all) == 1 {
		out, err := c.wire.GetItem(ctx, &dynamodb.GetItemInput{TableName: c.table(all[0]), Key: keyOf(all[0]), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return []map[string]types.AttributeValue{out.Item}, nil
	}
	in := &dynamodb.TransactGetItemsInput{}
	for _, a := range all {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: c.table(a), Key: keyOf(a)}})
	}
	out, err := c.wire.TransactGetItems(ctx, in)
	if err != nil {
		return nil, err
	}
	var items []map[string]types.AttributeValue
	for _, r := range out.Responses {
		items = append(items, r.Item)
	}
	return items, nil
}

func (c *contestant) update(a account, has int64, seen map[string]types.AttributeValue, versions bool) *types.Update {
	u := &types.Update{
		TableName: c.table(a), Key: keyOf(a), UpdateExpression: aws.String("SET #balance = :balance"),
		ExpressionAttributeNames:  map[string]string{"#balance": "Balance"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":balance": numberOf(has)},
	}
	if !versions {
		return u
	}
	version, _ := number(seen, "Version")
	u.UpdateExpression = aws.String("SET #balance = :balance, #version = :next")
	u.ConditionExpression = aws.String("#version = :seen")
	u.ExpressionAttributeNames["#version"] = "Version"
	u.ExpressionAttributeValues[":seen"], u.ExpressionAttributeValues[":next"] = seen["Version"], numberOf(version+1)
	return u
}

func (c *contestant) table(a account) *string {
	if a.checking {
		return &c.checking
	}
	return &c.savings
}

func keyOf(a account) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"Customer": &types.AttributeValueMemberS{Value: a.name()}}
}

func numberOf(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func number(item map[string]types.AttributeValue, name string) (int64, error) {
	n, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("an account without a " + name)
	}
	return strconv.ParseInt(n.Value, 10, 64)
}
