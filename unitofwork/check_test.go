package unitofwork_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// described is a way to the tables that also says how they are made, as *dynamodb.Client
// does.
type described struct {
	*faults.Wrapper
	db *memdynamo.DB
}

func (d described) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return d.db.DescribeTable(ctx, in)
}

func (d described) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return d.db.DescribeTimeToLive(ctx, in)
}

// checker is a client of these tables that is told how they are made.
func (b *bed) checker(script faults.Script, locks, units string) *unitofwork.Client {
	b.t.Helper()
	db := described{b.client("checker", script).net, b.db}
	c, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: locks, Lease: lease}, Table: units})
	require.NoError(b.t, err)
	return c
}

// deniesKinds denies calls that have a request of such a kind.
func deniesKinds(is func(requestKind) bool) faults.Script {
	return when(func(c faults.Call) bool { return slices.ContainsFunc(requestsOf(c), is) }, faults.Deny())
}

// requestKind is a kind of request on a table, or a kind of action in one.
type requestKind struct{ table, kind string }

// requestsOf are the kinds of requests that a call is.
func requestsOf(c faults.Call) (kinds []requestKind) {
	add := func(table *string, kind string) { kinds = append(kinds, requestKind{aws.ToString(table), kind}) }
	switch in := c.Input.(type) {
	case *dynamodb.GetItemInput:
		add(in.TableName, "GetItem")
	case *dynamodb.UpdateItemInput:
		add(in.TableName, "UpdateItem")
	case *dynamodb.QueryInput:
		add(in.TableName, "Query")
	case *dynamodb.TransactGetItemsInput:
		for _, item := range in.TransactItems {
			add(item.Get.TableName, "TransactGetItems")
		}
	case *dynamodb.BatchExecuteStatementInput:
		for _, s := range in.Statements {
			verb, rest, _ := strings.Cut(*s.Statement, " ")
			add(aws.String(strings.Split(rest, `"`)[1]), verb)
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			switch {
			case item.Put != nil:
				add(item.Put.TableName, "Put")
			case item.Update != nil:
				add(item.Update.TableName, "Update")
			case item.Delete != nil:
				add(item.Delete.TableName, "Delete")
			default:
				add(item.ConditionCheck.TableName, "ConditionCheck")
			}
		}
	}
	return kinds
}

// noted is a script that passes all, and the kinds of requests on holdall's tables that
// it has passed.
type noted struct {
	mu    sync.Mutex
	kinds map[requestKind]bool
}

func (n *noted) script(c faults.Call) faults.Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kinds == nil {
		n.kinds = map[requestKind]bool{}
	}
	for _, r := range requestsOf(c) {
		if r.table == "locks" || r.table == "units" {
			n.kinds[r] = true
		}
	}
	return faults.Pass()
}

// findings are those of a check that had some, each as "table: problem: do".
func findings(t *testing.T, err error) []string {
	t.Helper()
	check := errorAs[*requests.CheckError](t, err)
	require.Equal(t, lockset.FixCall, lockset.NextOf(err))
	var texts []string
	for _, f := range check.Findings {
		texts = append(texts, f.Table+": "+f.Problem+": "+f.Do)
	}
	return texts
}

// All is well, while units are at work, have died, and wait: nothing is found, and
// nothing is written.
func TestCheckOfHealthyTables(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		check := func() {
			sent := 0
			counted := func(faults.Call) faults.Fault { sent++; return faults.Pass() }
			before := b.tables()
			require.NoError(t, b.checker(counted, "locks", "units").Check(t.Context()))
			require.Equal(t, 6+8, sent, "and two descriptions of each table")
			require.NoError(t, b.client("silent", nil).Check(t.Context()))
			require.Equal(t, before, b.tables())
		}
		check()
		require.NoError(t, b.client("A", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "1"}, transfer(1)))
		b.dies(applies, 2, true)
		set := b.client("B", nil).has(t, "held")
		check()
		require.NoError(t, set.Release(t.Context()))
	})
}

// Without a unit table there is none to be checked.
func TestCheckWithoutAUnitTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var n noted
		require.NoError(t, b.client("A", n.script, withoutUnitTable).Check(t.Context()))
		require.NotEmpty(t, n.kinds)
		for r := range n.kinds {
			require.Equal(t, "locks", r.table)
		}
		found := findings(t, b.client("A", deniesKinds(func(requestKind) bool { return true }), withoutUnitTable).Check(t.Context()))
		require.Len(t, found, 4)
	})
}

