package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/archive"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/store"
	"github.com/holdall/holdall/lockset"
)

// options are what the flags say.
type options struct {
	where  store.Where
	prefix string
	keep   bool

	owners, tellers    int
	lease, churn, wait time.Duration
	quiet, verbose     bool

	// The demo's.
	customers, accounts int
	units               int
	duration            time.Duration
	seed                uint64
	mix                 mix
	unsafe, crash       bool

	// The archive's, besides the customers and the seed.
	archive   string
	pauses    int
	unguarded bool

	// The replay's.
	transactions, balances string
	repeat                 int
	skipBad                bool

	branchOptions
}

// Leases by default: of the embedded engine, so short that takeovers are seen
// in a short run; of others, so long that a slow one does not lose its holders.
const (
	embeddedLease = 2 * time.Second
	otherLease    = 10 * time.Second
)

const usage = `Usage:

  bank [flags]           a bank at work: owners come and go, then its books are audited
  bank replay [flags]    enter a ledger from a file, each row once
  bank recover [flags]   finish or abort the large units that dead owners left in tables
  bank archive [flags]   write statements to SQL, by owners that are paused and overtaken meanwhile

  bank open [flags]      make a bank on which several processes work
  bank branch [flags]    be one of these processes, until it is told to end, or killed
  bank audit [flags]     finish what dead branches left, and audit what they have done

The exit code is 0 if all went well and the audit holds, 1 if not, 2 if the call is wrong.
The report goes to stdout, progress to stderr.

`

// names are those of the commands, as they are called.
var names = map[string]string{"bank": "bank", "replay": "bank replay", "recover": "bank recover", "archive": "bank archive",
	"open": "bank open", "branch": "bank branch", "audit": "bank audit"}

