package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A nil function, option or table is named by a panic, in all packages in the same way:
// "package: function: mistake". What may be wrong in data is an error.
func TestNilIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var table *unitofwork.Table[account]
		gate, err := fencing.NewSQLiteGate("fences")
		require.NoError(t, err)
		for says, call := range map[string]func(){
			"lockset: Client.With: nil function":            func() { _ = c.locks.With(t.Context(), []ordering.Key{"a"}, nil) },
			"lockset: Client.Acquire: nil option":           func() { _, _ = c.locks.Acquire(t.Context(), []ordering.Key{"a"}, nil) },
			"unitofwork: Client.Do: nil function":           func() { _ = c.Do(t.Context(), unitofwork.Work{}, nil) },
			"unitofwork: Table.Ref: nil Table":              func() { table.Ref("1", "a") },
			"unitofwork: Table.Of: nil Table":               func() { table.Of(account{}) },
			"fencing: Gate.Do: nil function":                func() { _ = gate.Do(t.Context(), nil, 1, []ordering.Key{"a"}, nil) },
			"heartbeat: Start: Config.Lease is missing":     func() { heartbeat.Start(t.Context(), heartbeat.Config{}) },
			`ordering: Key.Under: "b/c" is not below "a"`:   func() { ordering.Key("b/c").Under("a") },
			`ordering: Key.Under: "a" is not below "a/b/c"`: func() { ordering.Key("a").Under("a/b/c") },
		} {
			require.PanicsWithValue(t, says, call)
		}
		b.allFree()
	})
}

// What makes a client or a table says that it was given no DynamoDB.
func TestNoDynamoDBIsAnError(t *testing.T) {
	var noDB *dynamodb.Client
	for _, db := range []lockset.DynamoDB{nil, noDB} {
		_, err := lockset.New(db, lockset.Config{Table: "locks"})
		require.EqualError(t, err, "config: db is nil")
	}
	for _, db := range []lockset.Tables{nil, noDB} {
		require.EqualError(t, lockset.CreateTable(t.Context(), db, lockset.Config{Table: "locks"}), "config: db is nil")
		require.EqualError(t, unitofwork.CreateTable(t.Context(), db, unitofwork.Config{Table: "units"}), "config: db is nil")
	}
	_, err := unitofwork.New(nil, unitofwork.Config{})
	require.EqualError(t, err, "config: locks is nil")
}

// wrapped is what a caller may make of a Record.
type wrapped struct{ unitofwork.Record }

// References that refer to nothing are refused as what is wrong in data is.
func TestReferencesToNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for says, record := range map[string]unitofwork.Record{
			"the record is nil":                                  nil,
			"the reference is nil":                               (*unitofwork.Ref[account])(nil),
			"the reference was not made by a Table's Ref or Of":  &unitofwork.Ref[account]{},
			"the record is a unitofwork_test.wrapped around nil": wrapped{},
			"its Table has no Name or no PartitionKey":           (&unitofwork.Table[account]{}).Ref("1"),
		} {
			for name, call := range map[string]func(context.Context, *unitofwork.Unit) error{
				"Put":    replaces(accounts.Of(account{Customer: "1", ID: "a"}), record),
				"Delete": func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(record) },
				"Update": func(_ context.Context, u *unitofwork.Unit) error { return u.Update(record, unitofwork.Expression{}) },
				"Check":  func(_ context.Context, u *unitofwork.Unit) error { return u.Check(record, unitofwork.Expression{}) },
				"Get":    func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, record) },
				"Read": func(ctx context.Context, _ *unitofwork.Unit) error {
					return c.Read(ctx, record)
				},
			} {
				err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, call)
				require.ErrorAs(t, err, new(*unitofwork.StageError), name)
				require.ErrorContains(t, err, says, name)
			}
		}
		inside := wrapped{accounts.Of(account{Customer: "1", ID: "a", Balance: 100})}
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, replaces(inside)), "which is what it holds")
		b.allFree()
	})
}

func TestOpenMakesItsOwnLocks(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	cfg := unitofwork.Config{Locks: lockset.Config{Table: "locks", Owner: "me"}, Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, cfg.Locks))
	require.NoError(t, unitofwork.CreateTable(t.Context(), db, cfg))
	units, err := unitofwork.Open(db, cfg)
	require.NoError(t, err)
	require.Equal(t, "me", units.Locks().Config().Owner)
	require.NoError(t, units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"a"}}, func(context.Context, *unitofwork.Unit) error {
		_, err := units.Locks().TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.HeldError), "they are the unit's")
		return nil
	}))

	for field, open := range map[string]func() error{
		"db":    func() error { _, err := unitofwork.Open(nil, cfg); return err },
		"Lease": func() error { c := cfg; c.Locks.Lease = 1; _, err := unitofwork.Open(db, c); return err },
		"Table": func() error { c := cfg; c.Table = "locks"; _, err := unitofwork.Open(db, c); return err },
		"Locks": func() error { _, err := unitofwork.New(units.Locks(), cfg); return err },
	} {
		wrong := errorAs[*locks.ConfigError](t, open())
		require.Equal(t, field, wrong.Field)
	}
}

