// Package chaos runs the example bank as several processes while the operating system
// kills and stops them, their engine is killed and restarted, and the network between
// loses, delays and repeats requests. Then it audits the books, the archive, and what
// every process was told. It runs on the machine's clock: the seed determines what goes
// wrong, but not exactly when.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/record"
)

// Day configures a period of work, and what goes wrong meanwhile.
type Day struct {
	Dir     string // of diaries and recordings
	Archive string // of statements
	Engine  *engines.Server
	Prefix  string // of the tables, and of those of the archive

	Seed     uint64
	Lease    time.Duration
	Branches int
	Tellers  int
	Think    time.Duration // of a teller, between reading and writing, at most
	Rush     int           // more tellers, who pay between the same accounts at the same moments
	Every    time.Duration // from one such moment to the next
	Rate     float64       // units a second of each branch; 0: as many as can be
	Shares   []share
	Pace     time.Duration // between two rounds, on average
	// Steady is the number of branches, from the first, that are not killed.
	Steady int
}

// day is a Day that has begun.
type day struct {
	Day
	net      *network
	mishaps  *record.Recording // beside what the branches record themselves
	branches []*branch
	auditor  *line // has good weather
	plan     *plan

	under  sync.WaitGroup // mishaps that have an end
	engine sync.Mutex     // held while the engine is being restarted
	stormy atomic.Bool

	over chan struct{} // closed when the rounds are
	calm time.Time     // since when nothing goes wrong any more

	mu       sync.Mutex
	happened map[mishap]int
	// groupsKilled is how many commits of groups were under way when their process was killed.
	groupsKilled int
	errs         []error
}

// locksFirst: every third branch takes all its locks first. The others run units without locks
// where they can.
const locksFirst = 3

func open(ctx context.Context, d Day) (*day, error) {
	o := &day{
		Day: d, net: newNetwork(d.Engine.Endpoint), happened: map[mishap]int{}, over: make(chan struct{}),
		plan: &plan{shares: d.Shares, branches: d.Branches, lease: d.Lease, pace: d.Pace, draws: rand.New(rand.NewPCG(d.Seed, 0))},
	}
	var err error
	if o.mishaps, err = record.Open(recordingOf(d.Dir, "mishaps"), record.Options{}); err != nil {
		return nil, err
	}
	if o.auditor, err = newLine(o.net, weather{}, d.Seed, 1000); err != nil {
		return nil, err
	}
	if err := o.openBank(ctx); err != nil {
		return nil, err
	}
	for i := range d.Branches {
		name := "b" + strconv.Itoa(i)
		l, err := newLine(o.net, usual(d.Lease), d.Seed, uint64(i))
		if err != nil {
			return nil, err
		}
		p := process{
			Name: name, Prefix: d.Prefix, Archive: d.Archive, Diary: diaryOf(d.Dir, name), Record: recordingOf(d.Dir, name),
			Seed: d.Seed, Lease: d.Lease, Tellers: d.Tellers, Think: d.Think, Rate: d.Rate,
			Lock: i%locksFirst == locksFirst-1, Every: time.Second,
		}
		if !p.Lock && d.Rush > 0 { // units under locks are in no groups
			p.Rush, p.Every = d.Rush, d.Every
		}
		b := &branch{process: p, line: l, mishaps: o.mishaps}
		o.branches = append(o.branches, b)
		if err := b.start(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// bank returns the configuration of a process without branches, whose connection has no faults.
func (d *day) bank(lease time.Duration) *staff.Config {
	return &staff.Config{
		Endpoint: d.auditor.URL(), Prefix: d.Prefix, Keep: true, Customers: customers, Owners: 4, Tellers: 4, Lease: lease,
	}
}

// openBank creates the tables and the archive, and opens the customers.
func (d *day) openBank(ctx context.Context) error {
	to, err := archive.Open(ctx, archive.Config{Where: d.Archive, Prefix: d.Prefix, Keep: true})
	if err != nil {
		return err
	}
	cfg := d.bank(d.Lease)
	s, err := staff.Open(ctx, cfg)
	if err == nil {
		err = s.OpenCustomers(ctx, staff.NewCustomers(cfg))
	}
	return errors.Join(err, to.Close(ctx))
}

// round makes one thing go wrong. It ends by itself, while the next rounds begin.
func (d *day) round(ctx context.Context) {
	r := d.plan.next()
	b := d.branches[r.branch]
	do := map[mishap]func() error{
		killBranch:    func() error { return d.replace(b, r.length) },
		killGroup:     func() error { return d.ambush(b, r.length) },
		stopBranch:    func() error { return b.freeze(r.length) },
		stopShortly:   func() error { return b.freeze(r.length) },
		killEngine:    func() error { return d.restartEngine(ctx, r.length) },
		storms:        func() error { return d.storm(r.of, r.length) },
		partition:     func() error { return d.cutOff(b, r.length) },
		recoverWorker: func() error { return d.recover(ctx) },
	}[r.mishap]
	kills := r.mishap == killBranch || r.mishap == killGroup
	ofBranch := kills || r.mishap == stopBranch || r.mishap == stopShortly
	if kills && r.branch < d.Steady || r.mishap == killGroup && d.Rush == 0 || ofBranch && !b.round.TryLock() {
		return // another round has claimed the branch
	}
	d.mu.Lock()
	d.happened[r.mishap]++
	d.mu.Unlock()
	d.under.Go(func() {
		if ofBranch {
			defer b.round.Unlock()
		}
		if err := do(); err != nil {
			d.fail(fmt.Errorf("%s: %w", r.mishap, err))
		}
	})
	time.Sleep(r.pause)
}

// had returns the number of rounds so far.
func (d *day) had() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sum(d.happened)
}

func (d *day) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
}

func (d *day) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errs...)
}

