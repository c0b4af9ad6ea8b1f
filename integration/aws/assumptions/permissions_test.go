package assumptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// documented are the permissions that docs/templates.md has processes be allowed, by table.
func documented(b *bed) map[string][]string {
	text, err := os.ReadFile("../../../docs/templates.md")
	require.NoError(b.t, err)
	all := map[string][]string{}
	for _, table := range []string{"Locks", "Units", "Records"} {
		_, list, found := strings.Cut(string(text), `sid       = "`+table+`"`)
		require.True(b.t, found, table)
		list, _, _ = strings.Cut(list, "]\n  }")
		for _, m := range regexp.MustCompile(`dynamodb:(\w+)`).FindAllStringSubmatch(list, -1) {
			all[table] = append(all[table], m[1])
		}
	}
	return all
}

// permissions: with those that are documented, and no others, a process can do all that it does;
// and each that is missing is named, by Check, or by the error of the unit that needs it.
func permissions(b *bed) finding {
	allowed := documented(b)
	var group errgroup.Group
	group.Go(func() error { return b.exactly(allowed) })
	missing := len(allowed["Locks"]) + len(allowed["Units"]) + len(allowed["Records"])
	for i, action := range allowed["Units"] { // the longest list
		denied := map[string]string{"Units": action}
		if i < len(allowed["Locks"]) {
			denied["Locks"] = allowed["Locks"][i]
		}
		group.Go(func() error { return b.without(fmt.Sprint("without", i), denied) })
	}
	for i, action := range allowed["Records"] {
		group.Go(func() error { return b.withoutRecords(fmt.Sprint("records", i), action) })
	}
	require.NoError(b.t, group.Wait())
	how := "by a proxy that refuses as AWS does: this engine has no permissions"
	if b.onAWS() {
		how = "by policies of the tables"
	}
	return confirmed("a process did all that it does with exactly those that are documented; each of %d that was taken away was named; %s", missing, how)
}

// role is a process that may do some things only.
type role struct {
	*bed
	db      lockset.DynamoDB
	tables  map[string]string // what the pages call them: their names
	locks   lockset.Config
	units   unitofwork.Config
	records *unitofwork.Table[person]

	mu   sync.Mutex
	used map[faults.Permission]bool
}

type person struct {
	ID string `dynamodbav:"id"`
	N  int64  `dynamodbav:"n"`
}

func people(table string) *unitofwork.Table[person] {
	return &unitofwork.Table[person]{Name: table, PartitionKey: "id", Guard: func(p *person) ordering.Key { return ordering.Join("family", p.ID) }}
}

// role makes tables, and restricts what may be done with them: the policy has a statement of
// IAM for each table by what the pages call it.
func (b *bed) role(name string, policy map[string]map[string]any, allowed func(table, action string) bool) *role {
	own := &bed{&engines.Engine{Kind: b.Kind, Name: b.Name, Endpoint: b.Endpoint, Client: b.Client, Server: b.Server, Prefix: b.Prefix + name + "-"}, b.t}
	r := &role{bed: own, db: b.Client, used: map[faults.Permission]bool{}}
	var records string
	r.locks, r.units, records = own.ours()
	r.units.Locks, r.records = r.locks, people(records)
	r.tables = map[string]string{"Locks": r.locks.Table, "Units": r.units.Table, "Records": records}
	if b.onAWS() {
		for table, statement := range policy {
			r.attach(r.tables[table], statement)
		}
		return r
	}
	r.db = faults.Wrap(b.Client, faults.Config{Script: func(c faults.Call) faults.Fault {
		return faults.DenyUnless(func(p faults.Permission) bool {
			r.mu.Lock()
			r.used[p] = true
			r.mu.Unlock()
			for table, of := range r.tables {
				if of == p.Table {
					return allowed(table, p.Action)
				}
			}
			return false
		})(c)
	}})
	return r
}

// attach gives a table a policy of one statement, which denies.
func (r *role) attach(table string, statement map[string]any) {
	out, err := r.Client.DescribeTable(r.t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	require.NoError(r.t, err)
	statement["Effect"], statement["Principal"], statement["Resource"] = "Deny", "*", aws.ToString(out.Table.TableArn)
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{statement}})
	require.NoError(r.t, err)
	_, err = r.Client.PutResourcePolicy(r.t.Context(), &dynamodb.PutResourcePolicyInput{ResourceArn: out.Table.TableArn, Policy: aws.String(string(policy))})
	require.NoError(r.t, err)
}

// What is asked about a table as a whole, which no policy here denies.
var ofTables = []string{"DeleteTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive", "PutResourcePolicy", "GetResourcePolicy", "DeleteResourcePolicy"}

func prefixed(actions ...string) (all []string) {
	for _, a := range actions {
		all = append(all, "dynamodb:"+a)
	}
	return all
}

func isDenied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException"
}

// settled waits until a policy counts: AWS says that this takes some time.
func (r *role) settled(denied func() bool) {
	r.t.Helper()
	require.Eventually(r.t, denied, 2*time.Minute, r.pause(), "the policy did not take effect")
}

func (b *bed) pause() time.Duration {
	if b.onAWS() {
		return time.Second
	}
	return 5 * time.Millisecond
}

