package lockset_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
)

// endless is a lock table that is made up while it is scanned: one row in a thousand is held.
type endless struct {
	*memdynamo.DB
	rows int
}

// perPage is about what 1 MB has of such rows.
const perPage = 4000

func (e *endless) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	number := func(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	from := 0
	if last, there := in.ExclusiveStartKey["key"]; there {
		_, _ = fmt.Sscanf(last.(*types.AttributeValueMemberS).Value, "customer:%d", &from)
		from++
	}
	out := &dynamodb.ScanOutput{ConsumedCapacity: &types.ConsumedCapacity{CapacityUnits: aws.Float64(128)}}
	for n := from; n < min(from+perPage, e.rows); n++ {
		row := map[string]types.AttributeValue{
			"key": text(fmt.Sprintf("customer:%d", n)), "isReleased": text("1"), "fence": number(1_700_000_000_000_000 + n),
			"ownerName": text("host-17.example 5b3d6bd8-40a9-4a5c-9bd3-f12345678901"), "leaseDuration": text("20000"),
			"recordVersionNumber": text(fmt.Sprintf("unit.%d", n)), "acquiredAt": number(1_700_000_000_000), "expiresAt": number(1_800_000_000),
		}
		if n%1000 == 0 {
			row["unit"] = text("AAAAAAAAAAAAAAAAAAAAAA")
			delete(row, "isReleased")
		}
		out.Items = append(out.Items, row)
	}
	out.ScannedCount = int32(len(out.Items))
	if from+perPage < e.rows {
		out.LastEvaluatedKey = map[string]types.AttributeValue{"key": out.Items[perPage-1]["key"]}
	}
	return out, nil
}

// What is in use is asked after a collection, so that it does not depend on when one comes.
func TestALargeTableIsListedInLittleMemory(t *testing.T) {
	rows := 1_000_000
	if testing.Short() {
		rows = 200_000 // kept, they would be 200 MB
	}
	i, err := lockset.NewInspector(&endless{memdynamo.New(memdynamo.Config{}), rows}, lockset.Config{Table: table})
	require.NoError(t, err)
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := inUse(), int64(0)
	held, all := 0, 0
	for row, err := range i.List(t.Context(), lockset.ListOptions{}) {
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
