package holdalltest_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/unitofwork"
)

// with is the check of another way to place an order.
func with(place func(context.Context, *holdalltest.Process, string) error) holdalltest.Check {
	c := check(false)
	c.Work = func(ctx context.Context, p *holdalltest.Process) error { return place(ctx, p, "1") }
	c.Rival = func(ctx context.Context, p *holdalltest.Process) error { return place(ctx, p, "2") }
	return c
}

// plainly places an order by requests of one's own.
func plainly(ctx context.Context, p *holdalltest.Process, id string) error {
	client, stocks, orders := p.Client(), "stocks", "orders"
	key := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "shoes"}}
	got, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &stocks, Key: key})
	if err != nil {
		return err
	}
	left, err := strconv.Atoi(got.Item["Left"].(*types.AttributeValueMemberN).Value)
	if err != nil {
		return err
	}
	got.Item["Left"] = &types.AttributeValueMemberN{Value: strconv.Itoa(left - 1)}
	if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &stocks, Item: got.Item}); err != nil {
		return err
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &orders, Item: map[string]types.AttributeValue{
		"ID": &types.AttributeValueMemberS{Value: id}, "State": &types.AttributeValueMemberS{Value: "placed"},
	}})
	return err
}

// Work that is wrong fails, and the message says where.
func TestWhatACheckNotices(t *testing.T) {
	failed := with(plainly).Failures(t)
	require.Contains(t, failed["a rival at PutItem"], "2 orders, and 9 of 10 left")
	require.Contains(t, failed["the process dies at PutItem"], "1 orders, and 8 of 10 left", "between the two writes, and done again")
	require.Contains(t, failed["the answer is lost at PutItem"], "orders, and 8 of 10 left", "done again")

	twice := with(func(ctx context.Context, p *holdalltest.Process, id string) error {
		units, err := open(p)
		if err != nil {
			return err
		}
		return units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error { // it has no ID
			order, stock := orders.Ref(id), stocks.Ref("shoes")
			if err := u.Get(ctx, order, stock); err != nil {
				return err
			}
			stock.T.Left--
			return u.Put(order, stock)
		})
	})
	failed = twice.Failures(t)
	require.Contains(t, failed["the process dies, and its last request is carried out at TransactWriteItems"], "1 orders, and 8 of 10 left")
	require.NotContains(t, failed, "the process dies at TransactWriteItems")
	require.NotContains(t, failed, "a rival at TransactWriteItems")

	deaf := with(func(ctx context.Context, p *holdalltest.Process, id string) error {
		units, err := open(p)
		if err == nil {
			_ = place(ctx, units, id, false)
		}
		return err
	})
	failed = deaf.Failures(t)
	require.Contains(t, failed["denied at TransactWriteItems"], "after Work has returned nil: there is no order")
}

// What is wrong with the check itself is said at once.
func TestChecksThatAreWrong(t *testing.T) {
	failed := errors.New("failed")
	c := check(false)
	c.Setup = func(context.Context, *holdalltest.DB) error { return failed }
	require.Equal(t, map[string]string{"no fault": "before the work, Setup: failed"}, c.Failures(t))
	c = check(false)
	c.Work = func(context.Context, *holdalltest.Process) error { return failed }
	require.Equal(t, map[string]string{"no fault": "without a fault Work returns failed"}, c.Failures(t))
	c.Work = func(context.Context, *holdalltest.Process) error { return nil }
	require.Contains(t, fmt.Sprint(c.Failures(t)), "nothing was sent")
	c.Work = func(ctx context.Context, _ *holdalltest.Process) error { <-ctx.Done(); return ctx.Err() }
	require.Contains(t, fmt.Sprint(c.Failures(t)), "without a fault Work returns context deadline exceeded")
}
