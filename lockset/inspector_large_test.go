package lockset_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// endless is a lock table that is made up while it is read: one row in so many is held, and every
// second of these by somebody alive.
type endless struct {
	*memdynamo.DB
	rows, heldEach int
	freed          []atomic.Bool // by a sweep
}

func newEndless(rows, heldEach int) *endless {
	return &endless{memdynamo.New(memdynamo.Config{}), rows, heldEach, make([]atomic.Bool, rows)}
}

// perPage is about what 1 MB has of such rows.
const perPage = 4000

func (e *endless) row(n int) item {
	number := func(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	row := item{
		"key": s(fmt.Sprintf("customer:%d", n)), "isReleased": s("1"), "fence": number(1_700_000_000_000_000 + n),
		"ownerName": s("host-17.example 5b3d6bd8-40a9-4a5c-9bd3-f12345678901"), "leaseDuration": s("20000"),
		"recordVersionNumber": s(fmt.Sprintf("unit.%d", n)), "acquiredAt": number(1_700_000_000_000), "expiresAt": number(1_800_000_000),
	}
	if n%e.heldEach == 0 && !e.freed[n].Load() {
		row["unit"] = s("AAAAAAAAAAAAAAAAAAAAAA")
		delete(row, "isReleased")
		if n/e.heldEach%2 == 0 {
			row["recordVersionNumber"] = s(fmt.Sprintf("unit.%d", time.Now().Unix()))
		}
	}
	return row
}

func numberOf(key item) (n int) {
	_, _ = fmt.Sscanf(key["key"].(*types.AttributeValueMemberS).Value, "customer:%d", &n)
	return n
}

func (e *endless) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	from := 0
	if len(in.ExclusiveStartKey) > 0 {
		from = numberOf(in.ExclusiveStartKey) + 1
	}
	out := &dynamodb.ScanOutput{ConsumedCapacity: &types.ConsumedCapacity{CapacityUnits: aws.Float64(128)}}
	for n := from; n < min(from+perPage, e.rows); n++ {
		out.Items = append(out.Items, e.row(n))
	}
	out.ScannedCount = int32(len(out.Items))
	if from+perPage < e.rows {
		out.LastEvaluatedKey = item{"key": out.Items[perPage-1]["key"]}
	}
	return out, nil
}

func (e *endless) TransactGetItems(_ context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	out := &dynamodb.TransactGetItemsOutput{}
	for _, get := range in.TransactItems {
		out.Responses = append(out.Responses, types.ItemResponse{Item: e.row(numberOf(get.Get.Key))})
	}
	return out, nil
}

// UpdateItem frees a row, or notes its silence, which is not shown.
func (e *endless) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if strings.Contains(*in.UpdateExpression, "#isReleased") {
		e.freed[numberOf(in.Key)].Store(true)
	}
	return &dynamodb.UpdateItemOutput{}, nil
}

// inUse is asked after a collection, so that it does not depend on when one comes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestALargeTableIsListedInLittleMemory(t *testing.T) {
	rows := shorter(1_000_000, 60_000) // kept, these would be 60 MB
	i := must(inspect.New(newEndless(rows, 1000), lockset.Config{Table: table}))(t)
	before, most := inUse(), int64(0)
	held, all := 0, 0
	for row, err := range i.List(t.Context(), inspect.ListOptions{}) {
		require.NoError(t, err)
		if all++; row.Held() {
			held++
		}
		if all%(10*perPage) == perPage/2 { // in the middle of a page
			most = max(most, inUse()-before)
		}
	}
	require.Equal(t, rows, all)
	require.Equal(t, rows/1000, held)
	t.Logf("%d rows took %d KB at most", all, most>>10)
	require.Greater(t, most, int64(1<<20), "of one page")
	require.Less(t, most, int64(40<<20), "and of no more than a few")
}

// A large table is swept in parts, and what one takes does not stay.
func TestALargeTableIsSweptInLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := shorter(1_000_000, 40_000)
		partOf := min(5000, rows/20)
		db := newEndless(rows, 20)
		i := must(inspect.New(db, lockset.Config{Table: table}))(t)
		c := must(lockset.New(db, lockset.Config{Table: table}))(t)
		before, most, did := inUse(), int64(0), map[string]int{}
		sweep := func(part []ordering.Key) {
			all, err := inspect.Sweep(t.Context(), c, part, inspect.SweepOptions{Progress: func(int, int) { most = max(most, inUse()-before) }})
			require.NoError(t, err)
			for _, s := range all {
				did[fmt.Sprintf("%v, %v", cmp.Or(s.Deed, "left alone"), s.Life)]++
			}
		}
		var part []ordering.Key
		for row, err := range i.List(t.Context(), inspect.ListOptions{}) {
			require.NoError(t, err)
			if row.Held() {
				part = append(part, row.Key)
			}
			if len(part) == partOf {
				sweep(part)
				part = part[:0]
			}
		}
		require.Zero(t, len(part))
		require.Equal(t, map[string]int{"buried, dead": rows / 40, "left alone, alive": rows / 40}, did)
		t.Logf("of %d rows %d were swept and took %d KB at most", rows, rows/20, most>>10)
		require.Greater(t, most, int64(2<<20), "of a page and a part")
		require.Less(t, most, int64(40<<20))
	})
}
