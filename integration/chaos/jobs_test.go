package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// jobsOf returns the jobs of a branch with a diary, on customers that exist only in memory.
func jobsOf(t *testing.T, file, name string) *jobs {
	t.Helper()
	d, before, err := openDiary(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	p := process{Name: name, Every: time.Second}
	cfg := p.config()
	cfg.Customers = 4
	return newJobs(p, cfg, staff.NewCustomers(cfg), d, before)
}

// The successor of a branch repeats the jobs with an ID that were begun and not over, and continues.
func TestABranchTakesOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b1.diary")
	dead := jobsOf(t, file, "b1")
	kinds := map[string]string{}
	var left, leftOfRush []string
	for n := range 40 {
		job, _ := dead.next()
		kinds[job.Name] = job.Kind
		if n%2 == 0 {
			job.Told(staff.Committed, nil)
		} else if job.Once {
			left = append(left, job.Name)
		}
	}
	for range 8 {
		if job, _ := dead.nextOfRush(); job.Once {
			leftOfRush = append(leftOfRush, job.Name)
		}
	}
	require.NotEmpty(t, left)
	require.Equal(t, []string{"b1/rush-2", "b1/rush-4", "b1/rush-6", "b1/rush-8"}, leftOfRush)
	heir := jobsOf(t, file, "b1")
	for _, want := range left {
		job, _ := heir.next()
		require.Equal(t, want, job.Name)
		require.Equal(t, kinds[want], job.Kind, "the n-th job is always the same")
	}
	job, _ := heir.next()
	require.Equal(t, "b1/41", job.Name)
	for _, want := range append(leftOfRush, "b1/rush-9") {
		job, _ := heir.nextOfRush()
		require.Equal(t, want, job.Name)
	}
	require.NotEqual(t, heir.seed, jobsOf(t, file, "b2").seed, "branches do different work")
}

// A request that was made twice is done if one of the two says so, and in doubt if one says that.
func TestOfTwo(t *testing.T) {
	doubt := &unitofwork.InDoubtError{}
	require.NoError(t, ofTwo(nil, doubt))
	require.NoError(t, ofTwo(doubt, nil))
	require.Equal(t, error(doubt), ofTwo(doubt, books.ErrFunds))
	require.Equal(t, error(doubt), ofTwo(books.ErrFunds, doubt))
	require.Equal(t, books.ErrFunds, ofTwo(lockset.ErrLost, books.ErrFunds))
}

// Payments of a rush are committed in groups, whatever the quirks of some of them, and each teller is
// told the outcome of its own.
func TestARush(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b1.diary")
	synctest.Test(t, func(t *testing.T) {
		j := jobsOf(t, file, "b1")
		cfg := &staff.Config{
			Latency: 8 * time.Millisecond, Customers: 4, Owners: 1, Tellers: 1, Name: "b1",
			Lease: time.Second, Trace: j.diary.trace(),
		}
		s, err := staff.Open(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, s.OpenCustomers(t.Context(), j.customers))
		tally := staff.NewTally()
		require.NoError(t, s.Run(t.Context(), tally, staff.NewDesk(6, staff.Numbered(4*len(quirks), func(int) staff.Job {
			job, _ := j.nextOfRush()
			return job
		}))))
		require.Empty(t, tally.Unexpected)
		entries, err := readDiary(file)
		require.NoError(t, err)
		quirkOf := map[string]quirk{}
		for _, e := range entries {
			switch e.Is {
			case began:
				quirkOf[e.Job] = quirks[e.N%len(quirks)]
			case told:
				refused := quirkOf[e.Job] == fails || quirkOf[e.Job] == panics
				require.Equal(t, refused, e.Outcome == string(staff.Refused), "%q: %v", quirkOf[e.Job], e)
			}
		}
		g := groupsOf(entries)
		require.Greater(t, g.along, g.led, "groups of several")
		require.Positive(t, g.failed)
		require.Positive(t, g.leftOut+g.aborted)
		records, err := s.Load(t.Context(), j.customers.Keys())
		require.NoError(t, err)
		require.True(t, books.Sound(books.Audit(records)), inLines(books.Audit(records)))
		heard, err := hear(file)
		require.NoError(t, err)
		require.NotEmpty(t, heard.done)
		for job := range heard.done {
			require.NotContains(t, heard.not, job)
		}
		require.Empty(t, heard.unlocked(records))
		require.Empty(t, heard.void(records))
		require.Empty(t, heard.apart(records))
		require.NoError(t, s.Close(t.Context()))
	})
}

