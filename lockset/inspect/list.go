package inspect

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// ListOptions say what [Inspector.List] lists. The zero value lists the whole table, as fast
// as it goes.
type ListOptions struct {
	// Prefix is how the text of a key must begin: "customer:4" finds customer:4 and
	// customer:42, "customer:4/" only what is below customer:4. It makes the answers
	// smaller, not the scan.
	Prefix string
	// Units is how many read capacity units a second the scan may take on average; zero is
	// as many as it gets.
	Units float64
	// Consistent reads cost twice as much and show every row as it is when its page is
	// read. Others may be as the row was a moment, usually less than a second, before.
	Consistent bool
	// Progress is called after each page, in the goroutine that lists, with how many pages there were, how
	// many rows were looked at, also those that the prefix leaves out, and how many read capacity units
	// were taken. It may be nil.
	Progress func(pages, rows int, units float64)
}

// List returns the rows of the table, in no order, by one scan: the rows of one page are in
// memory at a time, however large the table is, and rows that change meanwhile are shown as
// they were before or after. A scan reads all of the table: a million small rows are some
// 30,000 read capacity units, twice that if consistent.
//
// A row that holdall did not write is returned together with an error that names its
// key, and the listing goes on. Any other error is the last: *[lockset.TableError], or
// *[lockset.NoAnswerError], also if ctx ends. Then the row is the zero Row.
func (i *Inspector) List(ctx context.Context, o ListOptions) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var pages, rows int
		var units float64
		for page, err := range i.scan.Scan(ctx, i.db, func() string { return i.rows.RequestID("s") }, i.scanInput(o), o.Units) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, item := range page.Items {
				if !i.yield(item, yield) {
					return
				}
			}
			pages, rows, units = pages+1, rows+page.Scanned, units+page.Units
			if o.Progress != nil {
				o.Progress(pages, rows, units)
			}
		}
	}
}

func (i *Inspector) scanInput(o ListOptions) dynamodb.ScanInput {
	in := dynamodb.ScanInput{TableName: aws.String(i.cfg.Table), ConsistentRead: aws.Bool(o.Consistent)}
	if o.Prefix != "" {
		in.FilterExpression = aws.String("begins_with(#key, :prefix)")
		in.ExpressionAttributeNames = map[string]string{"#key": i.cfg.HashKey}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":prefix": lockrow.Text(o.Prefix)}
	}
	return in
}

// yield passes one item on, and reports whether more are wanted.
func (i *Inspector) yield(item requests.Item, yield func(Row, error) bool) bool {
	key, _ := item[i.cfg.HashKey].(*types.AttributeValueMemberS)
	if key == nil { // the table has another hash key, or it is a number: every row is like that
		return yield(Row{Exists: true, Damage: "its key is no text"}, &lockrow.RowError{Table: i.cfg.Table, Reason: "its key " + i.cfg.HashKey + " is no text"})
	}
	parsed, damage := locks.ParseRow(ordering.Key(key.Value), item)
	row := rowOf(item, parsed, damage)
	if row.Damage != "" {
		return yield(row, asError(i.cfg.Table, row))
	}
	return yield(row, nil)
}
