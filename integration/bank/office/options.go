package office

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/lockset"
)

// Options are what flags say that several commands have.
type Options struct {
	Where  store.Where
	Prefix string
	Keep   bool
	Name   string // of a branch; empty if there is one bank

	Owners, Tellers    int
	Lease, Churn, Wait time.Duration
	Lock               bool // first, always
	Unsafe             bool // without units
	Quiet, Verbose     bool

	Customers, Accounts int
	Seed                uint64
	Mix                 Mix
	Archive             string
	Record              string // a file
}

// Leases by default: of the embedded engine, so short that takeovers are seen
// in a short run; of others, so long that a slow one does not lose its holders.
const (
	embeddedLease = 2 * time.Second
	otherLease    = 10 * time.Second
)

// PlaceFlags say which DynamoDB it is, and how its locks are held.
func (o *Options) PlaceFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Where.Endpoint, "endpoint", "", "`URL` of a DynamoDB to work on (default: an engine in this process's memory)")
	fs.BoolVar(&o.Where.AWS, "aws", false, "work on the AWS account of the default credential chain; this costs money")
	fs.StringVar(&o.Where.Region, "region", "", "AWS `region` (default: the configured one)")
	fs.DurationVar(&o.Lease, "lease", 0, fmt.Sprintf("`time` for which an owner may be silent before others take over its locks (default %v in memory, else %v)", embeddedLease, otherLease))
	fs.StringVar(&o.Record, "record", "", "`file` to record in what happens to locks and units, for holdall timeline (default: nothing is recorded)")
	fs.BoolVar(&o.Verbose, "v", false, "log what the library logs")
}

// PrefixFlag is for tables that are there.
func (o *Options) PrefixFlag(fs *flag.FlagSet) {
	fs.StringVar(&o.Prefix, "prefix", "", "`prefix` of the tables' names (required)")
}

// StaffFlags are those of commands that make tables and have work done.
func (o *Options) StaffFlags(fs *flag.FlagSet) {
	fs.DurationVar(&o.Where.Latency, "latency", time.Millisecond, "`time` that each request to the engine in memory takes")
	fs.StringVar(&o.Prefix, "prefix", "", "`prefix` of the tables' names (default: a random one)")
	fs.BoolVar(&o.Keep, "keep", false, "keep the tables, which are otherwise deleted at the end")
	fs.IntVar(&o.Owners, "owners", 4, "`number` of owners, each of which stands for a host")
	o.TellersFlag(fs, "`number` of tellers, or workers, of each owner")
	o.WaitFlag(fs)
	o.QuietFlag(fs)
}

// TellersFlag is how many there are of each owner.
func (o *Options) TellersFlag(fs *flag.FlagSet, usage string) {
	fs.IntVar(&o.Tellers, "tellers", 8, usage)
}

// WaitFlag is for those who wait for others' locks.
func (o *Options) WaitFlag(fs *flag.FlagSet) {
	fs.DurationVar(&o.Wait, "wait", 0, "`time` for which a unit waits for others' locks before its teller gives up and puts the job back (default 2 leases)")
}

// LockFlag is for those who change the books.
func (o *Options) LockFlag(fs *flag.FlagSet) {
	fs.BoolVar(&o.Lock, "lock", false, "have every unit take its locks first, even those that usually run without locks until somebody is in the way")
}

// QuietFlag is for those who show progress.
func (o *Options) QuietFlag(fs *flag.FlagSet) {
	fs.BoolVar(&o.Quiet, "quiet", false, "show no progress")
}

// StatementsFlag is for processes that share an archive.
func (o *Options) StatementsFlag(fs *flag.FlagSet) {
	fs.StringVar(&o.Archive, "archive", "", "`file` of SQLite, or postgres://… URL, to which statements are written (default: none are)")
}

// TownFlags say who the customers are.
func (o *Options) TownFlags(fs *flag.FlagSet, customers int) {
	fs.IntVar(&o.Customers, "customers", customers, "`number` of customers at the beginning")
	fs.IntVar(&o.Accounts, "accounts", 2, "`number` of accounts of each")
	fs.Uint64Var(&o.Seed, "seed", 1, "`number` from which the work is drawn: the same one, the same work")
}

