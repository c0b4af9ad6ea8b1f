package requests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

const (
	floor = time.Second
	most  = 2800 * time.Millisecond
)

func TestLearned(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ level, took, want time.Duration }{
		{0, 0, floor},
		{floor, floor, floor},
		{floor, floor + 1, 2 * floor},
		{floor, 2*floor + 1, most},
		{floor, time.Hour, most},
		{2 * floor, floor, 2 * floor},
		{2 * floor, 900 * ms, 1975 * ms},
		{2 * floor, 0, 1875 * ms},
		{most, 1900 * ms, most},
	} {
		require.Equal(t, c.want, learned(c.level, floor, most, c.took), "%v after %v", c.level, c.took)
	}
	level, answers := most, 0
	for ; level > floor; answers++ {
		level = learned(level, floor, most, time.Millisecond)
	}
	require.Equal(t, floor, level)
	require.Less(t, answers, 250)
}

func TestAllowed(t *testing.T) {
	const lease = 10 * time.Second
	for _, c := range []struct {
		doubled, bytes int
		want           time.Duration
	}{
		{0, 0, floor}, {1, 0, 2 * floor}, {2, 0, most}, {100, 0, most},
		{0, slowestLink, 2 * floor}, {1, slowestLink, 4 * floor}, {2, slowestLink, most + 4*time.Second},
		{0, MaxSent, floor + lease}, {3, MaxSent, most + lease},
	} {
		require.Equal(t, c.want, allowed(floor, most, c.doubled, c.bytes, lease), "%+v", c)
	}
	require.Equal(t, floor, allowed(floor, 0, 1, 0, lease), "without a most it does not grow")
	require.Equal(t, []int{0, 1, 2}, []int{doublings(0, false), doublings(1, false), doublings(2, false)})
	require.Equal(t, []int{0, 0, 1}, []int{doublings(0, true), doublings(1, true), doublings(2, true)})
}

// slow is a DynamoDB that answers after so long, or never.
type slow struct {
	takes time.Duration
	sent  []time.Duration // how long each sending was waited for
}

func (s *slow) get(ctx context.Context, _ *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	began := time.Now()
	err := Sleep(ctx, s.takes)
	s.sent = append(s.sent, time.Since(began))
	if err != nil {
		return nil, ctx.Err()
	}
	return &dynamodb.GetItemOutput{}, nil
}

func (s *slow) ask(ctx context.Context, c *Caller) error {
	s.sent = nil
	_, _, err := Do(ctx, c, Request{Op: "GetItem", ID: "r"}, &dynamodb.GetItemInput{}, s.get)
	return err
}

func caller() *Caller {
	return &Caller{Attempt: floor, Most: most, Patience: 10 * floor, Pace: new(Pace)}
}

func TestTheTimeoutFollowsWhatIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := caller(), &slow{takes: 1100 * time.Millisecond}
		require.NoError(t, s.ask(t.Context(), c))
		require.Equal(t, []time.Duration{floor, s.takes}, s.sent, "nothing was answered before")
		require.NoError(t, s.ask(t.Context(), c))
		require.Equal(t, []time.Duration{s.takes}, s.sent, "it is known by now")
		other := *c
		require.NoError(t, s.ask(t.Context(), &other))
		require.Len(t, s.sent, 1, "to all of the client")
		require.Equal(t, 2*floor, c.Allowance())
		s.takes = time.Millisecond
		for range 300 {
			require.NoError(t, s.ask(t.Context(), c))
		}
		require.Equal(t, floor, c.Allowance())

		s.takes = 1900 * time.Millisecond
		require.NoError(t, s.ask(t.Context(), c))
		require.Equal(t, []time.Duration{floor, floor, s.takes}, s.sent, "one may be a lost packet")
		s.takes = 3 * floor
		for _, want := range [][]time.Duration{
			{2 * floor, 2 * floor, most, most}, // 10 s, and an attempt
			{2 * floor, most, most, most},
		} {
			require.ErrorIs(t, s.ask(t.Context(), c), ErrPatience)
			require.Equal(t, want, s.sent[:4])
		}
		require.Equal(t, 2*floor, c.Allowance(), "silence teaches nothing")
	})
}

// All sendings of a request together take at most as long as they did without doubling.
func TestTheLastSendingIsNotLongerThanPatienceAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := caller(), &slow{takes: time.Hour}
		began := time.Now()
		require.ErrorIs(t, s.ask(t.Context(), c), ErrPatience)
		require.LessOrEqual(t, time.Since(began), c.Patience+floor+floor/2, "with the pause after it")
		require.Len(t, s.sent, 5)
	})
}

func TestOvertime(t *testing.T) {
	for name, c := range map[string]struct {
		wait, begins, want time.Duration
		sendings           int
	}{
		"it does not wait":               {0, 0, 3 * floor, 2},
		"nor did it":                     {0, time.Minute, 3 * floor, 2},
		"its wait ends meanwhile":        {500 * time.Millisecond, 0, 1500 * time.Millisecond, 2},
		"its wait has ended":             {time.Minute, 2 * time.Minute, floor, 1},
		"its wait ends after its answer": {time.Hour, 0, 11300 * time.Millisecond, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s := caller(), &slow{takes: time.Hour}
				ctx := Overtime(t.Context(), time.Now().Add(c.wait))
				time.Sleep(c.begins)
				began := time.Now()
				require.ErrorIs(t, s.ask(ctx, d), ErrPatience)
				require.Equal(t, c.want, time.Since(began).Truncate(100*time.Millisecond))
				require.Len(t, s.sent, c.sendings)
				s.takes = 900 * time.Millisecond
				require.NoError(t, s.ask(ctx, d), "what is answered is not cut short")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // connections break at once
		n := 0
		_, _, err := Do(Overtime(t.Context(), time.Now()), caller(), Request{Op: "GetItem"}, &dynamodb.GetItemInput{},
			func(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
				n++
				return nil, errors.New("connection reset")
			})
		require.ErrorIs(t, err, ErrPatience)
		require.Equal(t, 2, n)
		ctx := t.Context()
		require.Equal(t, ctx, Overtime(ctx, time.Time{}))
	})
}

