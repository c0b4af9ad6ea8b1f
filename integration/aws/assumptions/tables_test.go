package assumptions

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/costs"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// ours makes the tables that a process of holdall's uses, and one of records.
func (b *bed) ours() (locks lockset.Config, units unitofwork.Config, records string) {
	b.t.Helper()
	locks = lockset.Config{Table: b.Table("locks"), Lease: 10 * time.Second}
	units = unitofwork.Config{Table: b.Table("units")}
	for _, table := range []string{locks.Table, units.Table} {
		b.DropLater(b.t, table)
	}
	require.NoError(b.t, lockset.CreateTable(b.t.Context(), b.Client, locks))
	require.NoError(b.t, unitofwork.CreateTable(b.t.Context(), b.Client, units))
	return locks, units, b.records()
}

// createTwice: that a table is there, and its time to live on, is told in the way that
// CreateTable knows.
func createTwice(b *bed) finding {
	locks, units, _ := b.ours()
	require.NoError(b.t, lockset.CreateTable(b.t.Context(), b.Client, locks))
	require.NoError(b.t, unitofwork.CreateTable(b.t.Context(), b.Client, units))
	return confirmed("the lock table and the unit table, each twice")
}

// ttl: a prepared row has no time at which it expires, and what has none is not deleted, nor
// what has one that is to come.
func ttl(b *bed) finding {
	locks, units, records := b.ours()
	now := time.Now().Unix()
	row := func(key string, expires ...int64) {
		row := item{"key": text(key)}
		for _, at := range expires {
			row["expiresAt"] = number(at)
		}
		b.put(locks.Table, row)
	}
	row("for ever")
	row("an hour", now+3600)
	row("over", now-60)
	b.put(locks.Table, item{"key": text("not a number"), "expiresAt": text(strconv.FormatInt(now-60, 10))})
	for _, key := range b.prepared(locks, units, records) {
		require.NotContains(b.t, b.get(locks.Table, item{"key": text(key)}), "expiresAt", "it is prepared")
	}
	time.Sleep(b.patience())
	require.NotNil(b.t, b.get(locks.Table, item{"key": text("for ever")}))
	require.NotNil(b.t, b.get(locks.Table, item{"key": text("not a number")}))
	require.NotNil(b.t, b.get(locks.Table, item{"key": text("an hour")}))
	if b.get(locks.Table, item{"key": text("over")}) != nil {
		return open("no prepared row expires; nothing was deleted within %v, and what expires may stay for days", b.patience())
	}
	return confirmed("no prepared row expires; of three others only what had expired was deleted within %v", b.patience())
}

// prepared begins a unit with a journal and loses its process before it decides. It returns
// the keys whose rows are prepared.
func (b *bed) prepared(locks lockset.Config, units unitofwork.Config, records string) (keys []string) {
	b.t.Helper()
	net := faults.Wrap(b.Client, faults.Config{Script: func(c faults.Call) faults.Fault {
		in, is := c.Input.(*dynamodb.TransactWriteItemsInput)
		if !is || in.TransactItems[0].Update == nil {
			return faults.Pass()
		}
		if part, is := in.TransactItems[0].Update.Key["part"].(*types.AttributeValueMemberS); is && part.Value == "record" { // its decision
			return faults.CrashHere(false)
		}
		return faults.Pass()
	}})
	units.Locks, units.TransactionSize = locks, 8
	client, err := unitofwork.Open(net, units)
	require.NoError(b.t, err)
	table := people(records)
	go func() {
		_ = client.Do(context.WithoutCancel(b.t.Context()), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			for _, name := range strings.Split("a b c d e f g h", " ") {
				if err := u.Replace(table.Of(person{ID: name})); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	select {
	case <-net.Dead():
	case <-time.After(time.Minute):
		b.t.Fatal("the unit did not come to its decision")
	}
	net.Wait()
	out, err := b.Client.Scan(b.t.Context(), &dynamodb.ScanInput{TableName: &locks.Table, ConsistentRead: aws.Bool(true)})
	require.NoError(b.t, err)
	for _, row := range out.Items {
		if row["pending"] != nil {
			keys = append(keys, row["key"].(*types.AttributeValueMemberS).Value)
		}
	}
	require.Len(b.t, keys, 8)
	return keys
}

// clockHeader: answers say when they were sent, also those that refuse.
func clockHeader(b *bed) finding {
	table := b.records()
	out, err := b.Client.GetItem(b.t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: id("a")})
	require.NoError(b.t, err)
	server, told := middleware.GetServerTime(out.ResultMetadata)
	require.True(b.t, told, "no answer says when it was sent")
	off := requests.OffBy(server, time.Now(), time.Second)

	_, err = b.Client.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: id("a"), UpdateExpression: aws.String("SET n = :v"), ConditionExpression: aws.String("attribute_exists(n)"),
		ExpressionAttributeValues: item{":v": number(1)},
	})
	require.Equal(b.t, requests.Refused, requests.KindOf(err))
	var refused *smithyhttp.ResponseError
	require.ErrorAs(b.t, err, &refused)
	_, err = smithyhttp.ParseTime(refused.Response.Header.Get("Date"))
	require.NoError(b.t, err, "a refusal does not say when it was sent")
	return confirmed("told; this host's clock is off by %v", off)
}

