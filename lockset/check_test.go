package lockset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// described is a way to the table that also says how it is made, as *dynamodb.Client
// does.
type described struct {
	*faults.Wrapper
	db      *memdynamo.DB
	refuses error // to describe
	status  types.TableStatus
	hangs   string                 // the description that never comes
	ttl     types.TimeToLiveStatus // not that of the table
}

func (d *described) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if err := d.answer(ctx, "DescribeTable"); err != nil {
		return nil, err
	}
	out, err := d.db.DescribeTable(ctx, in)
	if err != nil {
		return nil, err
	}
	if d.status != "" {
		out.Table.TableStatus = d.status
	}
	return out, nil
}

func (d *described) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if err := d.answer(ctx, "DescribeTimeToLive"); err != nil {
		return nil, err
	}
	out, err := d.db.DescribeTimeToLive(ctx, in)
	if err == nil && d.ttl != "" {
		out.TimeToLiveDescription.TimeToLiveStatus = d.ttl
	}
	return out, err
}

func (d *described) answer(ctx context.Context, op string) error {
	if d.hangs == op {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.refuses
}

// checker is a client that talks to d, and the number of its requests.
func (b *bed) checker(d *described, script faults.Script, change ...func(*lockset.Config)) (c *lockset.Client, sent func() int) {
	b.t.Helper()
	o := b.owner("checker", script, change...)
	d.Wrapper, d.db = o.net, b.db
	return must(lockset.New(d, o.Config()))(b.t), o.total
}

func (b *bed) createTable(name string, attribute types.ScalarAttributeType, keys ...string) {
	b.t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(key), AttributeType: attribute})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{
			AttributeName: aws.String(key), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i],
		})
	}
	_, err := b.db.CreateTable(b.t.Context(), in)
	require.NoError(b.t, err)
}

func (b *bed) setTTL(attribute string, on bool) {
	b.t.Helper()
	_, err := b.db.UpdateTimeToLive(b.t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &on},
	})
	require.NoError(b.t, err)
}

func inTable(name string) func(*lockset.Config) { return func(c *lockset.Config) { c.Table = name } }

// deny denies the calls that it is true of; of statements each by itself if singly.
func deny(singly bool, denies func(faults.Call) bool) faults.Script {
	if singly {
		return when(denies, faults.DenyStatements())
	}
	return when(denies, faults.Deny())
}

// transacts tells transactions that have such an action.
func transacts(has func(types.TransactWriteItem) bool) func(faults.Call) bool {
	return func(c faults.Call) bool {
		in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
		return ok && has(in.TransactItems[0])
	}
}

// problems are what a check found, as "problem: do", each of the lock table.
func problems(t *testing.T, of string, err error) []string {
	t.Helper()
	check := as[*requests.CheckError](t, err)
	require.Equal(t, next.FixCall, next.Of(err))
	var texts []string
	for _, f := range check.Findings {
		require.Equal(t, of, f.Table)
		texts = append(texts, f.Problem+": "+f.Do)
	}
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, len(texts))
	for i, line := range lines {
		require.Contains(t, line, texts[i])
	}
	return texts
}

// All is well, while others have locks and wait for them: nothing is found, and nothing
// is written or waited for.
func TestCheckOfAHealthyTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		refused := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: notAuthorized}
		try := func() {
			before := b.db.Items(table)
			for name, d := range map[string]*described{
				"it is described":   {},
				"that is denied":    {refuses: refused},
				"that is not known": {refuses: &smithy.GenericAPIError{Code: "UnknownOperationException"}},
				"it is updated":     {status: types.TableStatusUpdating},
				"TTL begins":        {ttl: types.TimeToLiveStatusEnabling},
			} {
				c, sent := b.checker(d, nil)
				start := time.Now()
				require.NoError(t, c.Check(t.Context()), name)
				require.LessOrEqual(t, time.Since(start), 10*rtt, name)
				require.Equal(t, 8, sent(), name)
			}
			silent := b.owner("silent", nil)
			require.NoError(t, silent.Check(t.Context()))
			require.Equal(t, map[string]int{"GetItem": 1, "UpdateItem": 1, "TransactWriteItems": 2, "TransactGetItems": 1, "BatchExecuteStatement": 1}, silent.requests())
			require.Equal(t, before, b.db.Items(table))
		}
		try()
		require.Empty(t, b.db.Items(table))
		set := b.take(b.owner("holder", nil), "a", "b/c")
		b.refused(b.owner("waiter", nil), time.Second, "a")
		try()
		require.NoError(t, set.Context().Err())
		b.free(set)
		b.free(b.take(b.owner("next", nil), "a", "b"))
	})
}

