package conformance

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	gotoken "go/token"
	gotypes "go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

// builders are the names of the methods of lockrow.Table that build actions.
func builders() (names []string) {
	of := reflect.TypeFor[lockrow.Table]()
	for i := range of.NumMethod() {
		if name := of.Method(i).Name; name != "Item" {
			names = append(names, name)
		}
	}
	return names
}

// clauses are the constants of lockrow that are parts of expressions, by their names.
func clauses(t *testing.T) map[string]string {
	t.Helper()
	fset := gotoken.NewFileSet()
	paths, err := filepath.Glob("../../internal/lockrow/*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		require.NoError(t, err)
		files = append(files, f)
	}
	// Constant texts do not depend on what is imported, so that stays unknown.
	config := gotypes.Config{Error: func(error) {}, Importer: noImports{}}
	checked, _ := config.Check("lockrow", fset, files, nil)
	all := map[string]string{}
	for _, name := range checked.Scope().Names() {
		c, is := checked.Scope().Lookup(name).(*gotypes.Const)
		if is && c.Val().Kind() == constant.String && strings.Contains(constant.StringVal(c.Val()), "#") {
			all[name] = constant.StringVal(c.Val())
		}
	}
	require.Contains(t, all, "BurnIf", "the constants were not found")
	return all
}

type noImports struct{}

func (noImports) Import(string) (*gotypes.Package, error) { return nil, errors.New("not imported") }

// Rows for which the builders build different actions.
var (
	seenAt     = time.Unix(0, freeSince)
	seenFree   = lockrow.Row{Key: "a/b", Exists: true, Released: true, Fence: 1, RVN: "rvn-1"}
	seenBare   = lockrow.Row{Key: "a/b", Exists: true, Released: true, Fence: 1}
	seenQueued = lockrow.Row{Key: "a/b", Exists: true, Released: true, Fence: 1, TurnAt: seenAt, Queue: []lockrow.Waiter{"x ", "y "}}
	seenHeld   = lockrow.Row{Key: "a/b", Exists: true, Unit: "other", Owner: "o", Lease: time.Second, RVN: "rvn-1", Fence: 1}
)