// Each problem of the unit table is found.
func TestCheckFindsWhatIsWrongWithTheUnitTable(t *testing.T) {
	turnTTL := func(b *bed, attribute string, on bool) {
		_, err := b.db.UpdateTimeToLive(b.t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("units"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &on}})
		require.NoError(b.t, err)
	}
	for name, c := range map[string]struct {
		prepare func(*bed)
		units   string
		finds   string
		silent  string // what is found without a description
	}{
		"it is not there": {nil, "nowhere", "nowhere: does not exist: create it", "nowhere: does not exist: create it"},
		"it has no range key": {func(b *bed) { b.createTable("other", "unit") }, "other",
			`other: its keys are "unit" (HASH, S), not "unit" (HASH, S), "part" (RANGE, S)`, `other: its keys are not "unit" (HASH, S), "part" (RANGE, S) (`},
		"it has another range key": {func(b *bed) { b.createTable("other", "unit", "row") }, "other",
			`other: its keys are "unit" (HASH, S), "row" (RANGE, S), not `, `other: its keys are not "unit" (HASH, S), "part" (RANGE, S) (`},
		"nothing expires":        {func(b *bed) { turnTTL(b, "expiresAt", false) }, "units", `units: TTL is off`, ""},
		"something else expires": {func(b *bed) { turnTTL(b, "expiresAt", false); turnTTL(b, "at", true) }, "units", `units: TTL is on for the attribute "at"`, ""},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			if c.prepare != nil {
				c.prepare(b)
			}
			found := findings(t, b.checker(nil, "locks", c.units).Check(t.Context()))
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.finds)

			err := b.client("silent", nil, func(_ *lockset.Config, u *unitofwork.Config) { u.Table = c.units }).Check(t.Context())
			if c.silent == "" {
				require.NoError(t, err)
				return
			}
			found = findings(t, err)
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.silent)
		})
	}
}

// Each permission on the unit table that is missing is found by itself.
func TestCheckFindsWhatIsDeniedOnTheUnitTable(t *testing.T) {
	for kind, finds := range map[string]string{
		"UpdateItem":       "UpdateItem is denied (*): allow dynamodb:UpdateItem",
		"Update":           "Update in TransactWriteItems is denied (*): allow dynamodb:UpdateItem",
		"ConditionCheck":   "ConditionCheck in TransactWriteItems is denied (*): allow dynamodb:ConditionCheckItem",
		"Put":              "Put in TransactWriteItems is denied (*): allow dynamodb:PutItem",
		"Delete":           "Delete in TransactWriteItems is denied (*): allow dynamodb:DeleteItem",
		"TransactGetItems": "TransactGetItems is denied (*): allow dynamodb:GetItem",
		"DELETE":           "DELETE in BatchExecuteStatement is denied (*): allow dynamodb:PartiQLDelete",
		"Query":            "Query is denied (*): allow dynamodb:Query",
	} {
		runInBed(t, kind, func(t *testing.T, b *bed) {
			before := b.tables()
			found := findings(t, b.checker(deniesKinds(func(r requestKind) bool { return r == requestKind{"units", kind} }), "locks", "units").Check(t.Context()))
			require.Len(t, found, 1)
			begin, end, _ := strings.Cut(finds, "*")
			require.True(t, strings.HasPrefix(found[0], "units: "+begin), found[0])
			require.True(t, strings.HasSuffix(found[0], end), found[0])
			require.Equal(t, before, b.tables())
		})
	}
}

// What is found of the lock table comes first.
func TestCheckFindsAllOfBothTables(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		err := b.checker(nil, "no-locks", "no-units").Check(t.Context())
		require.EqualError(t, err, "table \"no-locks\": does not exist: create it, or correct its name, the Region or the account\n"+
			"table \"no-units\": does not exist: create it, or correct its name, the Region or the account")
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
}

// Without an answer nothing is said of either table.
func TestCheckOfUnitsWithoutAnAnswer(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for _, table := range []string{"locks", "units"} {
			c := b.checker(func(c faults.Call) faults.Fault {
				if requestsOf(c)[0].table == table {
					return faults.LoseRequest(faults.Hang)
				}
				return faults.Deny()
			}, "locks", "units")
			start := time.Now()
			err := c.Check(t.Context())
			require.ErrorAs(t, err, new(*lockset.NoAnswerError))
			require.False(t, errors.As(err, new(*requests.CheckError)))
			require.Equal(t, lockset.TryLater, lockset.NextOf(err))
			require.LessOrEqual(t, time.Since(start), lease+2*time.Second)
		}
		ended := endedContext(t.Context())
		err := b.checker(nil, "locks", "units").Check(ended)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, lockset.Decide, lockset.NextOf(err))
	})
}

