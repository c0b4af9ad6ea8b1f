package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// options are the values of all flags. Each command has some of the flags.
type options struct {
	staff.Config
	quiet bool

	// Of the demo.
	units int
	// Of replay.
	transactions string
	repeat       int
	// Of archive.
	where   string
	ungated bool
}

// Default leases. In memory the lease is so short that takeovers happen in a short run. Elsewhere it is
// so long that holders on a slow engine do not lose their locks.
const (
	memoryLease = 2 * time.Second
	otherLease  = 10 * time.Second
)

func (o *options) flags(command string) *flag.FlagSet {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints the error, once
	fs.StringVar(&o.Endpoint, "endpoint", "", "`URL` of a DynamoDB to work on (default: an engine in this process's memory)")
	fs.BoolVar(&o.AWS, "aws", false, "work on the AWS account of the default credential chain; this costs money")
	fs.StringVar(&o.Prefix, "prefix", "", "`prefix` of the tables' names (default: a random one; recover requires it)")
	fs.DurationVar(&o.Lease, "lease", 0, fmt.Sprintf("`time` for which an owner may be silent before others take over its locks (default %v in memory, else %v)", memoryLease, otherLease))
	fs.StringVar(&o.Record, "record", "", "`file` in which to record events of locks and units, for holdall timeline (default: none)")
	if command == "recover" {
		return fs
	}
	fs.DurationVar(&o.Latency, "latency", time.Millisecond, "`time` that each request to the engine in memory takes")
	fs.BoolVar(&o.Keep, "keep", false, "keep the tables, which are otherwise deleted at the end")
	fs.IntVar(&o.Owners, "owners", 4, "`number` of owners, each of which stands for a host")
	fs.IntVar(&o.Tellers, "tellers", 8, "`number` of tellers, or workers, of each owner")
	fs.BoolVar(&o.Lock, "lock", false, "have every unit take its locks first, even those that usually run without locks until a conflict")
	fs.BoolVar(&o.quiet, "quiet", false, "show no progress")
	if command == "replay" {
		fs.StringVar(&o.transactions, "transactions", "", "`file` of the ledger, semicolon-separated, with the columns "+strings.Join(columns, ", ")+" (required)")
		fs.IntVar(&o.repeat, "repeat", 1, "`number` of times to enter the whole ledger; all but the first change nothing")
		return fs
	}
	fs.IntVar(&o.Customers, "customers", map[string]int{"": 200, "archive": 40}[command], "`number` of customers at the beginning")
	fs.Uint64Var(&o.Seed, "seed", 1, "`number` from which the work is drawn: the same number, the same work")
	if command == "archive" {
		fs.StringVar(&o.where, "archive", "", "`file` of SQLite for the statements (default: SQLite in memory)")
		fs.IntVar(&o.Pauses, "pauses", 4, "`number` of times that an owner is paused while it writes a statement, and overtaken; then the work ends")
		fs.BoolVar(&o.ungated, "unsafe", false, "leave out the archive's gate, to see what goes wrong")
		return fs
	}
	o.Mix = staff.DefaultMix()
	fs.IntVar(&o.units, "units", 6000, "`number` of units of work")
	fs.DurationVar(&o.Churn, "churn", 0, "`time` after which an owner dies or leaves and another takes its place (default: so that each lives for 3 leases; 0: never)")
	fs.BoolVar(&o.Crash, "crash", false, "let owners go at random times, and every other one die within a unit larger than one transaction")
	fs.BoolVar(&o.Unsafe, "unsafe", false, "do the same work without units, by plain reads and writes, to see what goes wrong")
	return fs
}

// parse sets the options from arguments. The error names the first flag that cannot be used.
func (o *options) parse(command string, args []string) (*flag.FlagSet, error) {
	fs := o.flags(command)
	if err := fs.Parse(args); err != nil {
		return fs, err
	}
	if fs.NArg() > 0 {
		return fs, fmt.Errorf("%q is not a flag", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.complete(command, given)
	for _, check := range o.checks(command, given) {
		if check.wrong && fs.Lookup(check.flag) != nil {
			return fs, fmt.Errorf("-%s %s", check.flag, check.reason)
		}
	}
	return fs, nil
}

// complete sets defaults that depend on other flags.
func (o *options) complete(command string, given map[string]bool) {
	if !given["lease"] {
		o.Lease = otherLease
		if o.InMemory() {
			o.Lease = memoryLease
		}
	}
	if !given["prefix"] && command != "recover" {
		o.Prefix = "bank-" + strings.ToLower(rand.Text()[:8]) + "-" // two runs share no tables
	}
	if command == "" && !given["churn"] {
		o.Churn = 3 * o.Lease / time.Duration(max(o.Owners, 1))
	}
	if o.Crash {
		o.Mix[books.KindMonthEnd] = 10 // more large units
	}
}

// check rejects a flag, if the command has it, if it is wrong.
type check struct {
	wrong        bool
	flag, reason string
}

// A table's name has at most 255 characters. The bank's longest is "customers".
var prefixes = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,240}$`)

func (o *options) checks(command string, given map[string]bool) []check {
	lives, owners := o.Churn*time.Duration(o.Owners), 1
	if command == "archive" {
		owners = 2 // one is paused, another takes over
	}
	return []check{
		{o.Endpoint != "" && !isURL(o.Endpoint), "endpoint", "is not a URL such as http://localhost:8000"},
		{command == "recover" && o.InMemory(), "endpoint", "or -aws is required: memory does not outlive its process"},
		{command == "recover" && o.Prefix == "", "prefix", "is required: that of the tables"},
		{!prefixes.MatchString(o.Prefix), "prefix", "may have letters, digits, _, . and -, at most 240"},
		{o.Lease < time.Second, "lease", fmt.Sprintf("must be at least %v", time.Second)},
		{o.Latency < 0 || given["latency"] && !o.InMemory(), "latency", "must not be negative, and is only of the engine in memory"},
		{o.Owners < owners, "owners", fmt.Sprintf("must be at least %d", owners)},
		{o.Tellers < 1, "tellers", "must be at least 1"},
		{o.Customers < 2, "customers", "must be at least 2"},
		{o.units < 1, "units", "must be at least 1"},
		{o.Churn < 0 || o.Churn > 0 && lives < 2*o.Lease, "churn", fmt.Sprintf(
			"is too short: an owner would live for %v, and must live for two leases, %v, to take over what others left", lives, 2*o.Lease)},
		{(o.Crash || o.Lock) && o.Unsafe, "unsafe", "does the work without units, which -crash and -lock are about"},
		{o.Crash && o.Churn == 0, "crash", "needs -churn, by which owners go"},
		{o.transactions == "", "transactions", "is required: the ledger's file"},
		{o.repeat < 1, "repeat", "must be at least 1"},
		{archive.IsURL(o.where), "archive", "takes a file of SQLite"},
		{o.Pauses < 1, "pauses", "must be at least 1"},
	}
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