// signer is one whose clock is wrong.
type signer struct {
	dynamodb.HTTPSignerV4
	off time.Duration
}

func (s signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string, at time.Time, o ...func(*v4.SignerOptions)) error {
	return s.HTTPSignerV4.SignHTTP(ctx, c, r, hash, service, region, at.Add(s.off), o...)
}

// clockSkew: a request that was signed at another time is refused in a way that holdall knows,
// and is not carried out.
func clockSkew(b *bed) finding {
	table := b.records()
	for _, off := range []time.Duration{-20 * time.Minute, 20 * time.Minute} {
		_, err := b.Client.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: id("a")}, func(o *dynamodb.Options) {
			o.HTTPSignerV4 = signer{v4.NewSigner(), off}
		})
		if err == nil {
			return open("signatures are not looked at here")
		}
		require.Equal(b.t, requests.Busy, requests.KindOf(err), "%v: %v", off, err)
		require.Nil(b.t, b.get(table, id("a")))
	}
	return confirmed("refused, 20 minutes early and late")
}

// costsAsWritten: README's tables of what units and lock sets cost are what is counted here.
func costsAsWritten(b *bed) finding {
	prefix := b.Table("costs-")
	for _, table := range []string{"locks", "units", "records", "sets"} {
		b.DropLater(b.t, prefix+table)
	}
	units, grains, sets := costs.Units, costs.Grains, costs.Sets
	if testing.Short() { // the last of each is the largest
		units, grains, sets = units[:6], grains[:2], sets[:3]
		if slices.Contains(local, b.Kind) { // all are tried on the others
			units, grains, sets = units[:2], grains[:1], sets[:1]
		}
	}
	wrong := 0
	counter := costs.NewCounter(b.t, b.Client, prefix)
	compare := func(name string, want, got costs.UnitCost) {
		require.Equal(b.t, want.Requests, got.Requests, "requests: %s", name)
		require.Equal(b.t, want.Rows, got.Rows, "rows: %s", name)
		if want != got {
			b.t.Logf("%s: README says %+v, and it is %+v", name, want, got)
			wrong++
		}
	}
	for _, u := range units {
		compare(u.Name, u.Free, counter.Count(b.t, u.Job))
		compare(u.Name+", locked", u.Locked, counter.Count(b.t, u.Job.UnderLocks()))
	}
	for _, g := range grains {
		compare(g.Name, g.Cost, counter.Count(b.t, g.Job.UnderLocks()))
	}
	for _, s := range sets {
		got := costs.CountSet(b.t, b.Client, prefix+"sets", s.Keys, 500*time.Millisecond)
		require.Equal(b.t, s.Cost.Acquire.Requests, got.Acquire.Requests, "requests to acquire: %s", s.Name)
		require.Equal(b.t, s.Cost.Round.Requests, got.Round.Requests, "requests of a round: %s", s.Name)
		require.Equal(b.t, s.Cost.Release.Requests, got.Release.Requests, "requests to release: %s", s.Name)
		if got != s.Cost {
			b.t.Logf("%s: README says %+v, and it is %+v", s.Name, s.Cost, got)
			wrong++
		}
	}
	all := len(units)*2 + len(grains) + len(sets)
	if wrong > 0 && !b.onAWS() {
		return open("the requests of %d lines are as README says; the capacity units of %d are counted otherwise here", all, wrong)
	}
	require.Zero(b.t, wrong, "lines of README whose capacity units are others")
	return confirmed("%d lines of README: requests and capacity units", all)
}