// protocol returns the actions on lock rows that the library sends, in all their forms, by the names of the
// methods of lockrow.Table that build them.
func protocol() map[string][]types.TransactWriteItem {
	b := lockrow.Table{Name: "locks", HashKey: "key"}
	now := lockrow.Now{Low: time.Unix(2_000_000_000, 0), High: time.Unix(2_000_000_001, 0)}
	vs := lockrow.UnitValues("me", "me ", 2, now.High, now.High, now.High, now).With(lockrow.Values{
		":rvn": lockrow.Text("rvn-2"), ":owner": lockrow.Text("host"), ":lease": lockrow.Text("1"), ":journal": lockrow.Text("units"),
		":operator": lockrow.Text("operator"), ":head": lockrow.Text("x "), ":seen": lockrow.Number(1),
	})
	withPurpose := vs.With(lockrow.Values{":purpose": lockrow.Text("p")})
	wants := []lockrow.Want{
		{Key: "a", Mode: lockrow.Intent, Entry: lockrow.Entry{Unit: "me", Witness: "a/b"}},
		{Key: "a/b", Mode: lockrow.Exclusive, Entry: lockrow.Entry{Unit: "me", Witness: "a/b"}},
	}
	built := map[string][]types.TransactWriteItem{}
	add := func(builder string, us ...*types.Update) {
		for _, u := range us {
			built[builder] = append(built[builder], types.TransactWriteItem{Update: u})
		}
	}
	for _, w := range wants {
		for _, turn := range []lockrow.Turn{{}, {Queued: true}, {Past: seenAt}, {Past: seenAt, Queued: true, Before: 2}} {
			w.Turn = turn
			add("Acquire", b.Acquire(w, vs), b.Acquire(w, withPurpose))
		}
		add("Join", b.Join(w, seenFree, vs), b.Join(w, seenHeld, vs))
		add("Restamp", b.Restamp(w, vs))
	}
	for _, place := range []int{0, 1, 3} {
		add("StepOut", b.StepOut("a", place, "me "))
	}
	add("Update", fromConstants(b, vs)...)
	add("Releases", b.Releases(wants, vs, lockrow.IsMine, lockrow.Free)...)
	add("Releases", b.Releases(wants, vs, lockrow.IsMine, lockrow.Commit)...)
	add("Releases", b.Releases(wants, vs, lockrow.IsUnprepared, lockrow.Commit)...)
	add("DropAll", b.DropAll(seenQueued))
	add("Evict", b.Evict(seenHeld, now, vs))
	add("Date", b.Date(seenHeld, now), b.Date(lockrow.Row{Key: "a", Exists: true, Released: true, Fence: 1, Queue: seenQueued.Queue}, now))
	add("NoteSilence", b.NoteSilence(seenHeld, time.Second))
	add("LetExpire", b.LetExpire("a", vs))
	add("Limit", b.Limit("a", 1, vs))
	add("RestoreFreed", b.RestoreFreed("a", vs))
	add("RestoreHeld", b.RestoreHeld("me", "a/b", vs)...)
	add("RevokeNow", b.RevokeNow("a", vs))

	above := []lockrow.Row{{Key: "a", Exists: true, Released: true, Fence: 1, Below: []lockrow.Entry{{Unit: "other", Witness: "a/b"}}}}
	built["Revoke"] = append(b.Revoke(seenHeld, above, vs), b.Revoke(seenHeld, above, withPurpose)...)
	left := []lockrow.Remnant{{Entry: lockrow.Entry{Unit: "other", Witness: "a/b"}, Row: seenHeld, Dead: true}, {Entry: lockrow.Entry{Unit: "me", Witness: "a/c"}}}
	built["Clean"] = append(b.Clean("a", left[:1], now, vs), b.Clean("a", left, now, vs)...)
	built["Prepare"] = b.Prepare(wants, vs)
	built["Check"] = []types.TransactWriteItem{b.Check("a", lockrow.IsPrepared, vs)}
	built["Pass"] = passes(b, vs)
	return built
}

// fromConstants returns the writes whose condition and update the callers of lockrow choose.
func fromConstants(b lockrow.Table, vs lockrow.Values) []*types.Update {
	us := []*types.Update{
		b.Update("a", lockrow.DropIf, lockrow.Drop, vs),
		b.Update("a", lockrow.BurnAbsentIf, lockrow.BurnAbsent, vs), // no unit has a place there
	}
	for _, burn := range [][2]string{
		{lockrow.RestampKeyIf, lockrow.Stamp}, {lockrow.BurnLastingIf, lockrow.BurnLasting}, {lockrow.BurnIf, lockrow.Stamp},
	} {
		condition, update := lockrow.AndStepOut(burn[0], burn[1], 1)
		us = append(us, b.Update("a", burn[0], burn[1], vs), b.Update("a", condition, update, vs))
	}
	return us
}

// passes returns the actions of commits without locks, on rows of every kind.
func passes(b lockrow.Table, vs lockrow.Values) (actions []types.TransactWriteItem) {
	untaken := func(r lockrow.Row) lockrow.Row {
		r.Queue, r.TurnAt, r.Untaken = seenQueued.Queue, seenAt, seenAt
		return r
	}
	rows := []lockrow.Row{{Key: "a"}, seenBare, seenFree, untaken(seenBare), untaken(seenFree)}
	for _, mode := range []lockrow.Mode{lockrow.Exclusive, lockrow.Intent} {
		for _, checked := range []bool{false, true} {
			actions = append(actions, b.Pass(lockrow.Need{Key: "a", Mode: mode, Checked: checked}, vs))
			for _, same := range []lockrow.Same{lockrow.Fence, lockrow.RVN} {
				for _, r := range rows {
					actions = append(actions, b.Pass(lockrow.Need{Key: "a", Mode: mode, Same: same, Seen: r, Checked: checked}, vs))
				}
			}
		}
	}
	return actions
}