// No check has to do with a row of others, not even one of another check. Its names are those of the
// configuration.
func TestCheckNamesItsOwnRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		other := func(c *lockset.Config) { c.Table, c.HashKey = "other-locks", "lock-key" }
		cfg := lockset.Config{}
		other(&cfg)
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, cfg))
		require.NoError(t, b.owner("silent", nil, other).Check(t.Context()))
		var rows []string
		client, _ := b.checker(&described{}, func(c faults.Call) faults.Fault {
			var row types.AttributeValue
			switch in := c.Input.(type) {
			case *dynamodb.GetItemInput:
				row = in.Key["lock-key"]
			case *dynamodb.UpdateItemInput:
				row = in.Key["lock-key"]
			case *dynamodb.TransactGetItemsInput:
				row = in.TransactItems[0].Get.Key["lock-key"]
			case *dynamodb.BatchExecuteStatementInput:
				row = in.Statements[0].Parameters[1]
			case *dynamodb.TransactWriteItemsInput:
				if u := in.TransactItems[0].Update; u != nil {
					row = u.Key["lock-key"]
				} else {
					row = in.TransactItems[0].ConditionCheck.Key["lock-key"]
				}
			}
			rows = append(rows, lockrow.TextOf(row))
			return faults.Pass()
		}, other)
		require.NoError(t, client.Check(t.Context()))
		require.NoError(t, client.Check(t.Context()))
		require.Len(t, rows, 12)
		require.Len(t, slices.Compact(slices.Clone(rows)), 2)
		require.NotEqual(t, rows[0], rows[11])
		require.NoError(t, ordering.Key(rows[0]).Validate())
	})
}

func TestCheckFindsWhatIsWrongWithTheTable(t *testing.T) {
	type given struct {
		prepare   func(*bed)
		table     string
		described described
		finds     string
		silent    string // what is found without a description
	}
	inBeds(t, map[string]given{
		"it is not there": {nil, "nowhere", described{},
			"does not exist: create it, or correct its name, the Region or the account", "does not exist: create it"},
		"it has another hash key": {func(b *bed) { b.createTable("other", "S", "id") }, "other", described{},
			`its keys are "id" (HASH, S), not "key" (HASH, S): name a table with these keys`, `its keys are not "key" (HASH, S) (`},
		"its hash key is a number": {func(b *bed) { b.createTable("other", "N", "key") }, "other", described{},
			`its keys are "key" (HASH, N), not "key" (HASH, S)`, `its keys are not "key" (HASH, S) (`},
		"it has a range key": {func(b *bed) { b.createTable("other", "S", "key", "part") }, "other", described{},
			`its keys are "key" (HASH, S), "part" (RANGE, S), not "key" (HASH, S)`, `its keys are not "key" (HASH, S) (`},
		"it is being created": {nil, table, described{status: types.TableStatusCreating}, "is CREATING: wait until it is ACTIVE", ""},
		"its key is lost": {nil, table, described{status: types.TableStatusInaccessibleEncryptionCredentials},
			"is INACCESSIBLE_ENCRYPTION_CREDENTIALS: wait until it is ACTIVE, or see in its description why", ""},
		"nothing expires": {func(b *bed) { b.setTTL("expiresAt", false) }, table, described{},
			`TTL is off, so nothing is deleted that is of no use any more: turn TTL on for the attribute "expiresAt"`, ""},
		"TTL ends": {nil, table, described{ttl: types.TimeToLiveStatusDisabling}, "TTL is off", ""},
		"something else expires": {func(b *bed) { b.setTTL("expiresAt", false); b.setTTL("data", true) }, table, described{},
			`TTL is on for the attribute "data", so nothing is deleted that is of no use any more: turn TTL off, and then on for "expiresAt"`, ""},
	}, func(t *testing.T, b *bed, c given) {
		if c.prepare != nil {
			c.prepare(b)
		}
		client, sent := b.checker(&c.described, nil, inTable(c.table))
		found := problems(t, c.table, client.Check(t.Context()))
		require.Len(t, found, 1)
		require.Contains(t, found[0], c.finds)
		if !strings.HasPrefix(c.finds, "TTL") {
			require.Equal(t, 1, sent(), "nothing else has any point")
		}

		err := b.owner("silent", nil, inTable(c.table)).Check(t.Context())
		if c.silent == "" {
			require.NoError(t, err)
		} else {
			found = problems(t, c.table, err)
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.silent)
		}
		require.Empty(t, b.db.Items(c.table))
	})
}