// MixFlag says what the customers want.
func (o *Options) MixFlag(fs *flag.FlagSet, usage string) {
	o.Mix = DefaultMix()
	fs.Var(o.Mix, "mix", usage+": `kind=share,...`")
}

// maxAccounts is how many accounts a customer is opened with at most: its row
// lists them, and an item of DynamoDB has 400 KB.
const maxAccounts = 1000

// Complete fills in the defaults that depend on other flags.
func (o *Options) Complete(given Given) {
	if o.Lease == 0 && !given["lease"] {
		o.Lease = otherLease
		if o.Where.Embedded() {
			o.Lease = embeddedLease
		}
	}
	if o.Wait == 0 && !given["wait"] {
		o.Wait = 2 * o.Lease
	}
	o.Where.Connections = o.Owners*o.Tellers + 2*o.Owners // heartbeats too
}

// NewPrefix is for commands that make tables: two runs share none.
func (o *Options) NewPrefix(given Given) {
	if !given["prefix"] {
		o.Prefix = "bank-" + strings.ToLower(rand.Text()[:8]) + "-"
	}
}

// The prefix and the longest name of a table, "customers", are to have 255
// characters at most.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,240}$`)

// CheckPlace checks PlaceFlags, and the prefix.
func (o *Options) CheckPlace() []Check {
	return []Check{
		{o.Where.Endpoint != "" && !isURL(o.Where.Endpoint), "endpoint", "is no URL such as http://localhost:8000"},
		{!prefixes.MatchString(o.Prefix), "prefix", "may have letters, digits, _, . and -, at most 240"},
		{o.Record != "" && !IsDir(filepath.Dir(o.Record)), "record", "names a file in no folder that exists"},
		{o.Lease < lockset.MinLease, "lease", fmt.Sprintf("must be at least %v", lockset.MinLease)},
	}
}

// CheckStaff checks StaffFlags, and the churn.
func (o *Options) CheckStaff(given Given) []Check {
	return []Check{
		{given["latency"] && !o.Where.Embedded(), "latency", "is only of the engine in memory"},
		{o.Where.Latency < 0, "latency", "must not be negative"},
		{o.Owners < 1, "owners", "must be at least 1"},
		{o.Tellers < 1, "tellers", "must be at least 1"},
		{o.Churn < 0, "churn", "must not be negative"},
		{o.Churn > 0 && o.Churn*time.Duration(o.Owners) < 2*o.Lease, "churn", fmt.Sprintf(
			"is too short: an owner would live for %v, and must live for two leases, %v, to take over what others left", o.Churn*time.Duration(o.Owners), 2*o.Lease)},
		{o.Wait < o.Lease, "wait", fmt.Sprintf("must be at least a lease, %v: so long the locks of the dead stay", o.Lease)},
	}
}

// CheckTown checks TownFlags.
func (o *Options) CheckTown() []Check {
	return []Check{
		{o.Customers < 2, "customers", "must be at least 2"},
		{o.Accounts < 1 || o.Accounts > maxAccounts, "accounts", fmt.Sprintf("must be 1 to %d", maxAccounts)},
	}
}

// maxArchivePrefix leaves room for "statements" in the 63 bytes of a name in
// PostgreSQL.
const maxArchivePrefix = 50

// CheckArchive checks where statements are to be written.
func (o *Options) CheckArchive() []Check {
	return []Check{
		{o.Archive != "" && !isArchive(o.Archive), "archive", "names neither a file in a folder that exists nor a postgres:// URL"},
		{len(o.Prefix) > maxArchivePrefix, "prefix", fmt.Sprintf("may have at most %d characters: names in PostgreSQL are short", maxArchivePrefix)},
	}
}

// CheckShared checks PlaceFlags and StatementsFlag of one process of several.
func (o *Options) CheckShared() []Check {
	checks := append(o.CheckPlace(), Check{o.Where.Embedded(), "endpoint", "or -aws is required: what one process has in memory no other sees"})
	if o.Archive == "" {
		return checks
	}
	return append(checks, o.CheckArchive()...)
}

func isArchive(where string) bool {
	return archive.IsURL(where) || !strings.Contains(where, "://") && IsDir(filepath.Dir(where))
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// IsDir reports whether there is a folder of this name.
func IsDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// logger is what the library logs to: nil discards it.
func (o *Options) logger(w io.Writer) *slog.Logger {
	if !o.Verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