// Who waits for a unit is told what it is for, in another process and in its own, whichever way it
// has its keys.
func TestWhatAUnitIsForIsTold(t *testing.T) {
	work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Purpose: "pay out"}
	refused := func(t *testing.T, c *client) *lockset.HeldError {
		_, err := c.Begin(t.Context(), unitofwork.Work{Keys: work.Keys, Wait: lockset.For(0)})
		held := errorAs[*lockset.HeldError](t, err)
		return held
	}
	runInBed(t, "under locks", func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		u := c.begins(t, work)
		require.Equal(t, "pay out", refused(t, c).Purpose)
		require.Equal(t, "pay out", refused(t, b.client("other", nil)).Purpose)
		require.NoError(t, u.Rollback(t.Context()))
	})
	runInBed(t, "without locks", func(t *testing.T, b *bed) {
		b.put("customers", customer{ID: "1"})
		c := b.client("c", nil)
		require.NoError(t, c.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, customers.Ref("1")); err != nil {
				return err
			}
			require.Equal(t, "pay out", refused(t, c).Purpose)
			return nil
		}))
	})
}

func TestAPurposeThatCannotBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", func(faults.Call) faults.Fault { panic("something was sent") })
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Purpose: strings.Repeat("x", 257)}
		_, err := c.Begin(t.Context(), work)
		require.EqualError(t, err, "config: Work.Purpose is longer than 256 bytes")
		err = c.Do(t.Context(), work, func(context.Context, *unitofwork.Unit) error { panic("called") })
		require.EqualError(t, err, "config: Work.Purpose is longer than 256 bytes")
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
	})
}

var errSent = errors.New("connection reset")

// examples has the errors that README's table names, as its rows name them.
var examples = map[string]error{
	"*heartbeat.LostError":   &heartbeat.LostError{Key: "a", Reason: &lockset.NoAnswerError{Op: "UpdateItem", Last: errSent, End: context.Canceled}},
	"lockset.ErrLost":        lockset.ErrLost,
	"*fencing.StaleError":    &fencing.StaleError{Token: 1, Found: 2},
	"fencing.ErrStale":       fencing.ErrStale,
	"*lockset.HeldError":     &lockset.HeldError{Key: "a", Err: context.DeadlineExceeded},
	"*lockset.NoAnswerError": &lockset.NoAnswerError{Op: "UpdateItem", Last: errSent, End: context.Canceled},
	"ErrCondition":           unitofwork.ErrCondition,
	"lockset.ErrClosed":      lockset.ErrClosed,
	"ErrExists":              unitofwork.ErrExists,
	"*ordering.KeyError":     &ordering.KeyError{Reason: "is empty"},
	"*IDError":               &unitofwork.IDError{ID: "i", Reason: "is empty"},
	"ErrNested":              lockset.ErrNested,
	"lockset.ErrNested":      lockset.ErrNested,
	"*inspect.FreeError":     &inspect.FreeError{Key: "a", Unit: "u", Reason: "it is free"},
	"*lockset.TableError":    &lockset.TableError{Op: "UpdateItem", Tables: []string{"t"}, Err: errSent},
	"*UnappliedError":        &unitofwork.UnappliedError{Unit: "u", Err: &fencing.StaleError{Token: 1, Found: 2}},
	"*InDoubtError":          &unitofwork.InDoubtError{Ref: "r", Err: fencing.ErrStale},
	"ErrInDoubt":             unitofwork.ErrInDoubt,
}

// inNoRow are the errors that have no row of their own, and why.
var inNoRow = map[string]string{
	"*CommitError":        "its Next is that of the row of its reason",
	"ErrAlreadyCommitted": "nothing is to be done",
	"lockset.ErrWaited":   "always within a HeldError",
}

// errorRows are the rows of README's table of errors: the errors of each Next.
func errorRows(t *testing.T) map[string][]string {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n## Errors\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	name := regexp.MustCompile("`([^`]+)`")
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		next := strings.Trim(cells[1], " `")
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			rows[next] = append(rows[next], m[1])
		}
	}
	return rows
}

