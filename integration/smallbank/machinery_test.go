package smallbank

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

// Where everybody is in everybody's way, money is lost by those alone who do not promise
// otherwise.
func TestTheBooksAreKept(t *testing.T) {
	long := 2 * time.Second
	if testing.Short() {
		long = time.Second
	}
	for _, windows := range []bool{false, true} {
		for _, apart := range []bool{false, true} {
			if testing.Short() && windows != apart {
				continue
			}
			t.Run(fmt.Sprintf("windows=%v,apart=%v", windows, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := embedded(t)
					b.windows, b.apart, b.holders = windows, apart, few
					all, _ := b.contestants(4)
					for _, c := range all {
						did := c.round(t.Context(), clients, few, 1, long)
						require.NoError(t, did.err, c.name)
						require.Positive(t, did.committed, c.name)
						lost := b.audit(c)
						if c.safe {
							require.Zero(t, lost, c.name)
						} else {
							require.NotZero(t, lost, c.name)
						}
						require.Zero(t, b.audit(c), "what was lost is told once")
					}
				})
			})
		}
	}
}

// One unit of money less in one of the accounts does not go unnoticed.
func TestTheAuditNoticesWhatIsMissing(t *testing.T) {
	b := embedded(t)
	b.holders = customers
	c := b.byHand("versions", true)
	_, err := b.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(c.savings), Key: keyOf(account{customer: 17_999}), UpdateExpression: aws.String("ADD Balance :less"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":less": numberOf(-1)},
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, b.audit(c))
}

// What an order costs where nobody is in the way, and that the wire counts it as the engine does.
func TestWhatOrdersCost(t *testing.T) {
	requests := map[string]struct{ reading, writing int64 }{
		"holdall":     {1, 2},
		"locks-first": {3, 3},
		"versions":    {1, 2},
		"nothing":     {1, 2},
	}
	for _, apart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := memdynamo.New(memdynamo.Config{})
			b := &bed{tb: t, db: db, latency: rtt, apart: apart, holders: few}
			all, _ := b.contestants(1)
			for _, c := range all {
				for k := range kinds {
					want := requests[c.name].writing
					if k == balance {
						want = requests[c.name].reading
					}
					before, used := c.wire.traffic(), db.Usage()
					_, err := c.do(t.Context(), 0, order{kind: k, customer: int(k), to: few - 1, amount: 5})
					require.NoError(t, err)
					sent, now := c.wire.traffic().since(before), db.Usage()
					require.Equal(t, want, sent.requests, "%s, kind %d", c.name, k)
					require.EqualValues(t, now.WriteUnits-used.WriteUnits, sent.writes, "%s, kind %d", c.name, k)
					require.EqualValues(t, now.ReadUnits-used.ReadUnits, sent.reads, "%s, kind %d", c.name, k)
				}
			}
		})
	}
}

func TestOrdersAreDrawnAsTheMixSays(t *testing.T) {
	const n, hot = 100_000, 1000
	r := rand.New(rand.NewPCG(1, 1))
	var of [kinds]int
	hits, accesses := 0, 0
	for range n {
		o := drawn(r, hot)
		of[o.kind]++
		require.NotEqual(t, o.customer, o.to)
		for _, a := range o.accounts() {
			require.Less(t, a.customer, customers)
			accesses++
			if a.customer < hot {
				hits++
			}
		}
	}
	for k, percent := range mix {
		require.InDelta(t, percent, 100*float64(of[k])/n, 0.5, "kind %d", k)
	}
	require.InDelta(t, hotInHundred, 100*float64(hits)/float64(accesses), 0.5)
}

// A bank says no, and takes a fee, as SmallBank says.
func TestWhatOrdersDo(t *testing.T) {
	for _, c := range []struct {
		order
		had, has []int64
		more     int64
		no       bool
	}{
		{order{kind: balance}, []int64{1, 2}, []int64{1, 2}, 0, false},
		{order{kind: depositChecking, amount: 5}, []int64{1}, []int64{6}, 5, false},
		{order{kind: transactSavings, amount: -5}, []int64{5}, []int64{0}, -5, false},
		{order{kind: transactSavings, amount: -5}, []int64{4}, nil, 0, true},
		{order{kind: amalgamate}, []int64{1, 2, 3}, []int64{0, 0, 6}, 0, false},
		{order{kind: writeCheck, amount: 5}, []int64{3, 2}, []int64{3, -3}, -5, false},
		{order{kind: writeCheck, amount: 5}, []int64{3, 1}, []int64{3, -5}, -6, false},
		{order{kind: sendPayment, amount: 5}, []int64{5, 1}, []int64{0, 6}, 0, false},
		{order{kind: sendPayment, amount: 5}, []int64{4, 1}, nil, 0, true},
	} {
		has, more, err := c.order.carriedOut(c.had)
		require.Equal(t, c.no, errors.Is(err, errFunds), "%+v", c)
		require.Equal(t, c.has, has, "%+v", c)
		require.Equal(t, c.more, more, "%+v", c)
		for i := range has {
			require.True(t, has[i] == c.had[i] || c.order.writes(i), "%+v", c)
		}
	}
}

// Where all want the same few customers, a transaction takes few requests all the same: clients
// of one process are committed together, and those of several are tried again, as by hand.
func TestWhatHotCustomersCost(t *testing.T) {
	long := 3 * time.Second
	if testing.Short() {
		long = time.Second
	}
	for processes, most := range map[int]float64{1: 1, 8: 3.5} {
		synctest.Test(t, func(t *testing.T) {
			b := &bed{tb: t, db: memdynamo.New(memdynamo.Config{}), latency: rtt, holders: few}
			c := b.holdall("holdall", processes, false)
			turn := c.round(t.Context(), clients, few, 1, long)
			require.NoError(t, turn.err)
			require.Less(t, turn.per(turn.requests), most, "%d processes: %v", processes, c.why)
			require.Zero(t, b.audit(c))
		})
	}
}