// exactly has a process that may do what is documented, and nothing else, do all that one does.
func (b *bed) exactly(allowed map[string][]string) error {
	policy, set := map[string]map[string]any{}, map[faults.Permission]bool{}
	for table, actions := range allowed {
		policy[table] = map[string]any{"NotAction": prefixed(append(actions[:len(actions):len(actions)], ofTables...)...)}
		for _, a := range actions {
			set[faults.Permission{Table: table, Action: a}] = true
		}
	}
	r := b.role("exactly", policy, func(table, action string) bool { return set[faults.Permission{Table: table, Action: action}] })
	if b.onAWS() {
		for _, table := range r.tables {
			r.settled(func() bool {
				_, err := r.Client.Scan(b.t.Context(), &dynamodb.ScanInput{TableName: &table})
				return isDenied(err)
			})
		}
	}
	if err := r.live(); err != nil {
		return err
	}
	if b.onAWS() {
		return nil
	}
	for p := range set {
		if !r.used[faults.Permission{Table: r.tables[p.Table], Action: p.Action}] {
			return errors.New(p.Table + ": dynamodb:" + p.Action + " is documented, and nothing has needed it")
		}
	}
	return nil
}

// live does all that a process does: units without locks, under them, larger than a transaction;
// it renews, waits, takes over from the dead, and recovers.
func (r *role) live() error {
	ctx := r.t.Context()
	client, err := unitofwork.Open(r.db, r.units)
	if err != nil {
		return err
	}
	if err := client.Check(ctx); err != nil {
		return err
	}
	small := r.units
	small.TransactionSize = 6
	large, err := unitofwork.Open(r.db, small)
	if err != nil {
		return err
	}
	longer := r.locks
	longer.Lease *= 2 // its first renewal comes within a lease of the dead
	sets, err := lockset.New(r.db, longer)
	if err != nil {
		return err
	}
	dying := faults.Wrap(r.db, faults.Config{})
	dead, err := lockset.New(dying, r.locks)
	if err != nil {
		return err
	}
	set, err := sets.Acquire(ctx, []ordering.Key{"held"})
	if err != nil {
		return err
	}
	if _, err := dead.Acquire(ctx, []ordering.Key{"family/dead", "family/gone"}); err != nil {
		return err
	}
	dying.Crash()
	for _, do := range []func() error{
		func() error { return client.Do(ctx, unitofwork.Work{ID: "1"}, r.some) },
		func() error {
			return client.Do(ctx, unitofwork.Work{ID: "2", Lock: true, Keys: []ordering.Key{"family/a", "family/b", "family/c", "family/d", "family/e"}}, r.some)
		},
		func() error { return large.Do(ctx, unitofwork.Work{ID: "3"}, r.some) },
		func() error { _, err := client.Recover(ctx); return err },
		func() error {
			return client.Do(ctx, unitofwork.Work{Lock: true, Keys: []ordering.Key{"family"}}, nothing)
		},
		set.Context().Err,
		func() error { return set.Release(ctx) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context, *unitofwork.Unit) error { return nil }

// some stages an action of each kind.
func (r *role) some(ctx context.Context, u *unitofwork.Unit) error {
	a := r.records.Ref("a")
	if err := u.Get(ctx, a); err != nil {
		return err
	}
	a.T.ID, a.T.N = "a", a.T.N+1
	return errors.Join(u.Put(a), r.stage(u, "PutItem", "b"), r.stage(u, "UpdateItem", "c"), r.stage(u, "DeleteItem", "d"), r.stage(u, "ConditionCheckItem", "e"))
}

// stage stages what needs a permission, on one record.
func (r *role) stage(u *unitofwork.Unit, action, id string) error {
	ref := r.records.Of(person{ID: id})
	switch action {
	case "PutItem":
		return u.Replace(ref)
	case "UpdateItem":
		return u.Update(ref, unitofwork.Expression{Update: "SET n = :n", Values: map[string]any{":n": 1}})
	case "DeleteItem":
		return u.Delete(ref)
	case "ConditionCheckItem":
		return u.Check(ref, unitofwork.Expression{Condition: "attribute_not_exists(n) OR n >= :n", Values: map[string]any{":n": 0}})
	}
	return nil
}

// without takes a permission of the lock table and one of the unit table from a process: Check
// names these, and no others.
func (b *bed) without(name string, denied map[string]string) error {
	r := b.denied(name, denied)
	client, err := unitofwork.Open(r.db, r.units)
	if err != nil {
		return err
	}
	want := map[string]string{}
	for table, action := range denied {
		want[r.tables[table]] = "allow dynamodb:" + action
	}
	r.settled(func() bool {
		var found *requests.CheckError
		if !errors.As(client.Check(b.t.Context()), &found) || len(found.Findings) != len(want) {
			return false
		}
		for _, f := range found.Findings {
			if want[f.Table] != f.Do || !isDenied(f.Err) {
				return false
			}
		}
		return true
	})
	return nil
}

// withoutRecords takes one of the records: the error of a unit that needs it names their table.
func (b *bed) withoutRecords(name, action string) error {
	r := b.denied(name, map[string]string{"Records": action})
	client, err := unitofwork.Open(r.db, r.units)
	if err != nil {
		return err
	}
	r.settled(func() bool {
		err = client.Do(b.t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			if action == "GetItem" {
				return u.Get(ctx, r.records.Ref("a"))
			}
			return r.stage(u, action, "a")
		})
		return err != nil
	})
	if !isDenied(err) || lockset.NextOf(err) != lockset.FixCall || !strings.Contains(err.Error(), r.tables["Records"]) {
		return fmt.Errorf("without dynamodb:%s on records: %w", action, err)
	}
	return nil
}

// denied is a process that may not do these.
func (b *bed) denied(name string, denied map[string]string) *role {
	policy := map[string]map[string]any{}
	for table, action := range denied {
		policy[table] = map[string]any{"Action": prefixed(action)}
	}
	return b.role(name, policy, func(table, action string) bool { return denied[table] != action })
}
