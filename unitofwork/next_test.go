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

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

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
	"*JournalError":          &unitofwork.JournalError{Table: "t", Unit: "u", Reason: errSent},
	"*UnappliedError":        &unitofwork.UnappliedError{Unit: "u", Err: &fencing.StaleError{Token: 1, Found: 2}},
	"*InDoubtError":          &unitofwork.InDoubtError{Ref: "r", Err: fencing.ErrStale},
	"ErrInDoubt":             unitofwork.ErrInDoubt,
	"ErrChanged":             unitofwork.ErrChanged,
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
