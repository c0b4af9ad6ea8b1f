package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// Kinds of jobs that the example bank does not have.
const (
	kindOverviews = "overviews" // only read, without locks
	kindPair      = "pair"      // cash on one of two accounts, by a unit that has also read the other
	kindRush      = "rush"      // payments between two accounts, several of which begin at once
)

// jobs hands out the jobs of a branch. The n-th is a function of the seed, the branch's name and n.
type jobs struct {
	process
	customers *staff.Customers
	seed      uint64
	diary     *diary
	began     time.Time
	pace      <-chan time.Time // nil: unlimited
	usual     numbers
	rush      numbers
}

// numbers are the numbers of jobs.
type numbers struct {
	left []int // begun by predecessors that died, and to be repeated
	last int   // the last one begun
}

func (n *numbers) next() (next int) {
	if len(n.left) > 0 {
		next, n.left = n.left[0], n.left[1:]
		return next
	}
	n.last++
	return n.last
}

// newJobs repeats first what the diary shows as begun under an ID and not over. Jobs without an ID may
// have been done already, and would be done twice.
func newJobs(p process, cfg *staff.Config, customers *staff.Customers, d *diary, before []entry) *jobs {
	j := &jobs{process: p, customers: customers, seed: cfg.Seed, diary: d, began: time.Now()}
	if p.Rate > 0 {
		j.pace = time.Tick(time.Duration(float64(time.Second) / p.Rate))
	}
	of := func(e entry) *numbers {
		if e.Kind == kindRush {
			return &j.rush
		}
		return &j.usual
	}
	for _, e := range before {
		if e.Is == began {
			of(e).last = max(of(e).last, e.N)
		}
	}
	for _, e := range unfinished(before) {
		if e.Once {
			of(e).left = append(of(e).left, e.N)
		}
	}
	return j
}

func (j *jobs) next() (staff.Job, bool) {
	n := j.usual.next()
	job := j.job(n)
	job.Name = fmt.Sprintf("%s/%d", j.Name, n)
	do := job.Do
	job.Do = func(ctx context.Context, b *books.Bank) error {
		if j.pace != nil {
			select {
			case <-j.pace:
			case <-ctx.Done():
			}
		}
		own := *b
		own.Run = thinking(b.Run, j.Think)
		return do(ctx, &own)
	}
	return j.diary.follow(n, job, j.Think), true
}

// job draws a usual job: one of eight reads overviews, one changes one of two accounts and reads the
// other, and two write statements.
func (j *jobs) job(n int) staff.Job {
	draw := rand.New(rand.NewPCG(j.seed, uint64(n)))
	switch n % 8 {
	case 2:
		return j.overviews(draw)
	case 6:
		return j.pair(n, draw)
	case 0:
		return j.customers.Statements(staff.Customer(draw.IntN(len(j.customers.All()))))
	case 4:
		return j.customers.Statement(draw.IntN(len(j.customers.Accounts)))
	default:
		return j.customers.Job(n)
	}
}

// thinking runs units whose function takes some time between reading and writing.
func thinking(run books.Run, atMost time.Duration) books.Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		return run(ctx, work, func(ctx context.Context, u books.Unit) error {
			err := fn(ctx, u)
			think(ctx, atMost)
			return err
		})
	}
}

func think(ctx context.Context, atMost time.Duration) {
	if atMost > 0 {
		staff.Pause(ctx, rand.N(atMost))
	}
}

// pairAccounts are two accounts without an owner: each unit that changes one has read both.
var pairAccounts = [2]string{"left", "right"}

func (j *jobs) pair(n int, draw *rand.Rand) staff.Job {
	one := draw.IntN(2)
	e := books.Entry{ID: j.customers.ID(kindPair, n), Account: pairAccounts[one], Amount: 1 + draw.Int64N(10_00)}
	return staff.Job{Kind: kindPair, Once: true, Do: func(ctx context.Context, b *books.Bank) error {
		own := *b
		own.Run = beside(b, pairAccounts[1-one])
		return own.Record(ctx, e)
	}}
}

// beside runs units that also read an account. The history of what they change notes how many changes
// that account had, so the audit finds two units of which each wrote what the other had only read.
func beside(b *books.Bank, account string) books.Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		if work.Lock {
			work.Keys = append(slices.Clip(work.Keys), books.AccountKey(books.Child{ID: account}))
		}
		return b.Run(ctx, work, func(ctx context.Context, u books.Unit) error {
			r := b.Tables.Accounts.Of(books.Account{ID: account})
			if err := u.Get(ctx, r); err != nil {
				return err
			}
			return fn(ctx, noting{u, saw(account, r.T.Changes)})
		})
	}
}

// noting writes a note into all rows of history.
type noting struct {
	books.Unit
	note string
}

// Insert implements books.Unit.
func (n noting) Insert(records ...unitofwork.Record) error {
	for _, r := range records {
		if row, is := r.(*unitofwork.Ref[books.Change]); is {
			row.T.Note = n.note
		}
	}
	return n.Unit.Insert(records...)
}

// overviewsAtOnce is how many overviews one job reads, one after the other. The time in which a month's
// end is applied is short, and some overviews must meet it.
const overviewsAtOnce = 20