// A large request has the time that a slow link needs for it.
func TestALargeRequestHasMoreTime(t *testing.T) {
	put := make([]types.TransactWriteItem, 9)
	for i := range put {
		put[i].Put = &types.Put{TableName: aws.String("t"), Item: Item{
			"id": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}, "body": &types.AttributeValueMemberB{Value: make([]byte, 390<<10)},
		}}
	}
	for _, rate := range []int{4 << 20, 1 << 20, 600 << 10} { // bytes a second
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sendings := 0
				c := &Caller{Attempt: 2 * time.Second, Most: 5 * time.Second, Patience: 20 * time.Second, Pace: new(Pace)}
				in := &dynamodb.TransactWriteItemsInput{TransactItems: put}
				_, _, err := Do(t.Context(), c, Request{Op: "TransactWriteItems"}, in,
					func(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
						sendings++
						return new(dynamodb.TransactWriteItemsOutput), Sleep(ctx, time.Duration(sizeSent(in))*time.Second/time.Duration(rate))
					})
				require.NoError(t, err)
				require.Equal(t, 1, sendings)
				require.Equal(t, 2*time.Second, c.Allowance(), "small ones have no more than before")
			})
		})
	}
}

// pages is a table that is listed in pages of this size, or what is asked for.
type pages struct {
	rows, page int
	told       bool // what they cost: a unit for each item
	busy       int  // so many sendings are refused first
	sent       []dynamodb.ScanInput
}

func (p *pages) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.sent = append(p.sent, *in)
	if p.busy > 0 {
		p.busy--
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	from := 0
	if last := in.ExclusiveStartKey["n"]; last != nil {
		from, _ = strconv.Atoi(last.(*types.AttributeValueMemberN).Value)
	}
	n := p.page
	if in.Limit != nil {
		n = min(n, int(*in.Limit))
	}
	out := &dynamodb.ScanOutput{}
	for ; n > 0 && from < p.rows; n-- {
		from++
		out.ScannedCount++
		out.Items = append(out.Items, Item{"n": &types.AttributeValueMemberN{Value: strconv.Itoa(from)}})
	}
	if from < p.rows {
		out.LastEvaluatedKey = out.Items[len(out.Items)-1]
	}
	if p.told {
		out.ConsumedCapacity = &types.ConsumedCapacity{CapacityUnits: aws.Float64(float64(out.ScannedCount))}
	}
	return out, nil
}

func (p *pages) scan(t *testing.T, perSecond float64) (items, units float64, err error) {
	t.Helper()
	c := &Caller{Attempt: time.Second, Patience: time.Minute}
	n := 0
	id := func() string { n++; return strconv.Itoa(n) }
	for page, failed := range c.Scan(t.Context(), p, id, dynamodb.ScanInput{TableName: aws.String("t")}, perSecond) {
		if failed != nil {
			return items, units, failed
		}
		for _, item := range page.Items {
			items++
			require.Equal(t, strconv.Itoa(int(items)), item["n"].(*types.AttributeValueMemberN).Value)
		}
		units += page.Units
	}
	return items, units, nil
}

func TestAScanListsPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pages{rows: 25, page: 10, told: true, busy: 2}
		items, units, err := p.scan(t, 0)
		require.NoError(t, err)
		require.Equal(t, 25.0, items)
		require.Equal(t, 25.0, units)
		require.Len(t, p.sent, 5)
		require.Nil(t, p.sent[2].ExclusiveStartKey)
		require.NotNil(t, p.sent[4].ExclusiveStartKey)
		for _, in := range p.sent {
			require.Nil(t, in.Limit)
			require.Equal(t, types.ReturnConsumedCapacityTotal, in.ReturnConsumedCapacity)
		}
	})
}

func TestAScanKeepsToItsPace(t *testing.T) {
	for _, c := range []struct {
		told         bool
		units, takes float64
	}{{true, 1000, 100}, {false, 500, 50}} {
		synctest.Test(t, func(t *testing.T) {
			p := &pages{rows: 1000, page: 200, told: c.told}
			start := time.Now()
			items, units, err := p.scan(t, 10)
			require.NoError(t, err)
			require.Equal(t, 1000.0, items)
			require.Equal(t, c.units, units)
			require.InDelta(t, c.takes, time.Since(start).Seconds(), 3, "the last page need not be waited for")
			for _, in := range p.sent {
				require.LessOrEqual(t, *in.Limit, int32(20), "a page is about a second's")
			}
		})
	}
}

func TestAPaceAllowsWhatWasNotTaken(t *testing.T) {
	p := pace{perSecond: 10}
	require.Equal(t, int32(20), p.items())
	p.took(Page{Scanned: 20, Units: 40}) // two units each
	require.Equal(t, int32(5), p.items())
	require.Equal(t, 4*time.Second, p.ahead(0))
	require.Equal(t, time.Second, p.ahead(3*time.Second))
	require.Zero(t, p.ahead(time.Minute))
	require.Equal(t, int32(1), (&pace{perSecond: 0.01}).items(), "it goes on")
	require.Zero(t, (&pace{}).items())
	require.Zero(t, (&pace{units: 5}).ahead(0))
}