// A check tries all kinds of requests that units send to holdall's tables, and no others.
func TestCheckTriesWhatUnitsSend(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var tried, sent noted
		require.NoError(t, b.client("checker", tried.script).Check(t.Context()))

		ctx := t.Context()
		c := b.client("A", sent.script)
		require.NoError(t, c.Do(ctx, unitofwork.Work{Keys: transferKeys, ID: "1"}, transfer(1)))
		require.NoError(t, c.Do(ctx, unitofwork.Work{Keys: transferKeys, ID: "1"}, transfer(1)), "once more")
		require.NoError(t, c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{"slow"}}, func(context.Context, *unitofwork.Unit) error {
			time.Sleep(lease)
			return nil
		}))
		held, err := b.client("B", sent.script).locks.Acquire(ctx, transferKeys)
		require.NoError(t, err)
		require.Error(t, c.Do(ctx, unitofwork.Work{Keys: transferKeys, Wait: lockset.For(lease)}, transfer(1)))
		require.NoError(t, held.Release(ctx))
		small := b.client("C", sent.script, inSmallTransactions)
		_, stage, _ := fewAccounts()
		require.NoError(t, small.Do(ctx, unitofwork.Work{Keys: keysOfFew(), ID: "2"}, stage))
		require.NoError(t, small.Do(ctx, unitofwork.Work{Keys: ofDeposits}, deposits(20)), "a key with more writes than one transaction has")
		b.dies(applies, 2, true)
		_, err = c.Recover(ctx)
		require.NoError(t, err)
		require.Equal(t, tried.kinds, sent.kinds)
	})
}

// A check tries what docs/operations.md and docs/templates.md have processes be allowed, and no more.
func TestCheckTriesWhatTheDocsAllow(t *testing.T) {
	tried := map[string][]string{}
	inBed(t, func(t *testing.T, b *bed) {
		for _, text := range findings(t, b.checker(deniesKinds(func(requestKind) bool { return true }), "locks", "units").Check(t.Context())) {
			table, rest, _ := strings.Cut(text, ": ")
			_, permission, found := strings.Cut(rest, ": allow dynamodb:")
			require.True(t, found, text)
			tried[table] = append(tried[table], permission)
		}
	})
	page := ""
	for _, name := range []string{"operations", "templates"} {
		text, err := os.ReadFile("../docs/" + name + ".md")
		require.NoError(t, err)
		page += string(text)
	}
	// between returns the words in a part of the pages.
	between := func(begin, end, word string) (words []string) {
		_, text, found := strings.Cut(page, begin)
		require.True(t, found, begin)
		text, _, found = strings.Cut(text, end)
		require.True(t, found, end)
		for _, m := range regexp.MustCompile(word).FindAllStringSubmatch(text, -1) {
			words = append(words, m[1])
		}
		return words
	}
	var inTable []string // of its second column
	for _, row := range between("| table | permission | for |\n|---|---|---|\n", "| yours |", `(?m)^(\|[^|]*\|[^|]*\|)`) {
		cells := strings.Split(row, "|")
		if strings.TrimSpace(cells[1]) == "units" {
			inTable = append(inTable, "units")
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			inTable = append(inTable, m[1])
		}
	}
	units := slices.Index(inTable, "units")
	require.Positive(t, units)
	for where, allowed := range map[string]map[string][]string{
		"Terraform": {
			"locks": between(`sid       = "Locks"`, "]\n  }", `dynamodb:(\w+)`), "units": between(`sid       = "Units"`, "]\n  }", `dynamodb:(\w+)`),
		},
		"CloudFormation": {
			"locks": between("- Sid: Locks\n", "Resource:", `dynamodb:(\w+)`), "units": between("- Sid: Units\n", "Resource:", `dynamodb:(\w+)`),
		},
		"the table": {"locks": inTable[:units], "units": inTable[units+1:]},
	} {
		for table := range tried {
			require.ElementsMatch(t, tried[table], allowed[table], "%s: %s", where, table)
		}
	}
	require.Len(t, tried, 2)
}
