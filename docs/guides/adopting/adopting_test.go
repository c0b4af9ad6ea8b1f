package adopting

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// shorter is how much of a test is enough with -short.
func shorter(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

// database is what the test itself needs of an engine.
type database interface {
	lockset.DynamoDB
	lockset.Tables
	DB
}

// unversioned is Accounts in a program that leaves versions alone.
func unversioned() *unitofwork.Table[Account] {
	t := Accounts
	t.Version = ""
	return &t
}

// careless is the old program without its check: it puts back whatever it has read.
func careless(ctx context.Context, db DB, id string, amount int64, next int64) error {
	a, err := read(ctx, db, id)
	if err != nil {
		return err
	}
	a.Balance, a.Version = a.Balance+amount, a.Version+next
	put, err := putOf(a)
	if err != nil {
		return err
	}
	_, err = db.PutItem(ctx, put)
	return err
}

// processes are an old and a new one, of which each adds to an account.
type processes struct {
	db       database
	units    *unitofwork.Client
	locks    *lockset.Client
	accounts []string
	turn     atomic.Int64
}

type mixture struct {
	name     string
	old, new func(ctx context.Context, p *processes, id string) error
	loses    bool
	seldom   bool // it loses few
}

// mixtures are the lines of the guide's table.
var mixtures = []mixture{
	{"no checks", oldCareless, newWithoutVersion, true, false},
	{"versions only in the old", oldWithVersion, newWithoutVersion, true, false},
	{"versions only in the new", oldCareless, newWithVersion, true, false},
	{"versions in both", oldWithVersion, newWithVersion, false, false},
	{"old ported to locks and `Fence`", oldPorted, newWithoutVersion, false, false},
	{"some old ported, the others count", oldOfBothKinds, newWithVersion, true, true},
}

func oldCareless(ctx context.Context, p *processes, id string) error {
	return careless(ctx, p.db, id, 1, 1)
}
func oldWithVersion(ctx context.Context, p *processes, id string) error {
	return DepositBefore(ctx, p.db, id, 1)
}
func oldPorted(ctx context.Context, p *processes, id string) error {
	return DepositPorted(ctx, p.db, p.locks, id, 1)
}
func oldOfBothKinds(ctx context.Context, p *processes, id string) error {
	if p.turn.Add(1)%2 == 0 {
		return oldPorted(ctx, p, id)
	}
	return oldWithVersion(ctx, p, id)
}
func newWithVersion(ctx context.Context, p *processes, id string) error {
	return Deposit(ctx, p.units, id, 1)
}
func newWithoutVersion(ctx context.Context, p *processes, id string) error {
	return deposit(ctx, p.units, unversioned(), id, 1)
}

func open(t *testing.T, db database, prefix string) *processes {
	ctx := t.Context()
	locks, units := lockset.Config{Table: prefix + "locks"}, prefix+"units"
	require.NoError(t, lockset.CreateTable(ctx, db, locks))
	require.NoError(t, unitofwork.CreateTable(ctx, db, unitofwork.Config{Table: units}))
	p := &processes{db: db, accounts: []string{"a", "b", "c"}}
	var err error
	p.locks, err = lockset.New(db, locks)
	require.NoError(t, err)
	p.units, err = unitofwork.Open(db, unitofwork.Config{Locks: locks, Table: units})
	require.NoError(t, err)
	for _, id := range p.accounts {
		put, err := putOf(Account{ID: id, Version: 1})
		require.NoError(t, err)
		_, err = db.PutItem(ctx, put)
		require.NoError(t, err)
	}
	return p
}

// mix has four goroutines of each program add one as often as given, and returns how many of the
// additions that were made are lost.
func (p *processes) mix(t *testing.T, m mixture, times int) (lost int64) {
	var all sync.WaitGroup
	var mu sync.Mutex
	made := int64(0)
	for _, program := range []func(context.Context, *processes, string) error{m.old, m.new} {
		for g := range 4 {
			all.Go(func() {
				for i := range times / 8 {
					err := program(t.Context(), p, p.accounts[(i+g)%len(p.accounts)])
					if lockset.NextOf(err) == lockset.StartOver {
						continue // somebody without locks was always faster
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					made++
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	for _, id := range p.accounts {
		a, err := read(t.Context(), p.db, id)
		require.NoError(t, err)
		made -= a.Balance
	}
	return made
}

func inMemory(t *testing.T, test func(*testing.T, *holdalltest.DB)) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		require.NoError(t, db.CreateTable(t.Context(), Accounts.Name, "ID", ""))
		db.SetLatency(5 * time.Millisecond)
		test(t, db)
	})
}

// What the guide's table says of losses: none where it says none, and some where it says so.
func TestOldAndNewWritersMixed(t *testing.T) {
	for _, m := range mixtures {
		t.Run(m.name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, db *holdalltest.DB) {
				times := shorter(1200, 120)
				if m.seldom {
					times = shorter(1200, 600)
				}
				lost := open(t, db.Client(), "").mix(t, m, times)
				t.Logf("%-32s %4d of %d lost", m.name, lost, times)
				require.Equal(t, m.loses, lost > 0, "%d lost", lost)
			})
		})
	}
}

// The table of the guide has the mixtures of the test.
func TestTheTable(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, m := range mixtures {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(m.name) + ` \|.*\| (\d+) \|$`).FindStringSubmatch(string(page))
		require.NotNil(t, row, m.name)
		require.Equal(t, m.loses, row[1] != "0", m.name)
	}
}

