package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", for archives

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// processEnv has the process of a branch as JSON, for a test binary that is started as a branch.
const processEnv = "HOLDALL_CHAOS_PROCESS"

// process is one process of a branch: one owner of the example bank, on tables that it shares with
// other branches. It works until SIGTERM. A successor of the same name finds its diary and repeats
// the jobs with an ID that were begun and not over.
type process struct {
	Name, Endpoint, Prefix, Archive, Diary, Record string
	Seed                                           uint64
	Lease                                          time.Duration
	Tellers                                        int
	Think                                          time.Duration // of a teller between reading and writing, at most
	Rate                                           float64       // units a second at most; 0: unlimited
	Lock                                           bool
	Rush                                           int           // more tellers, who pay between the same accounts at the same moments
	Every                                          time.Duration // between two such moments
}

// runAsBranch runs a branch if the test binary was started as one, and exits.
func runAsBranch() {
	text := os.Getenv(processEnv)
	if text == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var p process
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.run(ctx)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// customers of the bank. A month's end of all of them does not fit into one transaction.
const customers = 50

// config returns the bank's configuration. Branches of one seed do different work.
func (p process) config() *staff.Config {
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.Name)) // never fails
	return &staff.Config{
		Endpoint: p.Endpoint, Prefix: p.Prefix, Keep: true, Record: p.Record, Name: p.Name, Seed: p.Seed ^ name.Sum64(),
		Customers: customers, Owners: 1, Tellers: p.Tellers + p.Rush, Lease: p.Lease, Lock: p.Lock,
		Mix: staff.Mix{books.KindPayment: 140, books.KindMove: 28, books.KindMerge: 3, books.KindMonthEnd: 3},
	}
}

func (p process) run(ctx context.Context) (err error) {
	cfg := p.config()
	statements, err := archive.Open(ctx, archive.Config{Where: p.Archive, Prefix: p.Prefix, Exists: true})
	switch {
	case err != nil && ctx.Err() != nil: // told to end before the work began
		return nil
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, statements.Close(context.WithoutCancel(ctx))) }()
	d, before, err := openDiary(p.Diary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	cfg.Archive, cfg.Trace = statements, d.trace()
	s, err := staff.Join(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	j := newJobs(p, cfg, staff.NewCustomers(cfg), d, before)
	tally := staff.NewTally()
	stop := d.watch(tally)
	err = s.Run(ctx, tally, staff.NewDesk(p.Tellers, j.next), staff.NewDesk(p.Rush, j.nextOfRush))
	stop()
	for what, errs := range tally.Unexpected {
		err = errors.Join(err, fmt.Errorf("unexpected, %d times: %s: %w", len(errs), what, errs[0]))
	}
	return err
}

// vitalsEvery is the time between two entries about the process itself.
const vitalsEvery = 5 * time.Second

// watch writes entries about the process until the function that it returns is called, and one then.
func (d *diary) watch(t *staff.Tally) (stop func()) {
	write := func() {
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/sched/goroutines:goroutines"}}
		metrics.Read(samples)
		d.write(entry{Is: vitals, Heap: samples[0].Value.Uint64(), Goroutines: samples[1].Value.Uint64(), Jobs: t.Over(), Requests: t.Sent()})
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(vitalsEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				write()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		ended.Wait()
		write()
	}
}