// Each permission that is missing is one finding, with DynamoDB's own words.
func TestCheckFindsWhatIsDenied(t *testing.T) {
	type given struct {
		denies func(faults.Call) bool
		singly bool
		finds  []string
	}
	inBeds(t, map[string]given{
		"GetItem":          {of("GetItem"), false, []string{"GetItem is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:GetItem"}},
		"TransactGetItems": {of("TransactGetItems"), false, []string{"TransactGetItems is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:GetItem"}},
		"both":             {func(c faults.Call) bool { return c.Op == "GetItem" || c.Op == "TransactGetItems" }, false, []string{"GetItem is denied"}},
		"UpdateItem":       {of("UpdateItem"), false, []string{"UpdateItem is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:UpdateItem"}},
		"an update": {transacts(func(a types.TransactWriteItem) bool { return a.Update != nil }), false,
			[]string{"Update in TransactWriteItems is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:UpdateItem"}},
		"a check": {transacts(func(a types.TransactWriteItem) bool { return a.ConditionCheck != nil }), false,
			[]string{"ConditionCheck in TransactWriteItems is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:ConditionCheckItem"}},
		"a batch":     {of("BatchExecuteStatement"), false, []string{"UPDATE in BatchExecuteStatement is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:PartiQLUpdate"}},
		"a statement": {of("BatchExecuteStatement"), true, []string{"UPDATE in BatchExecuteStatement is denied (AccessDeniedException: " + notAuthorized + "): allow dynamodb:PartiQLUpdate"}},
		"all": {func(faults.Call) bool { return true }, false,
			[]string{"allow dynamodb:GetItem", "allow dynamodb:UpdateItem", "allow dynamodb:ConditionCheckItem", "allow dynamodb:PartiQLUpdate"}},
	}, func(t *testing.T, b *bed, c given) {
		client, _ := b.checker(&described{}, deny(c.singly, c.denies))
		err := client.Check(t.Context())
		found := problems(t, table, err)
		require.Len(t, found, len(c.finds), "%v", found)
		for i, want := range c.finds {
			require.Contains(t, found[i], want)
		}
		api := as[smithy.APIError](t, err)
		require.Equal(t, "AccessDeniedException", api.ErrorCode())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Empty(t, b.db.Items(table))
	})
}

// What is refused for a reason that is not known is passed on, once if it is the same for
// all.
func TestCheckPassesOnWhatItDoesNotKnow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unknown := &smithy.GenericAPIError{Code: "OddException", Message: "it is odd"}
		client, err := lockset.New(refusing{b.db, func(string) error { return unknown }}, lockset.Config{Table: table})
		require.NoError(t, err)
		err = client.Check(t.Context())
		require.Equal(t, []string{"GetItem is refused (OddException: it is odd): see to it that DynamoDB takes this request: holdall needs it"},
			problems(t, table, err))
		require.ErrorIs(t, err, unknown)

		// If the keys are right, it is not they that are refused.
		odd := &smithy.GenericAPIError{Code: "ValidationException", Message: "it is odd"}
		client, err = lockset.New(struct {
			refusing
			requests.Describer
		}{refusing{b.db, func(string) error { return odd }}, b.db}, lockset.Config{Table: table})
		require.NoError(t, err)
		require.Len(t, problems(t, table, client.Check(t.Context())), 4)
		require.NotContains(t, client.Check(t.Context()).Error(), "its keys are")

		// A table that is written to in several Regions at once has no transactions.
		none := &smithy.GenericAPIError{Code: "ValidationException", Message: "no transactions"}
		client, err = lockset.New(refusing{b.db, func(op string) error {
			if strings.HasPrefix(op, "Transact") {
				return none
			}
			return nil
		}}, lockset.Config{Table: table})
		require.NoError(t, err)
		found := problems(t, table, client.Check(t.Context()))
		require.Len(t, found, 3)
		for i, name := range []string{"Update in TransactWriteItems", "ConditionCheck in TransactWriteItems", "TransactGetItems"} {
			require.Contains(t, found[i], name+" is refused (ValidationException: no transactions)")
		}
	})
}

// refusing refuses operations.
type refusing struct {
	lockset.DynamoDB
	refuses func(op string) error
}

func (r refusing) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := r.refuses("GetItem"); err != nil {
		return nil, err
	}
	return r.DynamoDB.GetItem(ctx, in)
}

func (r refusing) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := r.refuses("TransactWriteItems"); err != nil {
		return nil, err
	}
	return r.DynamoDB.TransactWriteItems(ctx, in)
}

func (r refusing) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	if err := r.refuses("TransactGetItems"); err != nil {
		return nil, err
	}
	return r.DynamoDB.TransactGetItems(ctx, in)
}

