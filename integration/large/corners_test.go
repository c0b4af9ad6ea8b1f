package large

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// corner is a unit at a limit of DynamoDB: so many records of so many bytes.
type corner struct {
	records, size int
	short         int    // the size with -short, if that is another
	fill          string // of one byte
	binary        bool
}

// An item has 400 KB at most, a request 100 actions and 16 MB as sent, a transaction 4
// MB as stored. Bytes are sent as base64, a control character as six.
var corners = map[string]corner{
	"the largest records":              {records: 12, size: 399 << 10, binary: true},
	"the most records":                 {records: 300, size: 100, fill: "x"},
	"many large records":               {records: 101, size: 170 << 10, short: 60 << 10, fill: "x"},
	"stored below 4 MB, sent above 16": {records: 8, size: 399 << 10, fill: "\x01"},
}

type bulky struct {
	ID    string `dynamodbav:"id"`
	Text  string `dynamodbav:"text"`
	Bytes []byte `dynamodbav:"bytes,omitempty"`
	Round int    `dynamodbav:"round"`
}

// content is what is in a record, of which the rest takes less than 100 bytes.
func (c corner) content(round int) (b bulky) {
	b.Round = round
	if c.binary {
		b.Bytes = []byte(strings.Repeat("\xff", c.size-100))
	} else {
		b.Text = strings.Repeat(c.fill, c.size-100)
	}
	return b
}

// Units whose records are as large as they can be, as many as one request cannot
// have, and both, are committed: puts, updates, checks and deletions. With -short all of them are
// tried on dynoxide, and on each other engine the most records.
func TestUnitsAtTheLimits(t *testing.T) {
	patient := func(c *lockset.Config) { c.Lease = 2 * time.Minute } // 16 MB take their time
	for engine, newBed := range map[string]func(*testing.T) *bed{
		"memdynamo": func(t *testing.T) *bed { return newBed(t, memdynamo.New(memdynamo.Config{}), "t-", patient) },
		"dynoxide": func(t *testing.T) *bed {
			e := engines.Dynoxide(t)
			return newBed(t, e.Client, e.Prefix, patient)
		},
		"dynamodb-local": func(t *testing.T) *bed {
			e := engines.DynamoDBLocal(t)
			return newBed(t, e.Client, e.Prefix, patient)
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.watch.start()
			for name, c := range corners {
				if testing.Short() && engine != "dynoxide" && name != "the most records" {
					continue
				}
				if testing.Short() && c.short > 0 {
					c.size = c.short
				}
				t.Run(name, func(t *testing.T) { b.turn(t, c, name) })
			}
		})
	}
}

// turn puts, updates, checks and deletes the records of a corner, all at once each. With
// -short one unit, as large, puts a third of them, updates another and checks the rest.
func (b *bed) turn(t *testing.T, c corner, name string) {
	t.Helper()
	type staging func(*unitofwork.Unit, *unitofwork.Ref[bulky]) error
	table := unitofwork.Table[bulky]{Name: b.table(0), PartitionKey: "id", Guard: func(*bulky) ordering.Key { return "guard" }}
	every := func(stages ...staging) { // of which each record has one, in turn
		t.Helper()
		require.NoError(t, b.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"guard"}}, func(_ context.Context, u *unitofwork.Unit) error {
			for i := range c.records {
				if err := stages[i%len(stages)](u, table.Ref(fmt.Sprintf("%s-%d", name, i))); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	nothing := func(*unitofwork.Unit, *unitofwork.Ref[bulky]) error { return nil }
	putSmall := func(u *unitofwork.Unit, r *unitofwork.Ref[bulky]) error {
		r.T.Round = 1
		return u.Replace(r)
	}
	put := func(u *unitofwork.Unit, r *unitofwork.Ref[bulky]) error {
		id := r.T.ID
		r.T = c.content(1)
		r.T.ID = id
		return u.Replace(r)
	}
	now := c.content(2)
	attribute, value := "text", any(now.Text)
	if c.binary {
		attribute, value = "bytes", now.Bytes
	}
	names := map[string]string{"#content": attribute}
	update := func(u *unitofwork.Unit, r *unitofwork.Ref[bulky]) error {
		return u.Update(r, unitofwork.Expression{
			Update: "SET round = :two, #content = :content", Condition: "round = :one", Names: names,
			Values: map[string]any{":one": 1, ":two": 2, ":content": value},
		})
	}
	check := func(u *unitofwork.Unit, r *unitofwork.Ref[bulky]) error {
		return u.Check(r, unitofwork.Expression{Condition: "#content = :content", Names: names, Values: map[string]any{":content": value}})
	}
	if testing.Short() {
		every(nothing, putSmall, put)
		every(put, update, check)
		require.Equal(t, (c.records+1)/3, b.inRound(t, 2))
		require.Equal(t, c.records-(c.records+1)/3, b.inRound(t, 1))
	} else {
		every(put)
		require.Equal(t, c.records, b.inRound(t, 1))
		every(update)
		require.Equal(t, c.records, b.inRound(t, 2))
		every(check)
	}
	every(func(u *unitofwork.Unit, r *unitofwork.Ref[bulky]) error { return u.Delete(r) })
	require.Zero(t, b.inRound(t, 1)+b.inRound(t, 2))
}

// inRound counts the records of a round.
func (b *bed) inRound(t *testing.T, round int) (n int) {
	t.Helper()
	in := &dynamodb.ScanInput{
		TableName: aws.String(b.table(0)), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("round = :round"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":round": &types.AttributeValueMemberN{Value: fmt.Sprint(round)}},
	}
	for {
		out, err := b.wire.DynamoDB.(scanner).Scan(t.Context(), in)
		require.NoError(t, err)
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return n
		}
	}
}

type scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}
