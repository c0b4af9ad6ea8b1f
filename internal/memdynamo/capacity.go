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
	read, write float64 // of the table itself
	indexes     []indexCharge
}

type indexCharge struct {
	ix          *index
	read, write float64
}

func (c *charge) of(ix *index) *indexCharge {
	for i := range c.indexes {
		if c.indexes[i].ix == ix {
			return &c.indexes[i]
		}
	}
	c.indexes = append(c.indexes, indexCharge{ix: ix})
	return &c.indexes[len(c.indexes)-1]
}

// follow adds what an action that is carried out costs in the table's indexes. In a
// transaction that is twice as much, as DynamoDB Local counts; AWS does not say.
func (c *charge) follow(a *action, times float64) {
	for _, ix := range a.t.indexes {
		if n := ix.units(a.key, a.old, a.new); n > 0 {
			c.of(ix).write += times * n
		}
	}
}

func (c *charge) total() (read, write float64) {
	read, write = c.read, c.write
	for _, i := range c.indexes {
		read += i.read
		write += i.write
	}
	return read, write
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
		read, write := b[i].total()
		db.usage.ReadUnits += read
		db.usage.WriteUnits += write
	}
}

// consumed is the bill as an answer has it; split answers say reads and
// writes apart, as transactions do.
func (b bill) consumed(want types.ReturnConsumedCapacity, split bool) []types.ConsumedCapacity {
	if want != types.ReturnConsumedCapacityTotal && want != types.ReturnConsumedCapacityIndexes {
		return nil
	}
	out := make([]types.ConsumedCapacity, len(b))
	for i := range b {
		c := &b[i]
		read, write := c.total()
		all := capacity(read, write, split)
		out[i] = types.ConsumedCapacity{TableName: aws.String(c.table), CapacityUnits: all.CapacityUnits,
			ReadCapacityUnits: all.ReadCapacityUnits, WriteCapacityUnits: all.WriteCapacityUnits}
		if want != types.ReturnConsumedCapacityIndexes {
			continue
		}
		out[i].Table = capacity(c.read, c.write, split)
		for _, ic := range c.indexes {
			of := &out[i].LocalSecondaryIndexes
			if ic.ix.global {
				of = &out[i].GlobalSecondaryIndexes
			}
			if *of == nil {
				*of = map[string]types.Capacity{}
			}
			(*of)[ic.ix.name] = *capacity(ic.read, ic.write, split)
		}
	}
	return out
}

func capacity(read, write float64, split bool) *types.Capacity {
	c := &types.Capacity{CapacityUnits: aws.Float64(read + write)}
	if split {
		c.ReadCapacityUnits, c.WriteCapacityUnits = apart(read), apart(write)
	}
	return c
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
