package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Processes that hold keys, and wait for them, are this test binary, run with a role.
const roleVariable = "HOLDALL_TEST_ROLE"

// leastLease is the shortest lease of processes that are to die, or to fall silent: what a row says is
// what others watch. On a busy machine it is longer ([engines.Engine.Lease]). All others have the default.
const leastLease = 3 * time.Second

// mortal configures a process that is to die. Its requests get more of the lease than by default.
func mortal(table, owner string, lease time.Duration) lockset.Config {
	return lockset.Config{Table: table, Owner: owner, Lease: lease, Heartbeat: lease / 5, AttemptTimeout: lease * 3 / 10}
}

func init() {
	if role := os.Getenv(roleVariable); role != "" {
		if err := act(context.Background(), role); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
}

// act plays a role: says what it is about to do, or has done, in a line with its nonce.
func act(ctx context.Context, role string) error {
	lease, err := time.ParseDuration(os.Getenv("LEASE"))
	if err != nil {
		return err
	}
	db := &haltingDB{Client: engines.Client(os.Getenv("AWS_ENDPOINT_URL")), role: role, units: os.Getenv("HOLDALL_UNITS")}
	client, err := unitofwork.Open(db, unitofwork.Config{
		Locks: mortal(os.Getenv("HOLDALL_TABLE"), os.Getenv("OWNER"), lease),
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
		return polls(ctx, client.Locks(), keys, lease/shortLives)
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

// written is a record that units write.
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

// actor is a process with a role.
type actor struct {
	*engines.Child
	nonce string // of its unit
}

var readyLine = regexp.MustCompile(`(?m)^ready (\S{22})$`)

// actor starts a process and returns when it has what it wants; one that waits does not say.
func (b *bed) actor(t *testing.T, role, owner string, keys ...string) *actor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(b.environ(), roleVariable+"="+role, "OWNER="+owner, "KEYS="+strings.Join(keys, " "), "LEASE="+cmp.Or(b.actorLease, b.lease).String())
	child, err := engines.StartChild(cmd)
	require.NoError(t, err)
	t.Cleanup(child.Kill)
	return &actor{Child: child}
}

func (a *actor) ready(t *testing.T) *actor {
	t.Helper()
	for a.nonce == "" {
		require.NoError(t, t.Context().Err())
		require.True(t, a.Alive(), a.Output())
		if said := readyLine.FindStringSubmatch(a.Output()); said != nil {
			a.nonce = said[1]
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return a
}

// says waits until it has said something.
func (a *actor) says(t *testing.T, text string) {
	t.Helper()
	for start := time.Now(); !strings.Contains(a.Output(), text); time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(start), aLongTime, a.Output())
	}
}
