package unitofwork_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What no right program does is named by a panic, in all packages in the same way:
// "package: function: mistake". What may be wrong in data is an error.

// handles are the types whose values their package makes, by name, and one of each.
func (b *bed) handles() map[string]any {
	b.t.Helper()
	ctx := b.t.Context()
	c := b.client("c", nil)
	acquire := func(key ordering.Key) *lockset.Set {
		set, err := c.locks.Acquire(ctx, []ordering.Key{key})
		require.NoError(b.t, err)
		return set
	}
	set := acquire("held")
	unit, err := c.Begin(ctx, unitofwork.Work{Keys: []ordering.Key{"unit"}})
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		_ = set.Release(context.Background())
		_ = unit.Rollback(context.Background())
	})
	guard, err := fencing.NewGate(fencing.SQLite, "fences")
	require.NoError(b.t, err)
	admission, err := guard.Admission(1, "a")
	require.NoError(b.t, err)
	inspector, err := lockset.NewInspector(b.db, lockset.Config{Table: "locks"})
	require.NoError(b.t, err)
	return map[string]any{
		"lockset.Client": c.locks, "lockset.Set": set, "lockset.Inspector": inspector,
		"unitofwork.Client": c.Client, "unitofwork.Unit": unit,
		"fencing.Clock": fencing.NewClock(time.Now), "fencing.Gate": guard, "fencing.Admission": admission,
	}
}

// values may be made by anybody.
var values = map[string]any{
	"fencing.Fence":    fencing.Fence{Token: 1},
	"unitofwork.Table": &unitofwork.Table[account]{},
	"heartbeat.Group":  &heartbeat.Group{}, // a handle: its one maker is tried by itself
}

// calls calls a method with arguments that are good, but for that the one at index
// wrong, if there is one, is nil. It returns what the method panicked with, or its error.
func calls(receiver reflect.Value, method string, wrong int) (said string, panicked bool) {
	m := receiver.MethodByName(method)
	var in []reflect.Value
	for i := range m.Type().NumIn() {
		of := m.Type().In(i)
		if m.Type().IsVariadic() && i == m.Type().NumIn()-1 {
			of = of.Elem()
			if i != wrong {
				continue
			}
		}
		value := good(of)
		if i == wrong {
			value = reflect.Zero(of)
		}
		in = append(in, value)
	}
	defer func() {
		if p := recover(); p != nil {
			said, panicked = fmt.Sprint(p), true
		}
	}()
	for _, out := range m.Call(in) {
		if err, is := out.Interface().(error); is {
			said = err.Error()
		}
	}
	return said, false
}

func good(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case reflect.TypeFor[[]ordering.Key]():
		return reflect.ValueOf([]ordering.Key{"a"})
	}
	if of.Kind() == reflect.Func {
		return reflect.MakeFunc(of, func([]reflect.Value) (results []reflect.Value) {
			for i := range of.NumOut() {
				results = append(results, reflect.Zero(of.Out(i)))
			}
			return results
		})
	}
	return reflect.Zero(of)
}

// A method on nil, or on the zero value, of what its package makes says who makes it.
func TestWhatNobodyMadeIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		handles := b.handles()
		handles["heartbeat.Group"] = values["heartbeat.Group"]
		for name, handle := range handles {
			of := reflect.TypeOf(handle)
			require.NotZero(t, of.NumMethod(), name)
			for i := range of.NumMethod() {
				method := of.Method(i).Name
				pkg, typ, _ := strings.Cut(name, ".")
				want := fmt.Sprintf("%s: %s.%s: the %s was not made by ", pkg, typ, method, typ)
				for what, receiver := range map[string]reflect.Value{"nil": reflect.Zero(of), "zero": reflect.New(of.Elem())} {
					for wrong := -1; wrong < receiver.Method(i).Type().NumIn(); wrong++ { // whatever else is wrong
						said, panicked := calls(receiver, method, wrong)
						require.True(t, panicked, "%s %s.%s: %s", what, name, method, said)
						require.Contains(t, said, want, "%s %s.%s", what, name, method)
					}
				}
			}
		}
		for _, method := range []string{"Ref", "Of"} {
			said, _ := calls(reflect.ValueOf((*unitofwork.Table[account])(nil)), method, -1)
			require.Equal(t, "unitofwork: Table."+method+": nil Table", said)
		}
	})
}

