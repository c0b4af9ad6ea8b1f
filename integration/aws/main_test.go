package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/internal/wire"
)

// What this binary is, started by a test: the program, or one of its suites.
const (
	asProgram = "HOLDALL_TEST_PROGRAM"
	asSuite   = "HOLDALL_TEST_SUITE" // what it does
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		_ = os.Unsetenv(asProgram)
		suites = suites[:1]
		suites[0].Command = []string{os.Args[0]}
		main()
	}
	if does := os.Getenv(asSuite); does != "" {
		os.Exit(suiteThat(does))
	}
	os.Exit(m.Run())
}

// suiteThat is what a suite does with what it was given: it makes a table of its own, and then
// does what it is told.
func suiteThat(does string) int {
	ctx := context.Background()
	db := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(engines.ElsewhereEndpoint)), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv(engines.ElsewhereKey), "x", ""),
	})
	own := os.Getenv(engines.ElsewherePrefix) + "own"
	if err := newtable.Create(ctx, db, newtable.Input(own, "id")); err != nil {
		fmt.Println(err)
		return 3
	}
	say := func(action, output string) {
		fmt.Printf("{\"Action\":%q,\"Test\":\"TestAssumptions/one/here\",\"Output\":%q}\n", action, output)
	}
	code := func(err error) string {
		var api smithy.APIError
		if errors.As(err, &api) {
			return api.ErrorCode()
		}
		return fmt.Sprint(err)
	}
	get := func(table string) error {
		_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}})
		return err
	}
	switch does {
	case "passes":
		say("output", "    x_test.go:1: verdict: confirmed: it is so\n")
		say("pass", "")
	case "fails":
		say("output", "    x_test.go:1: expected 1\n")
		say("output", "    x_test.go:1: verdict: refuted: holdall would break\n")
		say("fail", "")
		return 1
	case "panics":
		panic("in a suite")
	case "waits":
		say("output", "waiting\n")
		time.Sleep(time.Hour)
	case "trespasses":
		say("output", "elsewhere: "+code(get("orders"))+"\n")
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("orders")})
		say("output", "elsewhere: "+code(err)+"\n")
		_, err = db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &own}, func(o *dynamodb.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider("another", "x", "")
		})
		say("output", "by somebody else: "+code(err)+"\n")
		say("fail", "")
		return 1
	case "floods":
		for {
			if err := get(own); err != nil {
				say("output", "flooding: "+code(err)+"\n")
				time.Sleep(time.Hour) // it is ended
			}
		}
	}
	return 0
}

// account is a DynamoDB in AWS's place: it has a table of the caller's.
type account struct {
	*memdynamo.DB
	url string

	before func(operation string) // is called before each request; may be nil

	mu   sync.Mutex
	sent map[string]int // requests by operation
}

func newAccount(t *testing.T) *account {
	a := &account{DB: memdynamo.New(memdynamo.Config{}), sent: map[string]int{}}
	handler := wire.Handler(a.DB)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		a.mu.Lock()
		a.sent[operation]++
		a.mu.Unlock()
		if a.before != nil {
			a.before(operation)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	for _, name := range []string{"orders", "try-orders"} {
		require.NoError(t, newtable.Create(t.Context(), a.DB, newtable.Input(name, "id")))
	}
	return a
}

func (a *account) names(t *testing.T) []string {
	out, err := a.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}

// command runs the program on the account.
func (a *account) command(t *testing.T, verb string, more ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = command(t.Context(), append([]string{verb, "-endpoint", a.url, "-prefix", "try-"}, more...), nil, &out)
	return code, out.String()
}

// beforeFirst has somebody else make a table before the first request of a kind.
func (a *account) beforeFirst(t *testing.T, operation, table string) {
	var once sync.Once
	a.before = func(asked string) {
		if asked == operation {
			once.Do(func() {
				_, err := a.CreateTable(t.Context(), newtable.Input(table, "id"))
				require.NoError(t, err)
			})
		}
	}
}

// theirs are the tables that no run touches.
var theirs = []string{"orders", "try-orders"}

// doing has the one suite of a run do that.
func doing(t *testing.T, does string) {
	t.Setenv(asSuite, does)
	kept := suites
	t.Cleanup(func() { suites = kept })
	program, err := os.Executable()
	require.NoError(t, err)
	suites = []suite{{Name: "assumptions", Command: []string{program}}}
}

// Whatever becomes of the suites, their tables are deleted, and no others; and the exit code
// and the report say what has become of them.
func TestARunLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		does string
		args []string
		code int
		says []string
	}{
		"that passes":      {"passes", nil, exitPassed, []string{"passed: 1 tests passed, 0 failed", "confirmed    one: it is so"}},
		"that fails":       {"fails", nil, exitFailed, []string{"expected 1", "FAILED: 0 tests passed, 1 failed", "refuted      one: holdall would break"}},
		"that panics":      {"panics", nil, exitFailed, []string{"FAILED", "in a suite"}},
		"that trespasses":  {"trespasses", nil, exitFailed, []string{"elsewhere: RefusedByThisRun\nelsewhere: RefusedByThisRun\nby somebody else: RefusedByThisRun\n"}},
		"that sends much":  {"floods", []string{"-requests", "50"}, exitFailed, []string{"the limit of this run is reached", "\n50 requests"}},
		"that uses much":   {"floods", []string{"-units", "30"}, exitFailed, []string{"the limit of this run is reached"}},
		"of nothing known": {"passes", []string{"-only", "conformance"}, exitUsage, []string{`-only="conformance" is none of assumptions`}},
	} {
		t.Run(name, func(t *testing.T) {
			doing(t, c.does)
			a := newAccount(t)
			code, said := a.command(t, "run", c.args...)
			require.Equal(t, c.code, code, "%s", said)
			for _, s := range c.says {
				require.Contains(t, said, s)
			}
			require.Equal(t, theirs, a.names(t))
			if code != exitUsage {
				require.Equal(t, 1, a.sent["CreateTable"])
				require.Contains(t, said, `no table is left whose name begins with "try-holdall-aws-"`)
			}
			require.LessOrEqual(t, a.sent["GetItem"], 50)
		})
	}
}