// A clock that is wrong by more than a minute is found, whichever way, if the answers
// that agree with it best say so.
func TestCheckFindsAWrongClock(t *testing.T) {
	const mend = ": run a time service on this host"
	type given struct {
		first, others time.Duration // by which answers are off
		finds         string
	}
	inBeds(t, map[string]given{
		"right":                   {0, 0, ""},
		"almost":                  {59 * time.Second, 59 * time.Second, ""},
		"almost, the other way":   {-59 * time.Second, -59 * time.Second, ""},
		"behind":                  {5 * time.Minute, 5 * time.Minute, "is 5m0s behind DynamoDB's" + mend},
		"ahead":                   {-5 * time.Minute, -5 * time.Minute, "is 5m0s ahead of DynamoDB's" + mend},
		"one answer is old":       {-time.Hour, 0, ""},
		"the other answers are":   {0, -time.Hour, ""},
		"both, one more so":       {-3 * time.Minute, -2 * time.Minute, "is 2m0s ahead of"},
		"the other way, one more": {2 * time.Minute, 3 * time.Minute, "is 2m0s behind"},
	}, func(t *testing.T, b *bed, c given) {
		client, _ := b.checker(&described{}, nil)
		off := c.first
		b.date.Store(func() time.Time {
			defer func() { off = c.others }()
			return time.Now().Add(off)
		})
		err := client.Check(t.Context())
		if c.finds == "" {
			require.NoError(t, err)
			return
		}
		found := problems(t, "", err)
		require.Len(t, found, 1)
		require.Contains(t, found[0], c.finds)
		require.ErrorContains(t, err, "this process's clock: "+c.finds)
	})
}

// The clock that counts is the one by which tokens are proposed; it comes after the table.
func TestCheckReadsTheConfiguredClock(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.setTTL("expiresAt", false)
		client, _ := b.checker(&described{}, nil, wrongBy(-24*time.Hour))
		check := as[*requests.CheckError](t, client.Check(t.Context()))
		require.Len(t, check.Findings, 2)
		require.Equal(t, table, check.Findings[0].Table)
		require.Equal(t, "is 24h0m0s behind DynamoDB's", check.Findings[1].Problem)
	})
}

// Without an answer nothing can be said, whichever request had none, and nobody waits for
// longer than for any other request.
func TestCheckWithoutAnAnswer(t *testing.T) {
	type given struct {
		described described
		op        string
	}
	inBeds(t, map[string]given{
		"of the table": {described{hangs: "DescribeTable"}, "DescribeTable"}, "of its TTL": {described{hangs: "DescribeTimeToLive"}, "DescribeTimeToLive"},
		"of GetItem": {described{}, "GetItem"}, "of UpdateItem": {described{}, "UpdateItem"}, "of a transaction": {described{}, "TransactWriteItems"},
		"of TransactGetItems": {described{}, "TransactGetItems"}, "of a statement": {described{}, "BatchExecuteStatement"},
	}, func(t *testing.T, b *bed, c given) {
		b.setTTL("expiresAt", false) // a finding by itself
		d := c.described
		client, _ := b.checker(&d, when(func(call faults.Call) bool {
			return call.Op == c.op
		}, faults.LoseRequest(faults.Hang)))
		start := time.Now()
		err := client.Check(t.Context())
		none := as[*lockset.NoAnswerError](t, err)
		require.Equal(t, c.op, none.Op)
		require.NotErrorIs(t, err, context.Canceled)
		require.False(t, errors.As(err, new(*requests.CheckError)))
		require.Equal(t, next.TryLater, next.Of(err))
		require.LessOrEqual(t, time.Since(start), lease+2*time.Second)
	})
}

func TestCheckWhileDynamoDBIsBusy(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for _, how := range []faults.Throttling{faults.ThrottledGeneric, faults.Provisioned, faults.InReasons, faults.ProvisionedReason} {
			client, _ := b.checker(&described{}, func(c faults.Call) faults.Fault {
				if c.N > 1 || how >= faults.InReasons && c.Actions == 0 {
					return faults.Pass()
				}
				return faults.Throttle(how)
			})
			require.NoError(t, client.Check(t.Context()), how)
		}
	})
}

func TestCheckEndsWithItsContext(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		client, sent := b.checker(&described{}, nil)
		ended, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		err := client.Check(ended)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.ErrorIs(t, err, why)
		require.Equal(t, next.Decide, next.Of(err))
		require.Zero(t, sent())

		soon := b.lasting(5 * rtt / 2)
		start := time.Now()
		err = client.Check(soon)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*rtt/2, time.Since(start))

		client = must(lockset.New(b.db, lockset.Config{Table: table}))(t)
		require.NoError(t, client.Check(t.Context()))
		set := must(client.Acquire(t.Context(), []ordering.Key{"a"}))(t)
		b.free(set)
	})
}
