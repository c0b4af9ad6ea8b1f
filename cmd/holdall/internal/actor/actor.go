// Command actor is a process that holds keys, or waits for them, for the tests of the command: one that
// can be killed, or stopped. The environment tells it which.
//
// It is built without the race detector, whose start would be most of what an actor costs. The packages that
// it calls have the race detector in their own tests.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func main() {
	if err := act(context.Background(), os.Getenv("ROLE")); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	select {} // until it is killed
}

func duration(name string) time.Duration {
	d, err := time.ParseDuration(os.Getenv(name))
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return d
}

// act plays a role: says what it is about to do, or has done, in a line with its nonce.
func act(ctx context.Context, role string) error {
	db := &haltingDB{Client: engines.Client(os.Getenv("AWS_ENDPOINT_URL")), role: role, units: os.Getenv("HOLDALL_UNITS")}
	client, err := unitofwork.Open(db, unitofwork.Config{
		Locks: lockset.Config{
			Table: os.Getenv("HOLDALL_TABLE"), Owner: os.Getenv("OWNER"),
			Lease: duration("LEASE"), Heartbeat: duration("HEARTBEAT"), AttemptTimeout: duration("ATTEMPT"),
		},
		Table: db.units, TransactionSize: 2,
	})
	if err != nil {
		return err
	}
	var keys []ordering.Key
	for k := range strings.SplitSeq(os.Getenv("KEYS"), " ") {
		keys = append(keys, ordering.Key(k))
	}
	if role == "polls" {
		return polls(ctx, client.Locks(), keys, duration("LIFE"))
	}
	if role == "holds" || role == "watches" {
		set, err := client.Locks().Acquire(ctx, keys, func(o *lockset.Options) { o.Purpose = "payment" })
		if err == nil {
			fmt.Println("ready", set.Nonce())
		}
		if err == nil && role == "watches" { // whether it has lost them
			<-set.Context().Done()
			fmt.Println("lost", context.Cause(set.Context()))
		}
		return err
	}
	records := &unitofwork.Table[written]{
		Name: os.Getenv("HOLDALL_TABLE") + "-records", PartitionKey: "key",
		Guard: func(r *written) ordering.Key { return ordering.Key(r.Key) },
	}
	return client.Do(ctx, unitofwork.Work{Keys: keys, Lock: true}, func(_ context.Context, u *unitofwork.Unit) error {
		db.nonce = u.Nonce()
		for _, k := range keys {
			var err error
			if role == decidesUpdates {
				err = u.Update(records.Ref(string(k)), unitofwork.Expression{Update: "ADD N :n", Values: map[string]any{":n": 7}})
			} else {
				err = u.Replace(records.Of(written{Key: string(k)}))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type written struct {
	Key string `dynamodbav:"key"`
}

// decidesUpdates is the role of one that decides, and adds seven to N of each record.
const decidesUpdates = "decides updates"

// haltingDB stops the process at the decision about its unit: before, if the role is
// "prepares", or after.
type haltingDB struct {
	*dynamodb.Client
	role, units, nonce string
}

func (h *haltingDB) halt(table *string, key map[string]types.AttributeValue, decide func() error) error {
	part, _ := key["part"].(*types.AttributeValueMemberS)
	if *table != h.units || part == nil || part.Value != "record" {
		return decide()
	}
	if h.role == "decides" || h.role == decidesUpdates {
		if err := decide(); err != nil {
			return err
		}
	}
	fmt.Println("ready", h.nonce)
	select {}
}

func (h *haltingDB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	err = h.halt(in.TableName, in.Key, func() error { out, err = h.Client.UpdateItem(ctx, in, o...); return err })
	return out, err
}

func (h *haltingDB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	send := func() error { out, err = h.Client.TransactWriteItems(ctx, in, o...); return err }
	for _, action := range in.TransactItems {
		if action.Update != nil {
			if part, is := action.Update.Key["part"].(*types.AttributeValueMemberS); is && part.Value == "record" {
				return out, h.halt(action.Update.TableName, action.Update.Key, send)
			}
		}
	}
	return out, send()
}

// notGot is the code with which a poller ends that has not had its keys, as holdall exec does.
const notGot = 124

// polls asks for keys again and again for so long, waiting for nobody, and ends the process.
func polls(ctx context.Context, locks *lockset.Client, keys []ordering.Key, life time.Duration) error {
	for end := time.Now().Add(life); time.Now().Before(end); time.Sleep(life / 10) {
		set, err := locks.TryAcquire(ctx, keys)
		if err == nil {
			if err = set.Release(ctx); err == nil {
				os.Exit(0)
			}
			return err
		}
	}
	os.Exit(notGot)
	return nil
}
