package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/holdalltest"
)

type dynamodbFlags struct {
	listen  string
	latency time.Duration
	share   float64
	faults  []string
	seed    uint64
}

// faultNames are the faults that end with their request, and that whoever sends it again is rid of.
var faultNames = []string{"answer-lost", "conflict", "late", "request-lost", "server-error", "server-error-after", "slow", "throttled", "twice"}

func dynamodbCommand(a *app) *cobra.Command {
	var f dynamodbFlags
	cmd := &cobra.Command{
		Use:   "dynamodb",
		Short: "Serve a DynamoDB in memory, with faults, for tests in any language",
		Long: "dynamodb serves a DynamoDB in memory until it is interrupted; then all that was in it is gone. It\n" +
			"is for tests: it checks no signature, so any credentials and any Region do, and whoever reaches it\n" +
			"may do everything. docs/testing.md says what it has of DynamoDB.\n\n" +
			"--share has faults happen to a part of the requests, as drawn by --seed:\n" +
			"  " + strings.Join(faultNames, "\n  ") + "\n\n" +
			"POST /faults has one happen to the next request, or, with op= and n=, to the nth of an operation\n" +
			"from then on. GET /faults says which of these have not happened yet, a line for each.",
		Example: "  holdall dynamodb\n  holdall dynamodb --listen 127.0.0.1:0 --latency 5ms\n  holdall dynamodb --share 0.02 --fault answer-lost --fault throttled\n" +
			"  curl -d fault=answer-lost -d op=TransactWriteItems http://127.0.0.1:8000/faults",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dynamodb(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8000", "`address` and port to serve at; port 0 is any that is free")
	flags.DurationVar(&f.latency, "latency", 0, "`time` that each request takes")
	flags.Float64Var(&f.share, "share", 0, "`part` of the requests to which a fault happens, from 0 to 1")
	flags.StringSliceVar(&f.faults, "fault", nil, "`name` of a fault; may be repeated (default: all)")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` from which faults are drawn")
	_ = cmd.RegisterFlagCompletionFunc("fault", cobra.FixedCompletions(faultNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// happen returns what may happen, or what is wrong with the flags.
func (f dynamodbFlags) happen() (faults []holdalltest.Fault, err error) {
	names := f.faults
	if len(names) == 0 {
		names = faultNames
	}
	for _, name := range names {
		if !slices.Contains(faultNames, name) {
			return nil, fmt.Errorf("--fault: there is no %q; there are: %s", name, strings.Join(faultNames, ", "))
		}
		faults = append(faults, holdalltest.Fault(name))
	}
	switch {
	case !(f.share >= 0 && f.share <= 1): // nor is it NaN
		return nil, fmt.Errorf("--share is %v: it must be from 0 to 1", f.share)
	case f.share == 0 && len(f.faults) > 0:
		return nil, errors.New("--fault needs --share: else none happens")
	case f.latency < 0:
		return nil, fmt.Errorf("--latency is %v: it must not be negative", f.latency)
	}
	return faults, nil
}

func (a *app) dynamodb(ctx context.Context, f dynamodbFlags) error {
	faults, err := f.happen()
	if err != nil {
		return wrongUsage(err)
	}
	db := holdalltest.DynamoDB()
	db.SetLatency(f.latency)
	process := db.Process("client")
	if f.share > 0 {
		process.Some(f.share, f.seed, faults...)
	}
	listener, err := a.serveAt(ctx, f.listen, func(at net.Addr) string { return "http://" + at.String() })
	if err != nil {
		return err
	}
	server := &http.Server{Handler: besides(db, process, f.share > 0), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // what is under way is lost with the tables
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// operations are those on which faults happen.
var operations = []string{
	"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan",
	"TransactGetItems", "TransactWriteItems", "UpdateItem",
}

// reads are those that meet no conflict.
var reads = []string{"BatchGetItem", "GetItem", "Query", "Scan"}

// besides serves the tables, with the faults of a process, and takes orders for such.
func besides(db *holdalltest.DB, p *holdalltest.Process, always bool) http.Handler {
	tables, faulty := db.Handler(), p.Handler()
	all := http.NewServeMux()
	all.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if always || len(p.Planned()) > 0 {
			faulty.ServeHTTP(w, r)
			return
		}
		tables.ServeHTTP(w, r) // a process remembers all that it has sent
	})
	all.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		fault, means, err := ordered(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.Next(means, fault)
	})
	all.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		for _, fault := range p.Planned() {
			_, _ = fmt.Fprintln(w, fault)
		}
	})
	return all
}

// ordered is what an order for a fault asks for, and which request it means.
func ordered(r *http.Request) (fault holdalltest.Fault, means func(holdalltest.Request) bool, err error) {
	if err := r.ParseForm(); err != nil {
		return "", nil, err
	}
	for field := range r.Form {
		if !slices.Contains([]string{"fault", "op", "n"}, field) {
			return "", nil, fmt.Errorf("there is no field %q; there are: fault, op, n", field)
		}
	}
	fault, op, n := holdalltest.Fault(r.FormValue("fault")), r.FormValue("op"), 1
	if !slices.Contains(faultNames, string(fault)) {
		return "", nil, fmt.Errorf("fault: there is no %q; there are: %s", string(fault), strings.Join(faultNames, ", "))
	}
	if op != "" && !slices.Contains(operations, op) {
		return "", nil, fmt.Errorf("op: faults do not happen to %q, but to: %s", op, strings.Join(operations, ", "))
	}
	if fault == "conflict" && slices.Contains(reads, op) {
		return "", nil, fmt.Errorf("op: %s meets no conflict", op)
	}
	if text := r.FormValue("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			return "", nil, fmt.Errorf("n is %q: it must be a whole number from 1", text)
		}
	}
	return fault, func(r holdalltest.Request) bool {
		meant := op == "" && !(fault == "conflict" && slices.Contains(reads, r.Op)) || r.Op == op
		if meant {
			n--
		}
		return meant && n <= 0 // less: another one was ordered for that request, and this one is for the next
	}, nil
}