// images is a stream as the test makes it: what a record was before a write, and after it.
func images(t *testing.T, db database, id string, write func() error) (before, after map[string]types.AttributeValue) {
	now := func() map[string]types.AttributeValue {
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &Accounts.Name, Key: map[string]types.AttributeValue{
			"ID": &types.AttributeValueMemberS{Value: id},
		}})
		require.NoError(t, err)
		return out.Item
	}
	before = now()
	require.NoError(t, write())
	return before, now()
}

// Every old writer's change is found, and none of the new ones'.
func TestStragglers(t *testing.T) {
	inMemory(t, func(t *testing.T, db *holdalltest.DB) {
		p := open(t, db.Client(), "")
		for round := range 3 {
			for _, m := range mixtures[:len(mixtures)-1] { // the last one's old program is two of the others'
				for who, program := range map[string]func(context.Context, *processes, string) error{"old": m.old, "new": m.new} {
					straggles := who == "old" && !strings.Contains(m.name, "ported")
					before, after := images(t, p.db, "a", func() error { return program(t.Context(), p, "a") })
					require.Equal(t, straggles, Straggler(before, after), "%s, the %s program, round %d", m.name, who, round)
				}
			}
		}
		added, err := attributevalue.MarshalMap(Account{ID: "z"})
		require.NoError(t, err)
		require.True(t, Straggler(nil, added))
		require.False(t, Straggler(added, nil), "of a removal nothing can be told")
		changed := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "z"}, "_fence": &types.AttributeValueMemberS{Value: "x"}}
		require.True(t, Straggler(added, changed))
	})
}

// Versions can be left out process by process, once no old writer is left; and come back before one
// comes back.
func TestVersionsGoProcessByProcess(t *testing.T) {
	for name, m := range map[string]mixture{
		"some processes still count": {old: newWithVersion, new: newWithoutVersion},
		"the ported beside both":     {old: oldPorted, new: newWithVersion},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, db *holdalltest.DB) {
				require.Zero(t, open(t, db.Client(), "").mix(t, m, shorter(400, 80)))
			})
		})
	}
	inMemory(t, func(t *testing.T, db *holdalltest.DB) { // back to the old program, which goes on where units were
		p := open(t, db.Client(), "")
		for i := range 20 {
			require.NoError(t, Deposit(t.Context(), p.units, "a", 1), fmt.Sprint(i))
		}
		require.NoError(t, DepositBefore(t.Context(), p.db, "a", 1))
		a, err := read(t.Context(), p.db, "a")
		require.NoError(t, err)
		require.Equal(t, Account{ID: "a", Balance: 21, Version: 22}, a)
	})
}