// replace kills a branch, and starts its successor.
func (d *day) replace(b *branch, after time.Duration) error {
	if !b.child.Alive() {
		return fmt.Errorf("%s has ended by itself: %w; it wrote:\n%s", b.Name, b.child.Wait(), b.child.Output())
	}
	b.kill()
	time.Sleep(after)
	return b.start()
}

// ambush replaces a branch when it commits a group, or when the rounds are over.
func (d *day) ambush(b *branch, after time.Duration) error {
	if d.meetGroup(b, nil) {
		d.mu.Lock()
		d.groupsKilled++
		d.mu.Unlock()
	}
	return d.replace(b, after)
}

// meetGroup waits until a branch commits a group, and holds that commit. It returns false if the
// branch does not commit one in time, or before the rounds are over.
func (d *day) meetGroup(b *branch, late <-chan time.Time) bool {
	if b.Rush == 0 {
		return false
	}
	select {
	case <-b.line.nextGroup():
		return true
	case <-late:
	case <-d.over:
	}
	b.line.noGroup()
	return false
}

func (d *day) restartEngine(ctx context.Context, after time.Duration) error {
	d.engine.Lock()
	defer d.engine.Unlock()
	d.net.setDown(true)
	d.Engine.Kill()
	d.mishaps.Note("engine", "killed")
	time.Sleep(after)
	if err := d.Engine.Restart(ctx); err != nil {
		return err
	}
	d.net.setDown(false)
	d.mishaps.Note("engine", "back")
	d.net.copyRecent(time.Duration((1 + rand.Float64()) * float64(d.Lease)))
	return nil
}

func (d *day) storm(of fate, length time.Duration) error {
	if !d.stormy.CompareAndSwap(false, true) {
		return nil // there is one
	}
	for _, b := range d.branches {
		b.line.setWeather(storm(of, d.Lease))
	}
	time.Sleep(length)
	for _, b := range d.branches {
		b.line.setWeather(usual(d.Lease))
	}
	d.stormy.Store(false)
	return nil
}

// cutOff cuts a branch off, if possible while it commits a group, so that it gets no answer.
func (d *day) cutOff(b *branch, length time.Duration) error {
	d.meetGroup(b, time.After(10*d.Every))
	d.mishaps.Note(b.Name, "cut off")
	b.line.setCut(true)
	time.Sleep(length)
	b.line.setCut(false)
	d.mishaps.Note(b.Name, "joined again")
	return nil
}

// recover runs beside the work. It may fail only if the engine was killed meanwhile.
func (d *day) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	restarts, down := d.net.restarts(), d.net.isDown()
	s, err := staff.Join(ctx, d.bank(d.Lease))
	if err == nil {
		_, err = s.Recover(ctx)
	}
	if err != nil && !down && d.net.restarts() == restarts {
		return err
	}
	return nil
}

// patience limits the time in which branches end their work. A unit of all customers waits for
// each dead owner in turn.
func patience(lease time.Duration) time.Duration { return time.Minute + 10*lease }

// close ends the mishaps and, after a calm lease, the work, and waits for all late requests.
func (d *day) close(patience time.Duration) error {
	close(d.over)
	d.under.Wait()
	for _, b := range d.branches {
		b.line.setWeather(weather{})
	}
	d.calm = time.Now()
	time.Sleep(d.Lease)
	ends := make(chan error, len(d.branches))
	for _, b := range d.branches {
		go func() { ends <- b.end(patience) }()
	}
	errs := []error{d.failed()}
	for range d.branches {
		errs = append(errs, <-ends)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, b := range d.branches {
		errs = append(errs, b.line.drain(ctx))
	}
	d.net.late.Wait()
	return errors.Join(append(errs, d.mishaps.Close())...)
}

// audit finishes what dead branches left, and checks the books, the archive and the diaries. It has a
// long lease: on a busy machine a short one would end while it holds all locks.
func (d *day) audit(ctx context.Context) ([]books.Result, error) {
	s, err := staff.Join(ctx, d.bank(5*d.Lease))
	if err != nil {
		return nil, err
	}
	if _, err := s.Recover(ctx); err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	keys := staff.NewCustomers(d.bank(0)).Keys()
	for _, id := range pairAccounts {
		keys = append(keys, books.AccountKey(books.Child{ID: id}))
	}
	records, err := s.Load(ctx, keys)
	if err != nil {
		return nil, err
	}
	from, err := archive.Open(ctx, archive.Config{Where: d.Archive, Prefix: d.Prefix, Exists: true})
	if err != nil {
		return nil, err
	}
	statements, err := from.Load(ctx)
	if err := errors.Join(err, from.Close(ctx)); err != nil {
		return nil, err
	}
	heard, err := hear(diaryOf(d.Dir, "*"))
	if err != nil {
		return nil, err
	}
	return slices.Concat(books.Audit(records), archive.Audit(statements, records), heard.check(records, statements)), nil
}

// inLines returns the results of an audit, one on each line, with the first findings.
func inLines(results []books.Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%8d %s\n", len(r.Findings), r.Count)
		for _, f := range r.Findings[:min(3, len(r.Findings))] {
			fmt.Fprintf(&b, "           %s\n", f)
		}
	}
	return b.String()
}

// quit ends all processes and connections that are left.
func (d *day) quit() {
	for _, b := range d.branches {
		if b.child != nil {
			b.child.Kill()
		}
		b.line.close()
	}
	d.auditor.close()
	_ = d.mishaps.Close() // close has returned its errors
}