// A nil context, function, option, transaction or input is named, by the function that
// got it; a nil record by an error, for it may be one of many.
func TestNilIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		handles := b.handles()
		handles["fencing.Fence"] = values["fencing.Fence"]
		tried := 0
		for name, handle := range handles {
			of := reflect.TypeOf(handle)
			for i := range of.NumMethod() {
				method := of.Method(i).Name
				signature := reflect.ValueOf(handle).Method(i).Type()
				for at := range signature.NumIn() {
					in := signature.In(at)
					if signature.IsVariadic() && at == signature.NumIn()-1 {
						in = in.Elem()
					}
					if k := in.Kind(); k != reflect.Func && k != reflect.Interface && k != reflect.Pointer || in == reflect.TypeFor[error]() {
						continue
					}
					tried++
					said, panicked := calls(reflect.ValueOf(handle), method, at)
					what := fmt.Sprintf("%s.%s with a nil %v: %q", name, method, in, said)
					switch {
					case in == reflect.TypeFor[unitofwork.Record]():
						require.False(t, panicked, what)
						require.Contains(t, said, "the record is nil", what)
					default:
						require.True(t, panicked, what)
						require.Contains(t, said, fmt.Sprintf("%s.%s: nil ", strings.Replace(name, ".", ": ", 1), method), what)
					}
				}
			}
		}
		require.Greater(t, tried, 30)
	})
}

// Functions that make the handles, and tables.
func TestMakersNameWhatIsMissing(t *testing.T) {
	var noContext context.Context
	db := memdynamo.New(memdynamo.Config{})
	var noDB *dynamodb.Client
	for says, call := range map[string]func(){
		"lockset: CreateTable: nil Context":    func() { _ = lockset.CreateTable(noContext, db, lockset.Config{Table: "locks"}) },
		"unitofwork: CreateTable: nil Context": func() { _ = unitofwork.CreateTable(noContext, db, unitofwork.Config{Table: "units"}) },
		"lockset: Client.Config: the Client was not made by New": func() {
			_, _ = unitofwork.New(&lockset.Client{}, unitofwork.Config{})
		},
		"fencing: NewClock: nil function":               func() { fencing.NewClock(nil) },
		"heartbeat: Start: nil Context":                 func() { heartbeat.Start(noContext, heartbeat.Config{}) },
		"heartbeat: Start: Config.Lease is missing":     func() { heartbeat.Start(t.Context(), heartbeat.Config{}) },
		`ordering: Key.Under: "b/c" is not below "a"`:   func() { ordering.Key("b/c").Under("a") },
		`ordering: Key.Under: "a" is not below "a/b/c"`: func() { ordering.Key("a").Under("a/b/c") },
	} {
		require.PanicsWithValue(t, says, call)
	}
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
				"Put": func(_ context.Context, u *unitofwork.Unit) error {
					return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}), record)
				},
				"Delete": func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(record) },
				"Update": func(_ context.Context, u *unitofwork.Unit) error { return u.Update(record, unitofwork.Expression{}) },
				"Check":  func(_ context.Context, u *unitofwork.Unit) error { return u.Check(record, unitofwork.Expression{}) },
				"Get":    func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, record) },
				"Read": func(ctx context.Context, _ *unitofwork.Unit) error {
					return c.Read(ctx, record)
				},
			} {
				err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, call)
				var refused *unitofwork.StageError
				require.ErrorAs(t, err, &refused, name)
				require.ErrorContains(t, err, says, name)
			}
		}
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(wrapped{accounts.Of(account{Customer: "1", ID: "a", Balance: 100})}) // which is what it holds
		}))
		b.allFree()
	})
}

// Whatever the packages export that has methods on a pointer is among what is tried.
func TestEveryHandleIsTried(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		handles := b.handles()
		for _, folder := range []string{"lockset", "unitofwork", "fencing", "heartbeat", "ordering"} {
			files, err := filepath.Glob("../" + folder + "/*.go")
			require.NoError(t, err)
			for _, name := range files {
				if strings.HasSuffix(name, "_test.go") {
					continue
				}
				file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
				require.NoError(t, err)
				for _, d := range file.Decls {
					f, is := d.(*ast.FuncDecl)
					if !is || f.Recv == nil || !f.Name.IsExported() {
						continue
					}
					of, is := f.Recv.List[0].Type.(*ast.StarExpr)
					if !is {
						continue
					}
					if generic, is := of.X.(*ast.IndexExpr); is {
						of.X = generic.X
					}
					typ := of.X.(*ast.Ident).Name
					if !ast.IsExported(typ) || strings.HasSuffix(typ, "Error") {
						continue
					}
					qualified := folder + "." + typ
					require.True(t, handles[qualified] != nil || values[qualified] != nil, "%s.%s is not tried", qualified, f.Name.Name)
				}
			}
		}
	})
}
