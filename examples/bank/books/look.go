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

// Items is what reading and writing without units asks of DynamoDB.
type Items interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Looker reads what is not read through a unit.
type Looker struct {
	DB      Items
	Observe func(trace.RequestEnd) // is told of every request
	Timeout time.Duration          // for one request; zero: none but the context's
}

func (l Looker) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.Timeout)
}

func (l Looker) observe(op string, start time.Time, used *types.ConsumedCapacity, err error) {
	info := trace.RequestEnd{Op: op, N: 1, Took: time.Since(start), Err: err}
	if used != nil {
		info.Capacity = aws.ToFloat64(used.CapacityUnits)
	}
	l.Observe(info)
}

// ErrUnanswered says that DynamoDB did not answer a read. Trying again may succeed.
var ErrUnanswered = errors.New("no answer to a read")

// Unanswered marks an error with ErrUnanswered if it is not DynamoDB's answer to
// the request.
func Unanswered(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// look reads one record by the key it has so far.
func look[T any](ctx context.Context, l Looker, t *unitofwork.Table[T], r *unitofwork.Ref[T]) error {
	item, err := attributevalue.MarshalMap(r.T)
	if err != nil {
		return err
	}
	key := map[string]types.AttributeValue{t.PartitionKey: item[t.PartitionKey]}
	if t.SortKey != "" {
		key[t.SortKey] = item[t.SortKey]
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	start := time.Now()
	out, err := l.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(t.Name), Key: key, ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		l.observe("GetItem", start, nil, err)
		return Unanswered(err)
	}
	l.observe("GetItem", start, out.ConsumedCapacity, nil)
	var record T
	if err := attributevalue.UnmarshalMap(out.Item, &record); err != nil {
		return err
	}
	r.T, r.Found = record, len(out.Item) > 0
	return nil
}

// query reads all records that have a partition key.
func query[T any](ctx context.Context, l Looker, t *unitofwork.Table[T], partition string) ([]*unitofwork.Ref[T], error) {
	pages := dynamodb.NewQueryPaginator(l.DB, &dynamodb.QueryInput{
		TableName: aws.String(t.Name), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#key = :key"),
		ExpressionAttributeNames:  map[string]string{"#key": t.PartitionKey},
		ExpressionAttributeValues: map[string]types.AttributeValue{":key": &types.AttributeValueMemberS{Value: partition}},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	var refs []*unitofwork.Ref[T]
	for pages.HasMorePages() {
		items, err := nextPage(ctx, l, pages)
		if err != nil {
			return nil, err
		}
		var found []T
		if err := attributevalue.UnmarshalListOfMaps(items, &found); err != nil {
			return nil, err
		}
		for _, record := range found {
			refs = append(refs, t.Of(record))
		}
	}
	return refs, nil
}

func nextPage(ctx context.Context, l Looker, pages *dynamodb.QueryPaginator) ([]map[string]types.AttributeValue, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	start := time.Now()
	page, err := pages.NextPage(ctx)
	if err != nil {
		l.observe("Query", start, nil, err)
		return nil, Unanswered(err)
	}
	l.observe("Query", start, page.ConsumedCapacity, nil)
	return page.Items, nil
}
