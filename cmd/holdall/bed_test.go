package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// program is the command as users have it. actorProgram is package internal/actor. Both are built once for
// all tests.
var program, actorProgram string

// TestMain has many tests wait at the same time, for leases: that takes no core.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "holdall")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		program, actorProgram = filepath.Join(folder, "holdall"), filepath.Join(folder, "actor")
		if out, err := exec.Command("go", "build", "-o", folder, ".", "./internal/actor").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
		defer browser.End()
		return engines.Main(m)
	}())
}

// eachEngine runs a test on both engines, at the same time: it is one that waits for leases. What
// waits for nothing is run by engines.Each, before all that is parallel.
func eachEngine(t *testing.T, test func(*testing.T, *engines.Engine)) {
	t.Helper()
	for n := range kinds {
		onEngine(t, n, test)
	}
}

// kinds are the engines of these tests.
var kinds = []engines.Kind{engines.KindDynoxide, engines.KindLocal}

// inTurn runs one of many cases on both engines. With -short it runs the case on one engine, chosen by the
// case's number, because each step of a case starts a process.
func inTurn(t *testing.T, number int, test func(*testing.T, *engines.Engine)) {
	t.Helper()
	if testing.Short() {
		onEngine(t, number%len(kinds), test)
		return
	}
	eachEngine(t, test)
}

// eachCase runs a test of many cases, each by itself and on the engines that [inTurn] gives it.
func eachCase[C any](t *testing.T, cases map[string]C, test func(t *testing.T, e *engines.Engine, name string, c C)) {
	t.Helper()
	for number, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTurn(t, number, func(t *testing.T, e *engines.Engine) { test(t, e, name, cases[name]) })
		})
	}
}

func onEngine(t *testing.T, n int, test func(*testing.T, *engines.Engine)) {
	t.Helper()
	t.Run(string(kinds[n]), func(t *testing.T) {
		t.Parallel()
		test(t, engines.Get(t, kinds[n]))
	})
}

// bed is two tables of an engine.
type bed struct {
	*engines.Engine
	locks, units string
	lease        time.Duration // of actors, and of what is to die
	actorLease   time.Duration // of actors, if it is another
}

// livingLease is of those who are to be seen alive, on a machine that is busy with browsers.
const livingLease = 12 * time.Second

// newLivingBed has actors live for long.
func newLivingBed(t *testing.T) *bed {
	b := newBed(t, engines.Dynoxide(t))
	b.actorLease = max(livingLease, 4*b.lease)
	return b
}

func newBed(t *testing.T, e *engines.Engine) *bed {
	b := &bed{Engine: e, locks: e.Table("locks"), units: e.Table("units"), lease: e.Lease(t, leastLease)}
	require.NoError(t, lockset.CreateTable(t.Context(), e.Client, lockset.Config{Table: b.locks}))
	require.NoError(t, unitofwork.CreateTable(t.Context(), e.Client, unitofwork.Config{Table: b.units}))
	e.DropLater(t, b.locks)
	e.DropLater(t, b.units)
	return b
}

// slower returns another bed on the same engine, with twice the lease.
func (b *bed) slower(t *testing.T) *bed {
	t.Helper()
	slower := newBed(t, engines.Get(t, b.Kind))
	slower.lease = max(slower.lease, 2*b.lease)
	return slower
}

// recordsTable makes the table of what units of actors write, and returns its name.
func (b *bed) recordsTable(t *testing.T) string {
	t.Helper()
	return b.CreateTable(t, "locks-records", "key", "")
}

// client is a client of the tables in the test's own process.
func (b *bed) client(t *testing.T) *unitofwork.Client {
	c, err := unitofwork.Open(b.Client, unitofwork.Config{Locks: lockset.Config{Table: b.locks, Owner: "the test"}, Table: b.units})
	require.NoError(t, err)
	return c
}

// environ is what every process of the command gets: nothing of this machine's but PATH.
func environ(endpoint string, more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=holdall", "AWS_SECRET_ACCESS_KEY=holdall", "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL=" + endpoint,
	}, more...)
}

func (b *bed) environ() []string {
	return environ(b.Endpoint, "HOLDALL_TABLE="+b.locks, "HOLDALL_UNITS="+b.units)
}

// ran is what a run of the command came to.
type ran struct {
	code           int
	stdout, stderr string
}

// run runs the command to its end.
func (b *bed) run(t *testing.T, args ...string) ran {
	t.Helper()
	return runWith(t, b.environ(), args...)
}

// progressLine is what a command says in a log of how far it has come, if that takes long.
var progressLine = regexp.MustCompile(`(?m)^(looking for units that |watching for signs of life: |\d+ rows looked at, |unit \S+: [a-z]+ \d+( of \d+)?$|holdall: waiting for key ).*\n`)

