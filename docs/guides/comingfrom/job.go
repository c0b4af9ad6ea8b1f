package comingfrom

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Nightly runs a job unless another host is at it, and says whether it ran.
func Nightly(ctx context.Context, locks *lockset.Client, job func(context.Context) error) (ran bool, err error) {
	keys := []ordering.Key{ordering.Join("job:nightly")}
	err = locks.With(ctx, keys, func(ctx context.Context, _ fencing.Token) error {
		ran = true
		return job(ctx) // ctx ends before another host can begin
	}, func(o *lockset.Options) { o.Wait, o.Purpose = lockset.For(0), "nightly" })
	if !ran && errors.As(err, new(*lockset.HeldError)) {
		return false, nil
	}
	return ran, err
}

// Publish writes a report that takes long to make. If it took so long that others have had the lock
// meanwhile, and have published, the table refuses it: the error is a *fencing.StaleError.
func Publish(ctx context.Context, locks *lockset.Client, db *dynamodb.Client, report string, text func(context.Context) string) error {
	keys := []ordering.Key{ordering.Join("report:" + report)}
	return locks.With(ctx, keys, func(ctx context.Context, token fencing.Token) error {
		return put(ctx, db, token, report, text(ctx))
	})
}

func put(ctx context.Context, db *dynamodb.Client, token fencing.Token, report, text string) error {
	item := id(report)
	item["Text"] = &types.AttributeValueMemberS{Value: text}
	in := &dynamodb.PutItemInput{TableName: aws.String("reports"), Item: item}
	fence := fencing.Fence{Token: token}
	if err := fence.Put(in); err != nil { // adds the token, and the condition that it is no older
		return err
	}
	_, err := db.PutItem(ctx, in)
	return fence.Stale(err)
}
