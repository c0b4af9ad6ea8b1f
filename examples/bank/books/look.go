package books

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Items are the operations that read and write outside units.
type Items interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Looker reads and writes single items outside units.
type Looker struct {
	DB      Items
	Observe func(trace.Event) // called after every request; may be nil
	Timeout time.Duration     // of one request; zero: only the context limits it
}

// request sends one request, limits its time and reports it to Observe.
func request[O any](ctx context.Context, l Looker, op string, send func(context.Context) (O, error), used func(O) *types.ConsumedCapacity) (O, error) {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	start := time.Now()
	out, err := send(ctx)
	if l.Observe != nil {
		end := trace.Event{Kind: trace.Request, Op: op, N: 1, Took: time.Since(start), Err: err}
		if err == nil && used(out) != nil {
			end.Capacity = aws.ToFloat64(used(out).CapacityUnits)
		}
		l.Observe(end)
	}
	return out, err
}

// ErrUnanswered says that DynamoDB did not answer a read. A retry may succeed.
var ErrUnanswered = errors.New("no answer to a read")

// unanswered wraps an error in ErrUnanswered unless DynamoDB itself rejected the request.
func unanswered(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// look reads the record with an ID outside units.
func look(ctx context.Context, l Looker, table, id string, record any) (found bool, err error) {
	in := &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	out, err := request(ctx, l, "GetItem", func(ctx context.Context) (*dynamodb.GetItemOutput, error) { return l.DB.GetItem(ctx, in) },
		func(o *dynamodb.GetItemOutput) *types.ConsumedCapacity { return o.ConsumedCapacity })
	if err != nil {
		return false, unanswered(err)
	}
	return len(out.Item) > 0, attributevalue.UnmarshalMap(out.Item, record)
}

// query reads all records that have a partition key.
func query[T any](ctx context.Context, l Looker, t *unitofwork.Table[T], partition string) (refs []*unitofwork.Ref[T], err error) {
	pages := dynamodb.NewQueryPaginator(l.DB, &dynamodb.QueryInput{
		TableName: &t.Name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#key = :key"),
		ExpressionAttributeNames:  map[string]string{"#key": t.PartitionKey},
		ExpressionAttributeValues: map[string]types.AttributeValue{":key": &types.AttributeValueMemberS{Value: partition}},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	for pages.HasMorePages() {
		page, err := request(ctx, l, "Query", func(ctx context.Context) (*dynamodb.QueryOutput, error) { return pages.NextPage(ctx) },
			func(o *dynamodb.QueryOutput) *types.ConsumedCapacity { return o.ConsumedCapacity })
		if err != nil {
			return nil, unanswered(err)
		}
		var found []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &found); err != nil {
			return nil, err
		}
		for _, record := range found {
			refs = append(refs, t.Of(record))
		}
	}
	return refs, nil
}