const monthly = 60 // customers, whose month's end does not fit into one transaction

// monthlyBank returns tables with customers, and all their IDs.
func monthlyBank(t *testing.T) (db *memdynamo.DB, tables *books.Tables, all []string) {
	t.Helper()
	db, tables = memdynamo.New(memdynamo.Config{}), books.NewTables("x-")
	require.NoError(t, tables.Create(t.Context(), db))
	for n := range monthly {
		id := staff.Customer(n)
		all = append(all, id)
		opening := books.Opening{ID: id, Accounts: []books.Child{{ID: "a" + id[1:], Home: id}}, Balance: 100_00}
		require.NoError(t, bankOn(t, db, tables).Open(t.Context(), opening))
	}
	return db, tables, all
}

// database is what an owner needs of DynamoDB.
type database interface {
	lockset.DynamoDB
	books.Items
}

func bankOn(t *testing.T, db database, tables *books.Tables) *books.Bank {
	t.Helper()
	cfg := tables.Units
	cfg.Locks = tables.Locks
	units, err := unitofwork.Open(db, cfg)
	require.NoError(t, err)
	return &books.Bank{Tables: tables, Run: books.Units(units), Units: units, Look: books.Looker{DB: db, Timeout: time.Minute}}
}

// monthEnds returns the number of accounts that a month's interest has reached, the bank's included.
func monthEnds(t *testing.T, db *memdynamo.DB, tables *books.Tables) (n int) {
	t.Helper()
	records, err := tables.Load(t.Context(), db)
	require.NoError(t, err)
	for _, c := range records.History {
		if c.Kind == books.KindMonthEnd {
			n++
		}
	}
	return n
}

// While a month's end is applied, the tables have half of it, and an overview has all or nothing. If
// its owner has died, the overview waits until another owner has finished the month.
func TestOverviewsWhileAMonthEnds(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("the owner dies: ", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, tables, all := monthlyBank(t)
				reader := bankOn(t, db, tables)
				reader.Look.Timeout = 10 * time.Second
				var inHalf atomic.Bool
				var sent atomic.Int64
				slow := bankOn(t, faults.Wrap(db, faults.Config{Script: func(c faults.Call) faults.Fault {
					if c.Op != "TransactWriteItems" {
						return faults.Pass()
					}
					time.Sleep(time.Duration(1+sent.Add(1)%5) * 100 * time.Millisecond) // some parts later than others
					if n := monthEnds(t, db, tables); n > 0 && n <= monthly {
						inHalf.Store(true)
						if dies {
							return faults.CrashHere(false)
						}
					}
					return faults.Pass()
				}}), tables)
				over := make(chan error, 1)
				go func() { over <- slow.CloseMonth(t.Context(), "m", all) }()
				var read []entry
				see := func() error {
					all, err := overview(t.Context(), reader, []string{"c1", "c2", "c60"})
					if err == nil {
						read = append(read, entry{Job: "overview", Positions: all})
					}
					return err
				}
				for len(over) == 0 {
					if err := see(); err != nil {
						require.ErrorIs(t, err, errUnderWay)
					}
					time.Sleep(10 * time.Millisecond)
				}
				require.True(t, inHalf.Load(), "the tables had half of it")
				if err := <-over; dies { // the commit may have been told before
					require.ErrorIs(t, see(), errUnderWay)
					_, err := reader.Units.Recover(t.Context())
					require.NoError(t, err)
				} else {
					require.NoError(t, err)
				}
				require.NoError(t, see())
				require.Equal(t, position{Record: "account:bank", Changes: 1, Balance: -monthly * 25}, read[len(read)-1].Positions[3])
				require.Equal(t, position{Record: "account:bank"}, read[0].Positions[3])
				records, err := tables.Load(t.Context(), db)
				require.NoError(t, err)
				half, nowhere := halves(read, records)
				require.Empty(t, half)
				require.Empty(t, nowhere)
			})
		})
	}
}