// Each error has the Next of its row in README, bare or wrapped.
func TestNextOfIsAsREADMESays(t *testing.T) {
	nexts := map[string]lockset.Next{
		"StartOver": lockset.StartOver, "TryLater": lockset.TryLater, "Decide": lockset.Decide,
		"FixCall": lockset.FixCall, "AskLater": lockset.AskLater,
	}
	rows := errorRows(t)
	require.Len(t, rows, len(nexts))
	named := map[string]bool{}
	for row, names := range rows {
		next, known := nexts[row]
		require.True(t, known, row)
		for _, name := range names {
			err := examples[name]
			require.Error(t, err, "README names %s: give an example of it", name)
			require.False(t, named[name], "README has %s twice", name)
			named[name] = true
			require.Equal(t, next, lockset.NextOf(err), "%s", name)
			require.Equal(t, next, lockset.NextOf(fmt.Errorf("the third try: %w", err)), "%s, wrapped", name)
			require.Equal(t, next, lockset.NextOf(errors.Join(errSent, err)), "%s, joined", name)
		}
	}
	require.Len(t, named, len(examples), "examples of what README does not name")
	for err, next := range map[error]lockset.Next{
		nil:     lockset.Decide,
		errSent: lockset.Decide, // the caller's own
		&requests.CheckError{Findings: []requests.Finding{{Table: "t", Problem: "is odd", Do: "mend it", Err: errSent}}}: lockset.FixCall,
		&unitofwork.VersionError{Attribute: "Version", Read: "1", Found: "2"}:                                            lockset.StartOver,
		unitofwork.ErrSuperseded: lockset.StartOver,
		&unitofwork.KeysError{}:  lockset.TryLater,
		unitofwork.ErrNoLocks:    lockset.FixCall,
		&locks.ConfigError{Field: "Table", Reason: "is required"}:                   lockset.FixCall,
		&unitofwork.StageError{Table: "t", Record: "r", Reason: errSent}:            lockset.FixCall,
		&unitofwork.GuardError{Guard: "a"}:                                          lockset.FixCall,
		&unitofwork.TooLargeError{}:                                                 lockset.FixCall,
		unitofwork.ErrManaged:                                                       lockset.FixCall,
		unitofwork.ErrEnded:                                                         lockset.FixCall,
		&lockrow.RowError{Table: "t", Key: "a", Reason: "is odd"}:                   lockset.FixCall,
		&unitofwork.FenceError{Attribute: "_fence", Found: `"soon"`}:                lockset.FixCall,
		&unitofwork.EntryError{Table: "t", Entry: "e"}:                              lockset.FixCall,
		unitofwork.ErrNotCommitted:                                                  lockset.FixCall,
		unitofwork.ErrNoChoice:                                                      lockset.FixCall,
		unitofwork.ErrChanged:                                                       lockset.StartOver,
		&lockset.NoAnswerError{Op: "UpdateItem", End: context.Canceled}:             lockset.Decide, // it was not sent
		&unitofwork.CommitError{Next: lockset.Decide, Err: unitofwork.ErrCondition}: lockset.Decide,
		&unitofwork.CommitError{Next: lockset.FixCall, Err: fencing.ErrStale}:       lockset.FixCall,
	} {
		require.Equal(t, next, lockset.NextOf(err), "%v", err)
	}
}

// No error that users may meet is missing in README's table.
func TestREADMENamesEveryError(t *testing.T) {
	documented := slices.Concat(slices.Collect(maps.Values(errorRows(t)))...)
	for _, folder := range []string{"lockset", "unitofwork", "fencing", "ordering"} {
		for _, name := range exportedErrors(t, "../"+folder) {
			if folder != "unitofwork" {
				name = folder + "." + name
			}
			if strings.HasSuffix(name, "Error") {
				name = "*" + name
			}
			if !slices.Contains(documented, name) && inNoRow[name] == "" {
				t.Errorf("%s is in no row of README's table of errors", name)
			}
		}
	}
}

// exportedErrors returns the names of a package's exported error types, and of its
// variables that are errors.
func exportedErrors(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "Error" && n.Recv != nil {
					names = append(names, n.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
				}
				return false
			case *ast.TypeSpec:
				if n.Assign.IsValid() && strings.HasSuffix(n.Name.Name, "Error") { // another's, under a name of ours
					names = append(names, n.Name.Name)
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					if strings.HasPrefix(id.Name, "Err") {
						names = append(names, id.Name)
					}
				}
			}
			return true
		})
	}
	require.NotEmpty(t, names, folder)
	return slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
}
