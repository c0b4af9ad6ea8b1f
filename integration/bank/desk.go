package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/lockset"
)

// kindOverviews are jobs that only read, without locks.
const kindOverviews = "overviews"

// branchDesk is where a branch's jobs come from.
type branchDesk struct {
	*office.Options
	town       *office.Town
	statements bool
	pace       <-chan time.Time // nil: as fast as can be
	diary      *diary.Diary     // nil if none is kept
	usual      numbers          // of jobs of all kinds but a rush's
	rush       numbers          // of those
}

// numbers are those of jobs.
type numbers struct {
	left []int // begun by those before it who died, to be done again
	last int   // that was begun
}

func (n *numbers) next() (next int) {
	if len(n.left) > 0 {
		next, n.left = n.left[0], n.left[1:]
		return next
	}
	n.last++
	return n.last
}

// takeOver opens a diary and finds in it what is to be done again: what has an ID.
// What has none may be done already, and would be done twice.
func (d *branchDesk) takeOver(name string) (err error) {
	lines, err := diary.Read(name)
	if err != nil {
		return err
	}
	of := func(b diary.Began) *numbers {
		if b.Kind == kindRush {
			return &d.rush
		}
		return &d.usual
	}
	for _, l := range lines {
		if l.Began != nil {
			n := of(*l.Began)
			n.last = max(n.last, l.Began.N)
		}
	}
	for _, job := range diary.Unfinished(lines) {
		if job.Once {
			n := of(job)
			n.left = append(n.left, job.N)
		}
	}
	d.diary, err = diary.Open(name)
	return err
}

// next is the next job. The n-th is a function of the branch's name, the seed and n.
func (d *branchDesk) next() (staff.Job, bool) {
	n := d.usual.next()
	job := d.job(n)
	job.Name = fmt.Sprintf("%s/%d", d.Name, n)
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

// job: every eighth reads overviews, every eighth changes one of two accounts and reads the other,
// and with an archive every fourth writes statements.
func (d *branchDesk) job(n int) staff.Job {
	draw := rand.New(rand.NewPCG(d.Seed, uint64(n)))
	switch {
	case n%8 == 2:
		return d.overviews(draw)
	case n%8 == 6:
		return d.pair(n, draw)
	case d.statements && n%8 == 0:
		return d.town.Statements(office.Customer(draw.IntN(d.Customers)))
	case d.statements && n%8 == 4:
		return d.town.Statement(draw.IntN(len(d.town.Accounts)))
	default:
		return d.town.Job(n)
	}
}

// overviewsAtOnce is how many one job reads, one after the other: a month's end is not
// applied for long, and is to meet some.
const overviewsAtOnce = 20

// overviews are of some customers each, most of them of those who are never merged into
// others.
func (d *branchDesk) overviews(draw *rand.Rand) staff.Job {
	all := make([][]string, overviewsAtOnce)
	for i := range all {
		ids := []string{office.Customer(draw.IntN(d.Customers))}
		for range draw.IntN(6) {
			ids = append(ids, office.Customer(2*draw.IntN((d.Customers+1)/2)))
		}
		slices.Sort(ids)
		all[i] = slices.Compact(ids)
	}
	return staff.Job{Kind: kindOverviews, Do: func(ctx context.Context, b *books.Bank) error {
		for _, ids := range all {
			all, err := staff.Overview(ctx, b, ids)
			switch {
			case err == nil && d.diary != nil:
				d.diary.Write(diary.Line{Shown: &diary.Shown{Job: b.Job, Positions: all}})
			case err != nil && !missed(err):
				return err
			}
			staff.Think(ctx, 100*time.Millisecond)
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
