package requests

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Scanner lists whole tables, as *dynamodb.Client does. What a Caller asks need not be
// one: no lock and no unit needs a scan.
type Scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Page is a part of a scan: what one answer has.
type Page struct {
	Items   []Item
	Scanned int     // how many items were looked at, also those that a filter left out
	Units   float64 // read capacity units
}

// Scan lists a table, page by page, each a request with a name of its own, and keeps none
// of them. It takes no more than perSecond read capacity units a second on average, if
// that is not zero, in pages that take about as much. An error ends it; errors are those of
// [Do].
func (c *Caller) Scan(ctx context.Context, db Scanner, id func() string, in dynamodb.ScanInput, perSecond float64) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		in := in // a second run begins at the beginning
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		pace := pace{perSecond: perSecond}
		for began := time.Now(); ; {
			if n := pace.items(); n > 0 {
				in.Limit = aws.Int32(n)
			}
			sent := in // what was sent is not changed
			out, _, err := Do(ctx, c, Request{Op: "Scan", ID: id(), Tables: []string{*in.TableName}}, &sent, db.Scan)
			if err != nil {
				yield(Page{}, err)
				return
			}
			page := Page{Items: out.Items, Scanned: int(out.ScannedCount), Units: unitsOf(out)}
			pace.took(page)
			in.ExclusiveStartKey = out.LastEvaluatedKey
			if !yield(page, nil) || len(in.ExclusiveStartKey) == 0 {
				return
			}
			if err := Sleep(ctx, pace.ahead(time.Since(began))); err != nil {
				yield(Page{}, &NoAnswerError{Op: "Scan", End: err})
				return
			}
		}
	}
}

// assumedUnits is what an item is taken to cost if DynamoDB does not say: what one of up
// to 4 KB does that is read eventually consistent.
const assumedUnits = 0.5

func unitsOf(out *dynamodb.ScanOutput) float64 {
	if out.ConsumedCapacity == nil || out.ConsumedCapacity.CapacityUnits == nil {
		return assumedUnits * float64(out.ScannedCount)
	}
	return *out.ConsumedCapacity.CapacityUnits
}

// pace keeps a scan to so many read capacity units a second.
type pace struct {
	perSecond float64 // zero: as fast as it goes
	units     float64
	scanned   int
}

func (p *pace) took(page Page) {
	p.units += page.Units
	p.scanned += page.Scanned
}

// items is how many items the next page is to have at most, so that it costs about what
// one second allows; zero is as many as DynamoDB gives. What an item costs is not known
// before the first page.
func (p *pace) items() int32 {
	if p.perSecond <= 0 {
		return 0
	}
	each := assumedUnits
	if p.scanned > 0 && p.units > 0 {
		each = p.units / float64(p.scanned)
	}
	return int32(min(max(p.perSecond/each, 1), math.MaxInt32))
}

// ahead is how long to wait until as much was allowed as was taken.
func (p *pace) ahead(elapsed time.Duration) time.Duration {
	if p.perSecond <= 0 {
		return 0
	}
	return max(time.Duration(p.units/p.perSecond*float64(time.Second))-elapsed, 0)
}
