package memdynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10
)

// units is how many blocks a size takes; an absent item still takes one.
func units(size, block int) float64 { return float64(max(1, (size+block-1)/block)) }

// readUnits is what reading that many bytes costs.
func readUnits(size int, consistent bool) float64 {
	if consistent {
		return units(size, readUnit)
	}
	return units(size, readUnit) / 2
}

// bill is what a request consumed, by table in the order first met, or by
// statement.
type bill []charge

type charge struct {
	table       string
	read, write float64
}

func (b *bill) of(table string) *charge {
	for i := range *b {
		if (*b)[i].table == table {
			return &(*b)[i]
		}
	}
	*b = append(*b, charge{table: table})
	return &(*b)[len(*b)-1]
}

// charge adds a bill to the DB's usage; the caller holds the mutex.
func (db *DB) charge(b bill) {
	for i := range b {
		db.usage.ReadUnits += b[i].read
		db.usage.WriteUnits += b[i].write
	}
}

// consumed is the bill as an answer has it; split answers say reads and
// writes apart, as transactions do.
func (b bill) consumed(want types.ReturnConsumedCapacity, split bool) []types.ConsumedCapacity {
	if want != types.ReturnConsumedCapacityTotal && want != types.ReturnConsumedCapacityIndexes {
		return nil
	}
	out := make([]types.ConsumedCapacity, len(b))
	for i, c := range b {
		out[i] = types.ConsumedCapacity{TableName: aws.String(c.table), CapacityUnits: aws.Float64(c.read + c.write)}
		if split {
			out[i].ReadCapacityUnits, out[i].WriteCapacityUnits = apart(c.read), apart(c.write)
		}
		if want == types.ReturnConsumedCapacityIndexes {
			out[i].Table = &types.Capacity{CapacityUnits: aws.Float64(c.read + c.write)}
			if split {
				out[i].Table.ReadCapacityUnits, out[i].Table.WriteCapacityUnits = apart(c.read), apart(c.write)
			}
		}
	}
	return out
}

func apart(units float64) *float64 {
	if units == 0 {
		return nil
	}
	return aws.Float64(units)
}

// one is the answer of a request on a single table.
func (b bill) one(want types.ReturnConsumedCapacity) *types.ConsumedCapacity {
	if all := b.consumed(want, false); len(all) > 0 {
		return &all[0]
	}
	return nil
}

func checkCapacity(want types.ReturnConsumedCapacity) error {
	return oneOf(want, "returnConsumedCapacity", types.ReturnConsumedCapacityIndexes,
		types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityNone)
}
