package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/archive"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/diary"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/examples/bank/internal/store"
	"github.com/holdall/holdall/lockset"
)

// The bank as several processes: one opens it, any number of branches work on it,
// one audits it. Each of them may be killed; all that they share are the tables.

// opening makes the tables, that of the archive too, and opens the customers. An
// archive stays only if there are books for it.
func opening(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	o.keep = true
	if o.archive != "" {
		arch, err := archive.Open(ctx, archive.Config{Where: o.archive, Prefix: o.prefix})
		if err != nil {
			return false, err
		}
		defer func() {
			if sound {
				arch.Keep()
			}
			err = errors.Join(err, arch.Close(context.WithoutCancel(ctx)))
		}()
	}
	of, err := open(ctx, o, stderr)
	if err != nil {
		return false, err
	}
	if err := of.openTown(ctx, newTown(o), stdout); err != nil {
		return false, err
	}
	say(stdout, "opened %d customers in the tables %s*\n", o.customers, o.prefix)
	return true, nil
}

// join connects to tables that are there.
func join(ctx context.Context, o *options, stderr io.Writer) (*office, *town, error) {
	db, err := store.Open(ctx, o.where)
	if err != nil {
		return nil, nil, err
	}
	of := &office{o: o, db: db, tables: store.Under(db, o.prefix), stderr: stderr}
	of.tables.Locks.Lease = o.lease
	of.tables.Locks.Logger = o.logger(stderr)
	customers, err := of.customers(ctx)
	if err != nil {
		return nil, nil, err
	}
	return of, townOf(o, customers), nil
}

// customers asks until there is an answer: a process may be started while DynamoDB
// is out of reach.
func (of *office) customers(ctx context.Context) ([]books.Customer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, of.o.lease) // an answer may never come
		customers, err := of.tables.Customers(attempt)
		cancel()
		if !errors.Is(err, books.ErrUnanswered) || ctx.Err() != nil {
			return customers, err
		}
		select {
		case <-time.After(of.o.lease / 10):
		case <-ctx.Done():
		}
	}
}

// townOf is who the customers are, as their table has them.
func townOf(o *options, customers []books.Customer) *town {
	t := &town{o: o}
	o.customers = len(customers)
	for _, c := range customers {
		t.accounts = append(t.accounts, c.Accounts...) // a merge moves them: all are somebody's
	}
	slices.SortFunc(t.accounts, func(a, b books.Child) int { return strings.Compare(a.ID, b.ID) })
	return t
}

// branch is one owner, which works on tables that others work on, too. With a
// diary, whoever comes after it under its name does again what it had begun.
func branch(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	of, town, err := join(ctx, o, stderr)
	switch {
	case ctx.Err() != nil:
		say(stderr, "%s: told to end before the work began\n", o.name)
		return true, nil
	case err != nil:
		return false, err
	}
	var arch *archive.Archive
	if o.archive != "" {
		if arch, err = archive.Open(ctx, archive.Config{Where: o.archive, Prefix: o.prefix, Made: true}); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, arch.Close(context.WithoutCancel(ctx))) }()
	}
	desk := &branchDesk{town: town, statements: arch != nil}
	if o.rate > 0 {
		pace := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
		defer pace.Stop()
		desk.pace = pace.C
	}
	if o.diary != "" {
		if err := desk.takeOver(o.diary); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, desk.diary.Close()) }()
	}
	working := ctx
	if o.duration > 0 {
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	tally, took, err := of.work(working, o.name, 0, 0, desk.next, func(cfg *staff.Config) {
		cfg.Owners, cfg.Locks.Owner, cfg.Think = 1, o.name, o.think
		if arch != nil {
			cfg.Archive = arch
		}
		if desk.diary != nil {
			cfg.Acquired, cfg.Lost = desk.diary.Acquired, desk.diary.Lost
			cfg.Watch = desk.vitals
		}
	})
	if err != nil {
		return false, err
	}
	say(stdout, "%s: %d units in %.1f s (%.0f/s) on %v\n\n", o.name, tally.Over.Load(), took.Seconds(), perSecond(tally.Over.Load(), took), o.where)
	reportUnits(stdout, tally, "done")
	reportRequests(stdout, tally)
	reportLarge(stdout, tally)
	reportWaiting(stdout, tally)
	reportEvents(stdout, tally)
	reportFailures(stdout, tally.Unexpected)
	return len(tally.Unexpected) == 0, nil
}

