package pictures

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

var write = flag.Bool("write", false, "write the pictures instead of comparing them")

const lease = 2 * time.Second

// stage is a bank in virtual time, which is recorded.
type stage struct {
	t         *testing.T
	db        *memdynamo.DB
	tables    *books.Tables
	out       bytes.Buffer
	recording *record.Recording
	start     time.Time
	latency   time.Duration // of a request and of an answer, at most
	exactly   time.Duration // that each takes besides
	thinks    time.Duration // of a unit's function
}

// play returns the events of a scene: the same ones each time.
func play(t *testing.T, scene func(*stage)) (events []record.Event) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, latency: 12 * time.Millisecond, thinks: 30 * time.Millisecond}
		s.db = memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return s.exactly }})
		s.tables = books.NewTables("")
		require.NoError(t, s.tables.Create(t.Context(), s.db))
		s.recording = record.New(&bytes.Buffer{})
		opens := s.process("opens", nil)
		for n := range 4 {
			require.NoError(t, opens.bank.Record(t.Context(), books.Entry{ID: fmt.Sprint("opening-", n), Account: fmt.Sprint(n), Amount: 1000}))
		}
		time.Sleep(time.Second)
		s.recording = record.New(&s.out)
		s.start = time.Now()
		s.recording.Note("", "begin")
		scene(s)
		require.NoError(t, s.recording.Close())
		for e, err := range record.Read(&s.out) {
			require.NoError(t, err)
			events = append(events, e)
		}
	})
	return events
}

// process is one of the bank, with a connection of its own.
type process struct {
	*stage
	name string
	net  *faults.Wrapper
	bank *books.Bank
}

// thinking takes some time for each unit.
func thinking(run books.Run, d time.Duration) books.Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		return run(ctx, work, func(ctx context.Context, u books.Unit) error {
			time.Sleep(d)
			return fn(ctx, u)
		})
	}
}

func (s *stage) process(name string, hooks *trace.Trace) *process {
	p := &process{stage: s, name: name}
	p.net = faults.Wrap(s.db, faults.Config{Who: name, Latency: s.latency, AtOnce: s.exactly == 0, Script: func(faults.Call) faults.Fault { return faults.Pass() }})
	cfg := s.tables.Units
	cfg.Locks = s.tables.Locks
	cfg.Locks.Owner, cfg.Locks.Lease, cfg.Trace = name, lease, trace.Join(s.recording.Trace(name), hooks)
	cfg.Locks.Rand = faults.Nonces(name)
	client, err := unitofwork.Open(p.net, cfg)
	require.NoError(s.t, err)
	p.bank = &books.Bank{Tables: s.tables, Run: thinking(books.Units(client), s.thinks)}
	return p
}

func (p *process) dies() {
	p.net.Crash()
	p.recording.Gone(p.name, "killed")
}

// pays moves money between accounts, drawn by the process's name, until the time is over.
func (p *process) pays(until time.Duration) {
	draw := rand.New(rand.NewPCG(1, uint64(p.name[0])))
	for n := 0; time.Since(p.start) < until; n++ {
		from := draw.IntN(4)
		err := p.bank.Pay(p.t.Context(), books.Payment{
			ID: fmt.Sprint(p.name, n), From: books.Child{ID: fmt.Sprint(from)}, To: books.Child{ID: fmt.Sprint((from + 1 + draw.IntN(3)) % 4)}, Amount: 1,
		})
		if errors.Is(err, faults.ErrCrashed) {
			return
		}
		require.NoError(p.t, err)
		time.Sleep(time.Duration(20+draw.IntN(40)) * time.Millisecond)
	}
}

// crash has one of three processes killed as it is about to commit.
func crash(lock bool) func(*stage) {
	return func(s *stage) {
		var b *process
		commits := 0
		b = s.process("b", hooks.OnStart(trace.Commit, func(ctx context.Context, _ trace.Event) context.Context {
			if commits++; commits == 5 {
				b.dies()
			}
			return ctx
		}))
		var all sync.WaitGroup
		for _, p := range []*process{s.process("a", nil), b, s.process("c", nil)} {
			p.bank.Lock = lock
			all.Go(func() { p.pays(3400 * time.Millisecond) })
		}
		all.Wait()
	}
}

