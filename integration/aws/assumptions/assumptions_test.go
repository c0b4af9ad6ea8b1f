// Package assumptions tries what holdall assumes about DynamoDB and no engine here can confirm:
// the table of docs/aws.md, a case for each of its lines. On the engines it shows that the cases
// run, and what they can tell there.
package assumptions

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/wire"
)

// TestMain has all cases wait at the same time: that takes no core.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(engines.Main(m))
}

// assumption is a line of the table of docs/aws.md.
type assumption struct {
	name string
	harm string // what holdall would do wrong if it were not so
	try  func(*bed) finding
	open []engines.Kind // which cannot tell
	// Which may tell, by chance: DynamoDB Local deletes what has expired when it comes to it.
	either []engines.Kind
}

// finding is what a case has found out. One that refutes its assumption fails instead.
type finding struct {
	open bool // neither confirmed nor refuted
	why  string
}

func confirmed(format string, values ...any) finding {
	return finding{why: fmt.Sprintf(format, values...)}
}

func open(format string, values ...any) finding {
	return finding{open: true, why: fmt.Sprintf(format, values...)}
}

var (
	local    = []engines.Kind{engines.KindLocal}
	dynoxide = []engines.Kind{engines.KindDynoxide}
	nowhere  = []engines.Kind{engines.KindEmbedded, engines.KindDynoxide, engines.KindLocal}
)

var assumptions = []assumption{
	{"token-remembered", "tell a caller that a unit without locks is not committed although it is; without an ID, its work would be done twice", tokenRemembered, nowhere, nil},
	{"token-at-once", "carry a commit out twice, where its conditions let it", tokenAtOnce, nowhere, nil},
	{"token-after-refusal", "send a commit that met a conflict again and again in vain, until it is in doubt", tokenAfterRefusal, nil, nil},
	{"reasons", "wait for a row that is not in its way, or blame the wrong record", reasons, nil, nil},
	{"rehearsal", "decide a unit that cannot be applied: committed, and stuck until somebody mends it", rehearsal, nil, nil},
	{"too-large-stored", "report a unit as refused instead of cutting its requests; or of updates, take a refusal for an error of the caller's", tooLargeStored, slices.Concat(local, dynoxide), nil},
	{"too-large-sent", "take the refusal of such a request for no answer, and report a unit in doubt that is not committed; holdall counts what it sends, and sends none that is larger", tooLargeSent, nil, nil},
	{"conflicts", "take a conflict for something else: report an error, or doubt, where it should send again. If checks of one item refused each other, units that only read one record would wait for each other, and commit less often", conflicts, nowhere, nil},
	{"reads-beside", "tell a function two states as one", readsBeside, nowhere, nil},
	{"statements", "lose a set whose keys were all renewed, or keep one that has lost a key until its deadline", statements, nil, nil},
	{"absent-attributes", "take a row past its queue, or never take one that is free", absentAttributes, nil, nil},
	{"permissions", "name the wrong permission, or none, when one is missing; or lack one that its pages do not name", virtually(permissions), nil, nil},
	{"ttl", "lose the row that says that a unit is being committed, so that another takes its key before its writes are done", ttl, nowhere, local},
	{"clock-header", "not notice a clock that is wrong, in Check; and processes that look only once would not find the dead", clockHeader, nil, nil},
	{"clock-skew", "report the first request of a process whose clock is wrong as an error, instead of sending it again", clockSkew, nowhere, nil},
	{"create-twice", "refuse to use tables that are there, in CreateTable", createTwice, nil, nil},
	{"costs", "cost something else than README says", virtually(costsAsWritten), local, nil},
}

// bed is where a case is tried.
type bed struct {
	*engines.Engine
	t *testing.T
}

// onAWS reports whether time and money are spent.
func (b *bed) onAWS() bool { return b.Kind == engines.KindAWS }

// times is how often something is done.
func (b *bed) times(short, long, onAWS int) int {
	switch {
	case b.onAWS():
		return onAWS
	case testing.Short():
		return short
	}
	return long
}

// patience is how long a case waits that is about memory.
func (b *bed) patience() time.Duration {
	return time.Duration(b.times(0, 2, 5*60)) * time.Second
}

// each runs a test on every engine, or on the DynamoDB elsewhere that was named.
func each(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	run := func(kind engines.Kind, get func(*testing.T) *engines.Engine) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, &bed{get(t), t})
		})
	}
	if e := engines.Elsewhere(t); e != nil {
		run(e.Kind, func(t *testing.T) *engines.Engine { return engines.Elsewhere(t) })
		return
	}
	run(engines.KindEmbedded, embedded)
	for _, kind := range []engines.Kind{engines.KindDynoxide, engines.KindLocal} {
		run(kind, func(t *testing.T) *engines.Engine { return engines.Get(t, kind) })
	}
}

// virtually has a case that is about leases run in virtual time on an engine; AWS has a clock of its own.
func virtually(try func(*bed) finding) func(*bed) finding {
	return func(b *bed) (found finding) {
		if b.onAWS() {
			return try(b)
		}
		engines.Virtual(b.t, b.Engine, func(t *testing.T, e *engines.Engine) { found = try(&bed{e, t}) })
		return found
	}
}

// embedded is the engine in memory, over HTTP as all others.
func embedded(t *testing.T) *engines.Engine {
	server := httptest.NewServer(wire.Handler(memdynamo.New(memdynamo.Config{})))
	t.Cleanup(server.Close)
	return &engines.Engine{
		Kind: engines.KindEmbedded, Name: "the embedded engine", Endpoint: server.URL, Client: engines.Client(server.URL), Prefix: "t-",
	}
}

// Each assumption, as far as it can be told here.
func TestAssumptions(t *testing.T) {
	for _, a := range assumptions {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bed) {
				defer func() {
					if t.Failed() {
						t.Logf("verdict: refuted: unless the network is at fault (see what failed), holdall would %s", a.harm)
					}
				}()
				found := a.try(b)
				if !b.onAWS() && !slices.Contains(a.either, b.Kind) {
					require.Equal(t, slices.Contains(a.open, b.Kind), found.open, "open: %s", found.why)
				}
				t.Logf("verdict: %s: %s", map[bool]string{true: "open", false: "confirmed"}[found.open], found.why)
			})
		})
	}
}