// A run whose time is over deletes its tables.
func TestARunThatTakesLong(t *testing.T) {
	doing(t, "waits")
	for made, timeout := 0, 300*time.Millisecond; made == 0; timeout *= 2 { // on a busy machine a suite may need more before it has made one
		a := newAccount(t)
		code, said := a.command(t, "run", "-timeout", timeout.String())
		require.Equal(t, exitFailed, code, "%s", said)
		require.Contains(t, said, "the time of this run is over")
		require.Contains(t, said, `no table is left whose name begins with "try-holdall-aws-"`)
		require.Equal(t, theirs, a.names(t))
		made = a.sent["CreateTable"]
	}
}

// A run that is told to end deletes its tables.
func TestARunThatIsToldToEnd(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			program, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(program, "run", "-endpoint", a.url, "-prefix", "try-")
			cmd.Env = append(os.Environ(), asProgram+"=yes", asSuite+"=waits")
			child, err := engines.StartChild(cmd)
			require.NoError(t, err)
			t.Cleanup(child.Kill)
			require.Eventually(t, func() bool { return len(a.names(t)) == 3 }, 20*time.Second, 5*time.Millisecond)
			require.NoError(t, child.Signal(sig))
			err = child.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", child.Output())
			require.Equal(t, exitFailed, exit.ExitCode(), child.Output())
			require.Contains(t, child.Output(), "no table is left")
			require.Equal(t, theirs, a.names(t))
		})
	}
}

// A run whose output nobody reads any more, as that of make aws | tee after Ctrl-C, deletes its tables.
func TestARunThatNobodyHears(t *testing.T) {
	a := newAccount(t)
	program, err := os.Executable()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "run", "-endpoint", a.url, "-prefix", "try-")
	cmd.Env, cmd.Stdout = append(os.Environ(), asProgram+"=yes", asSuite+"=waits"), writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	require.Eventually(t, func() bool { return len(a.names(t)) == 3 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, reader.Close())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, exitFailed, exit.ExitCode())
	require.Equal(t, theirs, a.names(t))
}

// Tables that somebody else has made under the same prefix, while a run goes on or before its owner
// agrees, are left as they are.
func TestTablesOfAnotherRun(t *testing.T) {
	a := newAccount(t)
	a.beforeFirst(t, "DeleteTable", "try-holdall-aws-another")
	doing(t, "passes")
	code, said := a.command(t, "run")
	require.Equal(t, exitFailed, code)
	require.Contains(t, said, `1 tables are there that were made elsewhere meanwhile, such as "try-holdall-aws-another", and are left`)
	require.Equal(t, append([]string{"orders", "try-holdall-aws-another"}, "try-orders"), a.names(t))

	a.beforeFirst(t, "DeleteTable", "try-holdall-aws-third")
	code, _ = a.command(t, "clean")
	require.Equal(t, exitFailed, code)
	require.Equal(t, []string{"orders", "try-holdall-aws-third", "try-orders"}, a.names(t))
}

