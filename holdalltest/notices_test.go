package holdalltest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"testing"
	"time"

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
	require.Contains(t, failed["crash at PutItem"], "1 orders, and 8 of 10 left", "between the two writes, and done again")
	require.Contains(t, failed["answer-lost at PutItem"], "orders, and 8 of 10 left", "done again")

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
	require.Contains(t, failed["crash-after at TransactWriteItems"], "1 orders, and 8 of 10 left")
	require.NotContains(t, failed, "crash at TransactWriteItems")
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
	c.Work = func(context.Context, *holdalltest.Process) error { runtime.Goexit(); return nil } // as require does
	require.Contains(t, fmt.Sprint(c.Failures(t)), "Work has ended its goroutine, as t.FailNow does: have it return an error instead")
	c.Work = func(ctx context.Context, _ *holdalltest.Process) error { <-ctx.Done(); return ctx.Err() }
	require.Contains(t, fmt.Sprint(c.Failures(t)), "without a fault Work returns context deadline exceeded")
}

// Work that does not come to an end, and what it leaves behind, are told like all else that is wrong,
// and the check goes on.
func TestWorkWithoutEnd(t *testing.T) {
	loops := with(func(_ context.Context, p *holdalltest.Process, id string) error {
		units, err := open(p)
		for err == nil {
			if err := place(context.Background(), units, id, false); err == nil {
				return nil
			}
			time.Sleep(time.Second)
		}
		return err
	}).Failures(t)
	require.Contains(t, loops["crash at TransactWriteItems"], "10m0s after its ctx has ended (this process has crashed), Work has not returned")
	require.Contains(t, loops["crash at TransactWriteItems"], "notices_test.go")
	require.NotContains(t, loops, "throttled at TransactWriteItems")

	waits := with(func(ctx context.Context, p *holdalltest.Process, id string) error {
		units, err := open(p)
		if err == nil {
			err = place(ctx, units, id, false)
		}
		if err != nil {
			<-make(chan struct{}) // one of the bubble's
		}
		return err
	}).Failures(t)
	require.Contains(t, waits["denied at TransactWriteItems"], "(context deadline exceeded), Work has not returned")
	require.NotContains(t, waits["denied at TransactWriteItems"], "holdalltest.watch")

	leaves := with(func(ctx context.Context, p *holdalltest.Process, id string) error {
		go func() { <-make(chan struct{}) }()
		units, err := open(p)
		if err == nil {
			err = place(ctx, units, id, false)
		}
		return err
	}).Failures(t)
	require.Contains(t, leaves["no fault"], "what they have started goes on")
	require.Contains(t, leaves["no fault"], "notices_test.go")

	rival := check(false)
	rival.Rival = func(context.Context, *holdalltest.Process) error { <-make(chan struct{}); return nil }
	require.Contains(t, rival.Failures(t)["a rival at TransactWriteItems"], "Rival has not returned")

	looks := check(false)
	looks.Holds = func(context.Context, *holdalltest.Process, holdalltest.Told) error { <-make(chan struct{}); return nil }
	require.Contains(t, looks.Failures(t)["no fault"], "everything waits, and nothing is to come")
}

// A process that is cut off may try again at once, for as long as that lasts.
func TestWorkThatTriesAgainAtOnce(t *testing.T) {
	c := with(func(ctx context.Context, p *holdalltest.Process, id string) error {
		client, orders := p.Client(), "orders"
		item := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}, "State": &types.AttributeValueMemberS{Value: "placed"}}
		for {
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &orders, Item: item})
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
	c.Locks.Table, c.Faults = "", []holdalltest.Fault{"in-doubt", "in-doubt-after", "crash"}
	c.Holds = func(_ context.Context, _ *holdalltest.Process, told holdalltest.Told) error {
		if !told.OK() {
			return errors.New("it was not done")
		}
		return nil
	}
	require.Empty(t, c.Failures(t))
}

// What would never happen, and what cannot be run, no test asks for by mistake.
func TestMisuse(t *testing.T) {
	p := holdalltest.DynamoDB().Process("p")
	all := fmt.Sprintf("; there are %q", holdalltest.Faults())
	for text, call := range map[string]func(){
		`Process.Next: there is no Fault "crashes"` + all:          func() { p.Next(holdalltest.Op("PutItem"), "crashes") },
		"Process.Next: nil function":                               func() { p.Next(nil, "crash") },
		`Process.Some: there is no Fault ""` + all:                 func() { p.Some(1, 1, "") },
		"Process.Some: share is 1.5: it must be from 0 to 1":       func() { p.Some(1.5, 1, "late") },
		"Process.Some: share is NaN: it must be from 0 to 1":       func() { p.Some(math.NaN(), 1, "late") },
		"Process.Some: no fault is named":                          func() { p.Some(1, 1) },
		`Op: "putItem" is no operation on which faults happen`:     func() { holdalltest.Op("putItem") },
		`Op: "CreateTable" is no operation on which faults happen`: func() { holdalltest.Op("CreateTable") },
		"Check.Run: nil Setup":                                     func() { holdalltest.Check{}.Run(t) },
		"Check.Run: nil Work":                                      func() { holdalltest.Check{Setup: setup}.Run(t) },
		"Check.Run: nil Holds":                                     func() { holdalltest.Check{Setup: setup, Work: check(false).Work}.Run(t) },
		`Check.Run: there is no Fault "x"` + all:                   func() { c := check(false); c.Faults = []holdalltest.Fault{"x"}; c.Run(t) },
		"Check.Run: Locks.Lease is 5m0s: no pause is beyond it, for they last 2m0s; take a shorter one": func() { c := check(false); c.Locks.Lease = 5 * time.Minute; c.Run(t) },
	} {
		require.PanicsWithValue(t, "holdalltest: "+text, call)
	}
}