// parse reads the flags of a command. It prints help to out.
func parse(command string, args []string, out io.Writer) (*options, error) {
	o := &options{mix: defaultMix()}
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints the error, once
	o.common(fs)
	switch command {
	case "replay":
		o.forStaff(fs)
		o.forReplay(fs)
	case "recover":
		o.thesePrefix(fs)
	case "archive":
		o.forStaff(fs)
		o.forTown(fs, 40)
		o.forArchive(fs)
	case "open":
		o.forOpening(fs)
	case "branch":
		o.forBranch(fs)
	case "audit":
		o.forAuditing(fs)
	default:
		o.forStaff(fs)
		o.forTown(fs, 200)
		o.forDemo(fs)
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			say(out, "%sFlags of %s:\n\n", usage, names[command])
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: only flags are expected here", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.complete(command, given)
	if err := o.check(command, given); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *options) common(fs *flag.FlagSet) {
	fs.StringVar(&o.where.Endpoint, "endpoint", "", "`URL` of a DynamoDB to work on (default: an engine in this process's memory)")
	fs.BoolVar(&o.where.AWS, "aws", false, "work on the AWS account of the default credential chain; this costs money")
	fs.StringVar(&o.where.Region, "region", "", "AWS `region` (default: the configured one)")
	fs.DurationVar(&o.lease, "lease", 0, fmt.Sprintf("`time` for which an owner may be silent before others take over its locks (default %v in memory, else %v)", embeddedLease, otherLease))
	fs.BoolVar(&o.verbose, "v", false, "log what the library logs")
}

// forStaff are the flags of commands that make tables and have work done.
func (o *options) forStaff(fs *flag.FlagSet) {
	fs.DurationVar(&o.where.Latency, "latency", time.Millisecond, "`time` that each request to the engine in memory takes")
	fs.StringVar(&o.prefix, "prefix", "", "`prefix` of the tables' names (default: a random one)")
	fs.BoolVar(&o.keep, "keep", false, "keep the tables, which are otherwise deleted at the end")
	fs.IntVar(&o.owners, "owners", 4, "`number` of owners, each of which stands for a host")
	fs.IntVar(&o.tellers, "tellers", 8, "`number` of tellers, or workers, of each owner")
	fs.DurationVar(&o.wait, "wait", 0, "`time` for which a unit waits for others' locks before its teller gives up and puts the job back (default 2 leases)")
	fs.BoolVar(&o.quiet, "quiet", false, "show no progress")
}

func (o *options) forTown(fs *flag.FlagSet, customers int) {
	fs.IntVar(&o.customers, "customers", customers, "`number` of customers at the beginning")
	fs.IntVar(&o.accounts, "accounts", 2, "`number` of accounts of each")
	fs.Uint64Var(&o.seed, "seed", 1, "`number` from which the work is drawn: the same one, the same work")
}

func (o *options) forArchive(fs *flag.FlagSet) {
	fs.StringVar(&o.archive, "archive", "", "`file` of SQLite, or postgres://… URL, to write statements to (default: a file in a temporary folder)")
	fs.IntVar(&o.pauses, "pauses", 4, "`number` of times that an owner is paused while it writes a statement, and overtaken; then the work ends")
	fs.BoolVar(&o.unguarded, "unsafe", false, "leave out the archive's guard, to see what goes wrong")
}

func (o *options) forDemo(fs *flag.FlagSet) {
	fs.IntVar(&o.units, "units", 6000, "`number` of units of work")
	fs.DurationVar(&o.duration, "for", 0, "begin no new unit after this `time` (then -units has no default)")
	fs.Var(o.mix, "mix", "what work there is: `kind=share,...`")
	fs.DurationVar(&o.churn, "churn", 0, "`time` after which an owner dies or leaves and another takes its place (default so that each lives for 3 leases; 0: never)")
	fs.BoolVar(&o.crash, "crash", false, "let owners go at random instants, and every other one die in the midst of a unit larger than one transaction")
	fs.BoolVar(&o.unsafe, "unsafe", false, "do the same work without locks, to see what goes wrong")
}

func (o *options) forReplay(fs *flag.FlagSet) {
	fs.StringVar(&o.transactions, "transactions", "", "`file` of the ledger, semicolon-separated, with the columns trans_id, account_id, date, type, operation, amount, balance, k_symbol, bank, account (required)")
	fs.StringVar(&o.balances, "balances", "", "`file` to write all balances to, as account,balance in hundredths")
	fs.IntVar(&o.repeat, "repeat", 1, "`number` of times to enter the whole ledger; all but the first change nothing")
	fs.BoolVar(&o.skipBad, "skip-bad", false, "leave out malformed rows instead of stopping at them")
	fs.DurationVar(&o.churn, "churn", 0, "`time` after which an owner dies or leaves and another takes its place; 0: never")
}

// maxAccounts is how many accounts a customer is opened with at most: its row
// lists them, and an item of DynamoDB has 400 KB.
const maxAccounts = 1000

// complete fills in the defaults that depend on other flags.
func (o *options) complete(command string, given map[string]bool) {
	if o.lease == 0 && !given["lease"] {
		o.lease = otherLease
		if o.where.Embedded() {
			o.lease = embeddedLease
		}
	}
	if o.wait == 0 && !given["wait"] {
		o.wait = 2 * o.lease
	}
	if !given["churn"] && command == "bank" {
		o.churn = 3 * o.lease / time.Duration(max(o.owners, 1))
	}
	if given["for"] && !given["units"] {
		o.units = 0 // no bound
	}
	if o.crash && !given["mix"] {
		o.mix[books.KindMonthEnd] = 3 // more to die at
	}
	if command == "branch" {
		o.seedOfBranch()
	}
	if !given["prefix"] && slices.Contains([]string{"bank", "replay", "archive", "open"}, command) {
		o.prefix = "bank-" + strings.ToLower(rand.Text()[:8]) + "-"
	}
	o.where.Connections = o.owners*o.tellers + 2*o.owners // heartbeats too
}

// The prefix and the longest name of a table, "customers", are to have 255
// characters at most.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,240}$`)

// check returns an error that names the first flag that cannot be used.
func (o *options) check(command string, given map[string]bool) error {
	checks := []flagCheck{
		{o.where.Endpoint != "" && !isURL(o.where.Endpoint), "endpoint", "is no URL such as http://localhost:8000"},
		{!prefixes.MatchString(o.prefix), "prefix", "may have letters, digits, _, . and -, at most 240"},
		{o.lease < lockset.MinLease, "lease", fmt.Sprintf("must be at least %v", lockset.MinLease)},
	}
	switch command {
	case "replay":
		checks = slices.Concat(checks, o.checkStaff(given), o.checkReplay())
	case "recover":
		checks = append(checks,
			flagCheck{o.where.Embedded(), "endpoint", "or -aws is required: what was in memory is gone"},
			flagCheck{o.prefix == "", "prefix", "is required: that of the tables"})
	case "archive":
		checks = slices.Concat(checks, o.checkStaff(given), o.checkTown(), o.checkArchive())
	case "open", "branch", "audit":
		checks = append(checks, o.checkBranches(command, given)...)
	default:
		checks = slices.Concat(checks, o.checkStaff(given), o.checkTown(), o.checkDemo(given))
	}
	for _, c := range checks {
		if c.wrong {
			return fmt.Errorf("-%s %s", c.flag, c.reason)
		}
	}
	return nil
}

func (o *options) checkStaff(given map[string]bool) []flagCheck {
	return []flagCheck{
		{given["latency"] && !o.where.Embedded(), "latency", "is only of the engine in memory"},
		{o.where.Latency < 0, "latency", "must not be negative"},
		{o.owners < 1, "owners", "must be at least 1"},
		{o.tellers < 1, "tellers", "must be at least 1"},
		{o.churn < 0, "churn", "must not be negative"},
		{o.churn > 0 && o.churn*time.Duration(o.owners) < 2*o.lease, "churn", fmt.Sprintf(
			"is too short: an owner would live for %v, and must live for two leases, %v, to take over what others left", o.churn*time.Duration(o.owners), 2*o.lease)},
		{o.wait < o.lease, "wait", fmt.Sprintf("must be at least a lease, %v: so long the locks of the dead stay", o.lease)},
	}
}

func (o *options) checkReplay() []flagCheck {
	return []flagCheck{
		{o.transactions == "", "transactions", "is required: the ledger's file"},
		{o.balances != "" && !isDir(filepath.Dir(o.balances)), "balances", "names a file in no folder that exists"},
		{o.repeat < 1, "repeat", "must be at least 1"},
	}
}

func (o *options) checkTown() []flagCheck {
	return []flagCheck{
		{o.customers < 2, "customers", "must be at least 2"},
		{o.accounts < 1 || o.accounts > maxAccounts, "accounts", fmt.Sprintf("must be 1 to %d", maxAccounts)},
	}
}

func (o *options) checkArchive() []flagCheck {
	return []flagCheck{
		{o.owners < 2, "owners", "must be at least 2: one is paused, another takes over"},
		{o.pauses < 1, "pauses", "must be at least 1"},
		{o.archive != "" && !isArchive(o.archive), "archive",
			"names neither a file in a folder that exists nor a postgres:// URL"},
		{len(o.prefix) > maxArchivePrefix, "prefix", fmt.Sprintf("may have at most %d characters: names in PostgreSQL are short", maxArchivePrefix)},
	}
}

func isArchive(where string) bool {
	return archive.IsURL(where) || !strings.Contains(where, "://") && isDir(filepath.Dir(where))
}

// maxArchivePrefix leaves room for "statements" in the 63 bytes of a name in
// PostgreSQL.
const maxArchivePrefix = 50

func (o *options) checkDemo(given map[string]bool) []flagCheck {
	return []flagCheck{
		{given["units"] && o.units < 1, "units", "must be at least 1"},
		{given["for"] && o.duration <= 0, "for", "must be more than 0"},
		{o.crash && o.unsafe, "crash", "is about units, and with -unsafe there are none"},
		{o.crash && o.churn == 0, "crash", "needs -churn, by which owners go"},
	}
}

type flagCheck struct {
	wrong        bool
	flag, reason string
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// mix is the share of each kind of work. It is a flag.Value.
type mix map[string]int

func defaultMix() mix {
	return mix{books.KindPayment: 1600, books.KindMove: 200, books.KindInterest: 179, books.KindMerge: 20, books.KindMonthEnd: 1}
}

func (m mix) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s=%d", kind, m[kind]))
	}
	return strings.Join(parts, ",")
}

// Set takes kind=share pairs. Kinds that are not named have no share.
func (m mix) Set(s string) error {
	known := defaultMix()
	clear(m)
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		kind, share, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(share)
		if _, ok := known[kind]; !ok || err != nil || n < 0 || n > 1_000_000 {
			return fmt.Errorf("%q is not one of %v with its share, such as payment=80", part, slices.Sorted(maps.Keys(known)))
		}
		m[kind] = n
		total += n
	}
	if total == 0 {
		return errors.New("no kind has a share")
	}
	return nil
}

// pick returns the kind of which a number drawn from [0, total) is.
func (m mix) pick(draw func(total int) int) string {
	total := 0
	for _, share := range m {
		total += share
	}
	n := draw(total)
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if n -= m[kind]; n < 0 {
			return kind
		}
	}
	return books.KindPayment
}

// logger is what the library logs to: nil discards it.
func (o *options) logger(w io.Writer) *slog.Logger {
	if !o.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