// A table that is there under a name that a suite asks for is not the run's.
func TestATableThatIsThere(t *testing.T) {
	a := newAccount(t)
	a.beforeFirst(t, "CreateTable", "try-holdall-aws-own")
	doing(t, "passes")
	code, _ := a.command(t, "run")
	require.Equal(t, exitFailed, code)
	require.Equal(t, []string{"orders", "try-holdall-aws-own", "try-orders"}, a.names(t))
}

// Who has told the SDK of another endpoint does not mean AWS.
func TestAnotherEndpoint(t *testing.T) {
	a := newAccount(t)
	none := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_STS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, a.url)
			for _, verb := range []string{"run", "clean"} {
				var out bytes.Buffer
				require.Equal(t, exitUsage, command(t.Context(), []string{verb, "-region", "eu-west-1", "-prefix", "try-", "-consent", "try-"}, nil, &out))
				require.Contains(t, out.String(), "is at "+a.url)
				require.Contains(t, out.String(), "ENDPOINT=URL")
			}
			require.Empty(t, a.sent)
		})
	}
}

// What a run has left that was killed keeps the next one from beginning, and is deleted when its
// owner says so.
func TestWhatAKilledRunLeaves(t *testing.T) {
	doing(t, "passes")
	a := newAccount(t)
	require.NoError(t, newtable.Create(t.Context(), a.DB, newtable.Input("try-holdall-aws-left", "id")))
	code, said := a.command(t, "run")
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, `1 tables are there of another run, such as "try-holdall-aws-left"`)
	require.Contains(t, said, "make aws-clean")
	require.Zero(t, a.sent["CreateTable"])

	for _, want := range []string{"to be deleted:\n  try-holdall-aws-left\n", "no table's name begins with"} {
		code, said = a.command(t, "clean")
		require.Equal(t, exitPassed, code)
		require.Contains(t, said, want)
		require.Equal(t, theirs, a.names(t))
	}
}

// On an account nothing is done before its owner has typed the prefix, or has given it.
func TestConsent(t *testing.T) {
	for name, c := range map[string]struct {
		consent, types string
		agreed         bool
	}{
		"typed":            {"", "try-\n", true},
		"something else":   {"", "yes\n", false},
		"nothing":          {"", "\n", false},
		"nobody is there":  {"", "", false},
		"given":            {"try-", "", true},
		"given, but wrong": {"try", "try-\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			doing(t, "passes")
			a := newAccount(t)
			o := options{Region: "eu-west-1", Prefix: "try-", Consent: c.consent, Requests: 1000, Units: 1e6, WritePrice: writePrice, ReadPrice: readPrice, Timeout: time.Minute}
			of := target{
				Kind: engines.KindAWS, Endpoint: a.url, Region: o.Region, Caller: "123456789012, as somebody",
				Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""),
			}
			var out bytes.Buffer
			code, err := runOn(t.Context(), o, of, strings.NewReader(c.types), &out)
			for _, s := range []string{"123456789012, as somebody", "eu-west-1", `begin with "try-holdall-aws-"`, "1000 at most", "about $0.12, and $0.62 at most", "us-east-1"} {
				require.Contains(t, out.String(), s)
			}
			require.Equal(t, theirs, a.names(t))
			if c.agreed {
				require.NoError(t, err)
				require.Equal(t, exitPassed, code)
				require.Equal(t, 1, a.sent["CreateTable"])
				return
			}
			require.ErrorContains(t, err, "nothing was done")
			require.Equal(t, exitUsage, code)
			require.Equal(t, map[string]int{"ListTables": 1}, a.sent)
		})
	}
	t.Run("told to end", func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		never, _ := io.Pipe()
		require.ErrorContains(t, agree(ended, options{Prefix: "try-"}, never, io.Discard), "nothing was done")
	})
}

// Nobody runs it by accident.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		nil, {"run"}, {"run", "-region", "eu-west-1"}, {"run", "-prefix", "try-"}, {"run", "-region", "r", "-prefix", "ab"},
		{"run", "-region", "r", "-prefix", "a/b"}, {"run", "-region", "r", "-prefix", "try-holdall-aws-"}, {"run", "-region", "r", "-prefix", strings.Repeat("x", 51)},
		{"run", "-region", "r", "-prefix", "try-", "-requests", "0"}, {"run", "-prefix", "try-", "-engine", "aws"}, {"clean"}, {"policy"}, {"run", "-x"},
	} {
		var out bytes.Buffer
		require.Equal(t, exitUsage, command(t.Context(), args, nil, &out), "%v", args)
		require.Contains(t, out.String(), "make aws REGION=eu-west-1 PREFIX=try-", "%v", args)
	}
}