// queue has five processes want one account.
func queue(s *stage) {
	s.thinks = 200 * time.Millisecond
	var all sync.WaitGroup
	for n, name := range []string{"a", "b", "c", "d", "e"} {
		p := s.process(name, nil)
		p.bank.Lock = true
		all.Go(func() {
			time.Sleep(time.Duration(n) * 60 * time.Millisecond)
			require.NoError(s.t, p.bank.Record(s.t.Context(), books.Entry{ID: name, Account: "1", Amount: 1}))
		})
	}
	all.Wait()
}

// ways has one unit without locks, and one with, at the same time.
func ways(s *stage) {
	s.latency, s.exactly, s.thinks = 0, 30*time.Millisecond, 5*time.Millisecond
	var all sync.WaitGroup
	for n, name := range []string{"a", "b"} {
		p := s.process(name, nil)
		p.bank.Lock = name == "b"
		from, to := books.Child{ID: fmt.Sprint(2 * n)}, books.Child{ID: fmt.Sprint(2*n + 1)}
		all.Go(func() {
			require.NoError(s.t, p.bank.Pay(s.t.Context(), books.Payment{ID: name, From: from, To: to, Amount: 1}))
		})
	}
	all.Wait()
}

func processes(names ...string) (lanes []lane) {
	for _, name := range names {
		lanes = append(lanes, lane{id: name, title: "process " + name})
	}
	return lanes
}

func accounts(ids ...string) (lanes []lane) {
	for _, id := range ids {
		lanes = append(lanes, lane{id: string(books.AccountKey(books.Child{ID: id})), title: "account " + id, key: true})
	}
	return lanes
}

// pictures are what docs/pictures has.
func all(t *testing.T) map[string]picture {
	lanes := append(processes("a", "b", "c"), accounts("0", "1", "2", "3")...)
	locked, free := read(play(t, crash(true))), read(play(t, crash(false)))
	sums := func(c course) string {
		return fmt.Sprintf("%d payments, the longest took %v", c.units, c.longest.Round(10*time.Millisecond))
	}
	require.Greater(t, locked.longest, lease, "somebody waited for the dead")
	require.Less(t, free.longest, lease, "nobody did")
	line, both := read(play(t, queue)), read(play(t, ways))
	return map[string]picture{
		"crash.svg": {
			title:  "Three processes pay between four accounts, and one is killed. Under locks others wait for a lease; without locks nobody does.",
			length: 3500 * time.Millisecond,
			panels: []panel{
				{course: locked, title: "Every unit takes its locks first: " + sums(locked), lanes: lanes},
				{course: free, title: "No locks until somebody is in the way: " + sums(free), lanes: lanes},
			},
		},
		"queue.svg": {
			title:  "Five processes want one account, and have it in the order in which they came.",
			length: line.end.Sub(line.start),
			panels: []panel{{course: line, title: "Five want one account: first come, first served", lanes: append(processes("a", "b", "c", "d", "e"), accounts("1")...)}},
		},
		"ways.svg": {
			title:  "The requests of a unit without locks, and of one that takes its locks first.",
			length: both.end.Sub(both.start),
			panels: []panel{{course: both, title: "A payment without locks, and one that takes its locks first", lanes: append(processes("a", "b"), accounts("0", "1", "2", "3")...), details: true}},
		},
	}
}

// Whatever keys and processes are called, a picture is XML.
func TestPicturesAreXML(t *testing.T) {
	odd := `<&"]]>`
	begin := time.Now()
	c := read([]record.Event{
		{At: begin, Process: odd, Name: "UnitStart", Span: 1},
		{At: begin.Add(time.Second), Process: odd, Name: "UnitEnd", Span: 1, Event: trace.Event{Outcome: hooks.Committed}},
		{At: begin.Add(time.Second), Process: odd, Name: "Gone", Text: odd},
	})
	require.Equal(t, 1, c.units)
	drawn := picture{title: odd, length: time.Second, panels: []panel{{course: c, title: odd, lanes: []lane{{id: odd, title: odd}}}}}.draw()
	d := xml.NewDecoder(strings.NewReader(drawn))
	var err error
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
}

// The pictures show what the library does now.
func TestPictures(t *testing.T) {
	for name, p := range all(t) {
		path := filepath.Join("..", "..", "..", "docs", "pictures", name)
		if *write {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(p.draw()), 0o644))
			continue
		}
		drawn, err := os.ReadFile(path)
		require.NoError(t, err, "make docs writes it")
		require.Equal(t, string(drawn), p.draw(), "%s is out of date: make docs writes it", name)
	}
}