// branchDesk is where a branch's jobs come from.
type branchDesk struct {
	town       *town
	statements bool
	pace       <-chan time.Time // nil: as fast as can be
	diary      *diary.Diary     // nil if none is kept
	left       []int            // begun by those before it who died, to be done again
	n          int              // the last that was begun
}

// takeOver opens a diary and finds in it what is to be done again: what has an ID.
// What has none may be done already, and would be done twice.
func (d *branchDesk) takeOver(name string) (err error) {
	lines, err := diary.Read(name)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Began != nil {
			d.n = max(d.n, l.Began.N)
		}
	}
	for _, job := range diary.Unfinished(lines) {
		if job.Once {
			d.left = append(d.left, job.N)
		}
	}
	d.diary, err = diary.Open(name)
	return err
}

// next is the next job. The n-th is a function of the branch's name, the seed and n.
func (d *branchDesk) next() (staff.Job, bool) {
	var n int
	if len(d.left) > 0 {
		n, d.left = d.left[0], d.left[1:]
	} else {
		d.n++
		n = d.n
	}
	job := d.job(n)
	job.Name = fmt.Sprintf("%s/%d", d.town.o.name, n)
	if d.diary != nil {
		job = d.diary.Follow(n, job)
	}
	if d.pace == nil {
		return job, true
	}
	do := job.Do
	job.Do = func(ctx context.Context, b *books.Bank) error {
		select {
		case <-d.pace:
		case <-ctx.Done():
		}
		return do(ctx, b)
	}
	return job, true
}

// job: every eighth reads overviews, and with an archive every fourth writes statements.
func (d *branchDesk) job(n int) staff.Job {
	draw := rand.New(rand.NewPCG(d.town.o.seed, uint64(n)))
	switch {
	case n%8 == 2:
		return d.town.overviews(draw)
	case d.statements && n%8 == 0:
		return d.town.statements(customer(draw.IntN(d.town.o.customers)))
	case d.statements && n%8 == 4:
		return d.town.statement(draw.IntN(len(d.town.accounts)))
	default:
		return d.town.job(n)
	}
}

// overviewsAtOnce is how many one job reads, one after the other: a month's end is not
// applied for long, and is to meet some.
const overviewsAtOnce = 20

// overviews are of some customers each, most of them of those who are never merged into
// others.
func (t *town) overviews(draw *rand.Rand) staff.Job {
	all := make([][]string, overviewsAtOnce)
	for i := range all {
		ids := []string{customer(draw.IntN(t.o.customers))}
		for range draw.IntN(6) {
			ids = append(ids, customer(2*draw.IntN((t.o.customers+1)/2)))
		}
		slices.Sort(ids)
		all[i] = slices.Compact(ids)
	}
	return staff.Job{Kind: kindOverviews, Do: func(ctx context.Context, b *books.Bank) error {
		for _, ids := range all {
			if err := b.Overview(ctx, ids); err != nil && !missed(err) {
				return err
			}
			books.Think(ctx, 100*time.Millisecond)
		}
		return nil
	}}
}

// missed reports whether an overview could not be had this time. There is another one.
func missed(err error) bool {
	for _, why := range []error{books.ErrMerged, books.ErrChanged, books.ErrUnanswered} {
		if errors.Is(err, why) {
			return true
		}
	}
	return errors.As(err, new(*lockset.NoAnswerError))
}

// vitalsEvery is how often a diary says how the process is.
const vitalsEvery = 5 * time.Second

// vitals writes down how the process is, now and then, until the function that it
// returns is called, and once more then.
func (d *branchDesk) vitals(t *staff.Tally) (stop func()) {
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(vitalsEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.diary.Write(diary.Line{Vitals: vitals(t)})
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		ended.Wait()
		d.diary.Write(diary.Line{Vitals: vitals(t)})
	}
}

func vitals(t *staff.Tally) *diary.Vitals {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(samples)
	sent, capacity := t.Sent()
	return &diary.Vitals{
		Heap: samples[0].Value.Uint64(), Goroutines: samples[1].Value.Uint64(),
		Jobs: t.Over.Load(), Requests: sent, Capacity: capacity,
	}
}
