package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// floor is where a folder stands: what of ours it may import, and from outside.
type floor struct {
	below   []string // folders of ours
	library bool     // users import it, or what they import imports it
	noAWS   bool
	pure    bool // decides: no I/O, no waiting, no clock, and nothing below it that has them
}

// house has every folder that holds Go, from the ground up. What stands beside
// the house, the library never imports.
var house = map[string]floor{
	"internal/next":        {library: true, noAWS: true, pure: true},
	"ordering":             {library: true, noAWS: true, pure: true, below: []string{"internal/next"}},
	"internal/plans":       {library: true, noAWS: true, pure: true, below: []string{"ordering"}},
	"internal/misuse":      {library: true, noAWS: true},
	"internal/oneline":     {library: true, noAWS: true, pure: true},
	"internal/recent":      {library: true, noAWS: true, pure: true, below: []string{"ordering"}},
	"internal/underway":    {library: true, noAWS: true, below: []string{"internal/oneline"}},
	"internal/expressions": {library: true, pure: true},
	"fencing":              {library: true, below: []string{"internal/plans", "internal/next", "ordering", "internal/expressions", "internal/misuse"}},
	"internal/tokens":      {library: true, noAWS: true, below: []string{"fencing"}},
	"heartbeat":            {library: true, noAWS: true, below: []string{"internal/next", "ordering", "internal/misuse"}},
	"trace":                {library: true, below: []string{"ordering", "fencing"}},
	"internal/hooks":       {library: true, below: []string{"trace"}},
	"record":               {library: true, noAWS: true, below: []string{"trace", "ordering"}},
	"internal/requests":    {library: true, below: []string{"trace", "internal/expressions", "internal/hooks", "internal/next"}},
	"internal/actions":     {library: true, pure: true, below: []string{"fencing", "internal/expressions", "internal/requests"}},
	"internal/writeback":   {library: true, pure: true, below: []string{"internal/actions"}},
	"internal/journal":     {library: true, pure: true, below: []string{"internal/plans", "ordering", "fencing", "internal/actions", "internal/expressions", "internal/oneline", "internal/requests"}},
	"internal/lockrow":     {library: true, pure: true, below: []string{"internal/tokens", "internal/plans", "internal/next", "ordering", "fencing"}},
	"internal/lineup":      {library: true, pure: true, below: []string{"internal/plans", "ordering", "fencing", "internal/lockrow", "internal/tokens"}},
	"internal/footprint":   {library: true, pure: true, below: []string{"internal/plans", "ordering", "internal/lockrow"}},
	"internal/nesting":     {library: true, noAWS: true, below: []string{"internal/plans", "ordering", "internal/next"}},
	"internal/locks":       {library: true, below: []string{"internal/plans", "trace", "internal/hooks", "internal/next", "ordering", "fencing", "heartbeat", "internal/footprint", "internal/lineup", "internal/lockrow", "internal/misuse", "internal/nesting", "internal/oneline", "internal/recent", "internal/requests", "internal/tokens", "internal/underway"}},
	"lockset":              {library: true, below: []string{"trace", "ordering", "fencing", "heartbeat", "internal/lineup", "internal/locks", "internal/lockrow", "internal/misuse", "internal/nesting", "internal/next", "internal/oneline", "internal/requests"}},
	"lockset/inspect":      {library: true, below: []string{"lockset", "ordering", "fencing", "internal/locks", "internal/lockrow", "internal/next", "internal/requests"}},
	"unitofwork":           {library: true, below: []string{"heartbeat", "internal/plans", "internal/locks", "trace", "internal/hooks", "internal/next", "ordering", "fencing", "internal/actions", "internal/expressions", "internal/journal", "internal/lineup", "internal/lockrow", "internal/misuse", "internal/nesting", "internal/oneline", "internal/requests", "internal/underway", "internal/writeback", "lockset"}},

	"internal/arbitrary": {pure: true},
	"internal/costs":     {below: []string{"internal/locks", "internal/hooks", "internal/newtable", "lockset", "ordering", "trace", "unitofwork"}},
	"internal/faults":    {below: []string{"lockset"}},
	"internal/newtable":  {},
	"internal/wire":      {},
	"internal/memdynamo": {below: []string{"lockset"}},
	"holdalltest":        {library: true, below: []string{"fencing", "internal/faults", "internal/memdynamo", "internal/misuse", "internal/nesting", "internal/newtable", "internal/wire", "lockset", "lockset/inspect", "ordering"}},
	"internal/tidy":      {noAWS: true},
}

// Whatever stands here may import all of the above.
var top = []string{"cmd", "docs/guides", "examples", "integration", "otelholdall"}

// outside is what the library may depend on, besides the standard library.
var outside = []string{
	"github.com/aws/aws-sdk-go-v2",
	"github.com/aws/smithy-go",
	"github.com/google/uuid",
	"golang.org/x/sync",
}

// floors: imports point down only.
func floors(f *file) (problems []Problem) {
	if within(f.dir(), top...) {
		return nil
	}
	here, known := house[f.dir()]
	if !known {
		return []Problem{{f.path, 1, "this folder has no place in the house; give it one in internal/tidy/floors.go"}}
	}
	if f.test() {
		return nil // tests may stand on anything
	}
	for imported, spec := range f.imports() {
		complain := func(why string) {
			problems = append(problems, Problem{f.path, f.line(spec), fmt.Sprintf("imports %s: %s", imported, why)})
		}
		ours := strings.TrimPrefix(imported, module+"/")
		switch {
		case imported == module || ours != imported:
			if !slices.Contains(here.below, ours) {
				complain("not below " + f.dir())
			}
		case !strings.Contains(strings.Split(imported, "/")[0], "."): // the standard library
		case here.noAWS && within(imported, "github.com/aws"):
			complain(f.dir() + " knows nothing of AWS")
		case here.library && !within(imported, outside...):
			complain("a dependency nobody decided on")
		}
	}
	return problems
}

// within reports whether a slash-separated path is one of these or below it.
func within(p string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		return p == parent || strings.HasPrefix(p, parent+"/")
	})
}
