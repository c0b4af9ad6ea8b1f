package requests

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

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