// A merge that moves an account between two reads of an overview makes it start over.
func TestAnOverviewBesideAMerge(t *testing.T) {
	db, tables, _ := monthlyBank(t)
	looks := 0
	reader := bankOn(t, faults.Wrap(db, faults.Config{Script: func(c faults.Call) faults.Fault {
		if c.Op == "GetItem" {
			if looks++; looks == 2 {
				require.NoError(t, bankOn(t, db, tables).Merge(t.Context(), "c2", "c60"))
			}
		}
		return faults.Pass()
	}}), tables)
	_, err := overview(t.Context(), reader, []string{"c2", "c60"})
	require.ErrorIs(t, err, books.ErrChanged)
	require.True(t, passing(err))
}

// A diary is read after its process was killed within a line, and continued.
func TestADiaryOutlivesItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diary")
	d, before, err := openDiary(name)
	require.NoError(t, err)
	require.Empty(t, before)
	first := d.follow(1, staff.Job{Name: "x/1", Kind: "payment", Once: true}, 0)
	d.follow(2, staff.Job{Name: "x/2", Kind: "payment", Once: true}, 0)
	d.trace().End(t.Context(), trace.Event{Kind: trace.Lost, Unit: "u", Err: errors.New("because")})
	first.Told(staff.Committed, nil)
	require.NoError(t, d.close())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"at":"2026-01-01T00:00:00Z","is":"told","job":"x/2","outc`)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	d, before, err = openDiary(name)
	require.NoError(t, err)
	require.Len(t, before, 4)
	open := unfinished(before)
	require.Len(t, open, 1)
	require.Equal(t, "x/2", open[0].Job)
	d.follow(2, staff.Job{Name: "x/2", Kind: "payment", Once: true}, 0).Told(staff.Failed, errors.New("why not"))
	require.NoError(t, d.close())
	entries, err := readDiary(name)
	require.NoError(t, err)
	require.Equal(t, []string{"x/2: why not"}, failures(entries))
	require.Empty(t, unfinished(entries))
	d.write(entry{Is: holds})
	require.ErrorContains(t, d.close(), "diary: ")
	_, _, err = openDiary(filepath.Join(t.TempDir(), "none", "x.diary"))
	require.ErrorContains(t, err, "diary: ")
}

// answers is an archive that gives one answer for each write.
type answers struct {
	next *[]error
	seen func() // what the diary has by then
}

func (a answers) Write(context.Context, fencing.Token, []ordering.Key, []books.Statement) error {
	a.seen()
	err := (*a.next)[0]
	*a.next = (*a.next)[1:]
	return err
}

// A statement is in the diary before it is sent to the archive, and the answer afterwards.
func TestWhatTheArchiveAnswers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diary")
	d, _, err := openDiary(name)
	require.NoError(t, err)
	last := func() entry {
		entries, err := readDiary(name)
		require.NoError(t, err)
		e := entries[len(entries)-1]
		e.At = time.Time{}
		return e
	}
	sent := entry{Is: sends, Job: "x/4", Statements: []books.Statement{{Account: "a", Balance: -5, Changes: 2, Token: 12}, {Account: "b", Token: 12}}}
	next := []error{&fencing.StaleError{}, errors.New("cut"), nil}
	bank := &books.Bank{Archive: answers{&next, func() { require.Equal(t, sent, last()) }}}
	job := d.follow(4, staff.Job{Name: "x/4", Do: func(ctx context.Context, b *books.Bank) error {
		return b.Archive.Write(ctx, 12, []ordering.Key{"a"}, sent.Statements)
	}}, 0)
	for _, outcome := range []staff.Outcome{staff.Refused, staff.Unknown, staff.Committed} {
		err := job.Do(t.Context(), bank)
		require.Equal(t, outcome == staff.Committed, err == nil)
		require.Equal(t, filed, last().Is)
		require.Equal(t, string(outcome), last().Outcome)
	}
	require.NoError(t, d.close())
}