func runWith(t *testing.T, environ []string, args ...string) ran {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), progressLine.ReplaceAllString(errs.String(), "")}
}

// oneError requires that a run has failed with a code, and said why in one line.
func (r ran) oneError(t *testing.T, code int, says string) {
	t.Helper()
	require.Equal(t, code, r.code, "%+v", r)
	require.Contains(t, r.stderr, says)
	require.True(t, strings.HasPrefix(r.stderr, "holdall: ") && strings.Count(r.stderr, "\n") == 1, r.stderr)
}

// json reads the one document that a run has written.
func (r ran) json(t *testing.T, code int, into any) {
	t.Helper()
	require.Equal(t, code, r.code, "%+v", r)
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(into), r.stdout)
	require.False(t, decoder.More(), r.stdout)
}

// command is the command, with the tables of the bed.
func (b *bed) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = b.environ()
	return cmd
}

// ongoing is a command that goes on until it is ended.
type ongoing struct {
	*exec.Cmd
	lines  <-chan string // of stdout
	stderr *strings.Builder
}

// begin starts the command, which ends with the test.
func (b *bed) begin(t *testing.T, args ...string) *ongoing {
	t.Helper()
	return begin(t, b.command(args...))
}

func begin(t *testing.T, cmd *exec.Cmd) *ongoing {
	t.Helper()
	o := &ongoing{Cmd: cmd, stderr: &strings.Builder{}}
	o.Stderr = o.stderr
	out, err := o.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, o.Start())
	o.lines = linesOf(out)
	t.Cleanup(func() {
		_ = o.Process.Kill()
		o.wait()
	})
	return o
}

func (o *ongoing) wait() {
	for range o.lines {
	}
	_ = o.Wait()
}

// ended waits until it has ended, and all that it has started.
func (o *ongoing) ended(t *testing.T, code int) {
	t.Helper()
	o.wait()
	require.Equal(t, code, o.ProcessState.ExitCode(), o.stderr)
}

// interrupted ends it with a signal, which its code tells.
func (o *ongoing) interrupted(t *testing.T, by syscall.Signal) {
	t.Helper()
	require.NoError(t, o.Process.Signal(by))
	o.ended(t, exitSignal+int(by))
}

// linesOf returns the lines of a pipe, until its end.
func linesOf(pipe io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// next is the next line.
func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line, ok := <-lines:
		require.True(t, ok, "it ended")
		return line
	case <-time.After(aLongTime):
		t.Fatal("it says nothing")
		return ""
	}
}

// aLongTime bounds what is waited for, and is never reached where all is well.
const aLongTime = time.Minute

// put has somebody write an item without a lock.
func (b *bed) put(t *testing.T, table string, item map[string]any) {
	t.Helper()
	attributes, err := attributevalue.MarshalMap(item)
	require.NoError(t, err)
	_, err = b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: attributes})
	require.NoError(t, err)
}

func keyItem(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}}
}

func (b *bed) delete(t *testing.T, table string, key map[string]types.AttributeValue) {
	t.Helper()
	_, err := b.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
}

// truncate removes a row of a unit's journal: the unit is stuck.
func (b *bed) truncate(t *testing.T, unit string) {
	t.Helper()
	b.delete(t, b.units, map[string]types.AttributeValue{
		"unit": &types.AttributeValueMemberS{Value: unit}, "part": &types.AttributeValueMemberS{Value: "journal/000000"},
	})
}

func (b *bed) inspector(t *testing.T) *inspect.Inspector {
	t.Helper()
	inspector, err := inspect.New(b.Client, lockset.Config{Table: b.locks})
	require.NoError(t, err)
	return inspector
}

// row returns the row of a key.
func (b *bed) row(t *testing.T, key string) inspect.Row {
	t.Helper()
	view, err := b.inspector(t).Look(t.Context(), ordering.Key(key))
	require.NoError(t, err)
	return view.Row
}

// queued returns how many units wait for a key.
func (b *bed) queued(t *testing.T, key string) int { return len(b.row(t, key).Queue) }

// untilQueued waits until so many units wait for a key.
func (b *bed) untilQueued(t *testing.T, key string, n int) {
	t.Helper()
	for start := time.Now(); b.queued(t, key) < n; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(start), aLongTime)
	}
}

// answered returns the code and the text of an answer.
func answered(t *testing.T, answer *http.Response, err error) (code int, text string) {
	t.Helper()
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

func deleteTable(name string) *dynamodb.DeleteTableInput {
	return &dynamodb.DeleteTableInput{TableName: &name}
}

// listen opens a port of this machine that nobody else has.
func listen(t *testing.T) net.Listener {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}
