package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/engines"
)

// suite is tests that are run.
type suite struct {
	Name  string
	About string
	// Command runs them, and prints what go test -json prints.
	Command []string
}

const module = "github.com/holdall/holdall/integration/"

// suites are what a run consists of.
var suites = []suite{
	{"assumptions", "each assumption of docs/aws.md, and README's tables of what units and lock sets cost", test("aws/assumptions")},
	{"conformance", "expressions, limits and errors of DynamoDB that holdall relies on", test("conformance", "-run", "^TestEngines$")},
	{"protocol", "the promises about lock sets and units", test("protocol")},
}

// test is the command for the tests of a package: afresh, and with room for slow networks.
func test(folder string, more ...string) []string {
	return append([]string{"go", "test", "-json", "-count=1", "-vet=off", "-timeout=2h", module + folder}, more...)
}

func suiteNames() string {
	var names []string
	for _, s := range suites {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// result is what became of a suite.
type result struct {
	Suite    string
	Passed   int
	Failed   []string // tests, those below them first
	Verdicts []verdict
	Took     time.Duration
	Err      error // it did not come to its end, or not at all
}

// verdict is what a case has found out about an assumption.
type verdict struct {
	Case string
	Is   string // confirmed, open or refuted
	Why  string
}

func (r result) ok() bool { return r.Err == nil && len(r.Failed) == 0 }

// run runs a suite through a keeper, and shows what fails. It ends when the context does, and
// leaves no process behind.
func (s suite) run(ctx context.Context, k *keeper, out io.Writer) (r result) {
	r.Suite = s.Name
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) }()
	reader, writer := io.Pipe()
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env = append(os.Environ(),
		engines.ElsewhereEndpoint+"="+k.url, engines.ElsewherePrefix+"="+k.namespace,
		engines.ElsewhereKey+"="+k.key, engines.ElsewhereKind+"="+string(k.to.Kind))
	cmd.Stdout = writer
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read(reader, out)
	}()
	child, err := engines.StartChild(cmd)
	if err != nil {
		_ = writer.Close()
		<-read
		r.Err = err
		return r
	}
	select {
	case <-child.Exited():
	case <-ctx.Done():
		child.Kill()
		r.Err = context.Cause(ctx)
	}
	err = child.Wait()
	_ = writer.Close()
	<-read
	if r.Err == nil && err != nil && len(r.Failed) == 0 {
		r.Err = fmt.Errorf("%w; it wrote:\n%s", err, child.Output())
	}
	return r
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// read takes note of what tests say.
func (r *result) read(from io.Reader, out io.Writer) {
	wrote := map[string]*strings.Builder{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		said := wrote[e.Test]
		if said == nil {
			said = &strings.Builder{}
			wrote[e.Test] = said
		}
		switch e.Action {
		case "output":
			said.WriteString(e.Output)
			if v, is := verdictOf(e); is {
				r.Verdicts = append(r.Verdicts, v)
			}
		case "pass":
			if e.Test != "" {
				r.Passed++
			}
		case "fail":
			if e.Test != "" {
				r.Failed = append(r.Failed, e.Test)
			}
			fmt.Fprint(out, said.String())
		}
	}
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not hold up whoever writes
}

// verdictOf finds what a case says of itself, in a line of its log.
func verdictOf(e event) (v verdict, is bool) {
	_, text, is := strings.Cut(e.Output, "verdict: ")
	if !is {
		return v, false
	}
	v.Is, v.Why, _ = strings.Cut(strings.TrimSpace(text), ": ")
	v.Case, _, _ = strings.Cut(strings.TrimPrefix(e.Test, "TestAssumptions/"), "/")
	return v, true
}