// overviews reads some customers each time, mostly those that are never merged into others.
func (j *jobs) overviews(draw *rand.Rand) staff.Job {
	of := len(j.customers.All())
	all := make([][]string, overviewsAtOnce)
	for i := range all {
		all[i] = []string{staff.Customer(draw.IntN(of))}
		for range draw.IntN(6) {
			all[i] = append(all[i], staff.Customer(2*draw.IntN((of+1)/2)))
		}
		slices.Sort(all[i])
		all[i] = slices.Compact(all[i])
	}
	return staff.Job{Kind: kindOverviews, Do: func(ctx context.Context, b *books.Bank) error {
		for _, ids := range all {
			positions, err := overview(ctx, b, ids)
			switch {
			case err == nil:
				j.diary.write(entry{Is: shown, Job: b.Job, Positions: positions})
			case !passing(err):
				return err
			}
			think(ctx, 100*time.Millisecond)
		}
		return nil
	}}
}

// passing reports whether an overview could not be read this time only.
func passing(err error) bool {
	for _, why := range []error{books.ErrMerged, books.ErrChanged, books.ErrUnanswered} {
		if errors.Is(err, why) {
			return true
		}
	}
	return errors.As(err, new(*lockset.NoAnswerError))
}

// errUnderWay says that a large unit was being applied for as long as the overview waited.
var errUnderWay = fmt.Errorf("%w: a change of the customers is under way", staff.ErrRefused)

// overview reads customers, all their accounts and the bank's own as of one moment, without locks. It
// sees all of a unit or nothing. It waits while a large unit is being applied.
func overview(ctx context.Context, b *books.Bank, ids []string) ([]position, error) {
	seen, err := b.Customers(ctx, ids)
	if err != nil {
		return nil, err
	}
	accounts := []*unitofwork.Ref[books.Account]{b.Tables.Accounts.Of(books.Account{ID: books.BankAccount.ID})}
	var rows []*unitofwork.Ref[books.Customer]
	var records []unitofwork.Record
	listed := map[string]bool{}
	for _, c := range seen {
		rows = append(rows, b.Tables.Customers.Of(books.Customer{ID: c.ID}))
		records = append(records, rows[len(rows)-1])
		for _, a := range c.Accounts {
			if listed[a.ID] { // a merge moved it between the two reads
				return nil, books.ErrChanged
			}
			listed[a.ID] = true
			accounts = append(accounts, b.Tables.Accounts.Of(books.Account{ID: a.ID, Home: a.Home}))
		}
	}
	for _, a := range accounts {
		records = append(records, a)
	}
	within, cancel := context.WithTimeout(ctx, b.Look.Timeout)
	defer cancel()
	err = b.Units.Read(within, records...)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, errUnderWay
	case err != nil:
		return nil, err
	}
	var all []position
	for i, c := range rows {
		if !books.SameChildren(c.T, seen[i]) {
			return nil, books.ErrChanged
		}
		all = append(all, position{Record: books.CustomerRecord(c.T.ID), Changes: c.T.Changes})
	}
	for _, a := range accounts {
		all = append(all, position{Record: books.AccountRecord(a.T.ID), Changes: a.T.Changes, Balance: a.T.Balance})
	}
	return all, nil
}

func (j *jobs) nextOfRush() (staff.Job, bool) {
	n := j.rush.next()
	job := j.rushJob(n)
	job.Name = fmt.Sprintf("%s/%s-%d", j.Name, kindRush, n)
	return j.diary.follow(n, job, 0), true
}

// rushJob draws a payment between the first two accounts of the first customer, which is never merged
// into another. All tellers of a rush begin at the same moments, so their payments are committed in
// groups. Every second payment has an ID, and every eighth is requested twice at once.
func (j *jobs) rushJob(n int) staff.Job {
	draw := rand.New(rand.NewPCG(^j.seed, uint64(n)))
	var hot []books.Child
	for _, a := range j.customers.Accounts {
		if a.Home == staff.Customer(0) && len(hot) < 2 {
			hot = append(hot, a)
		}
	}
	if draw.IntN(2) == 0 {
		slices.Reverse(hot)
	}
	payment := books.Payment{ID: j.customers.ID(kindRush, n), From: hot[0], To: hot[1], Amount: 1 + draw.Int64N(10_00)}
	var again atomic.Bool
	pay := func(ctx context.Context, b *books.Bank) error {
		own, with := *b, odd{run: b.Run, quirk: quirks[n%len(quirks)], nameless: n%2 != 0}
		if with.quirk == goesOn && again.Swap(true) { // otherwise it might never be done
			with.quirk = usually
		}
		own.Run = with.do
		return own.Pay(ctx, payment)
	}
	return staff.Job{Kind: kindRush, Once: n%2 == 0, Asks: n%4 == 0, Do: func(ctx context.Context, b *books.Bank) error {
		staff.Pause(ctx, j.Every-time.Since(j.began)%j.Every)
		if n%8 != 0 {
			return pay(ctx, b)
		}
		other := make(chan error, 1)
		go func() { other <- pay(ctx, b) }()
		return ofTwo(pay(ctx, b), <-other)
	}}
}

// ofTwo returns the outcome of a payment that was requested twice under one ID: success if either call
// returned it, otherwise a doubt, otherwise a failure.
func ofTwo(one, other error) error {
	if one == nil || other != nil && lockset.NextOf(one) == lockset.AskLater {
		return one
	}
	return other
}
