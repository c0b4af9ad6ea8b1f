package versions

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// Processes that always take locks, and processes that do not, work on the same tables.
func TestBesideAnEarlierVersion(t *testing.T) {
	program := earlier(t)
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		t.Parallel()
		b := &bed{e: e, program: program}
		t.Run("transfers", func(t *testing.T) {
			t.Parallel()
			b.with(t).testTransfers()
		})
		t.Run("doubts", func(t *testing.T) {
			t.Parallel()
			b.with(t).testDoubts()
		})
	})
}

// desk is a teller of either version.
type desk interface {
	Answer(context.Context, Request) Answer
}

// bed is the tables of one test, and what was done there.
type bed struct {
	t       *testing.T
	e       *engines.Engine
	program string
	tables  Tables

	mu   sync.Mutex
	ends []string // of the runs of units of the present version
}

const (
	eachHas   = 1000
	customers = 10
)

// with has tables of its own.
func (b *bed) with(t *testing.T) *bed {
	t.Helper()
	own := &bed{t: t, e: b.e, program: b.program}
	prefix := b.e.Table(rand.Text()[:6])
	own.tables = Tables{Locks: prefix + "-locks", Units: prefix + "-units", Accounts: prefix + "-accounts", Lease: b.e.Lease(t, 5*time.Second)}
	require.NoError(t, lockset.CreateTable(t.Context(), b.e.Client, lockset.Config{Table: own.tables.Locks}))
	require.NoError(t, lockset.CreateTable(t.Context(), b.e.Client, lockset.Config{Table: own.tables.Accounts, HashKey: "Key"}))
	require.NoError(t, unitofwork.CreateTable(t.Context(), b.e.Client, unitofwork.Config{Table: own.tables.Units}))
	for _, key := range own.accounts() {
		item, err := attributevalue.MarshalMap(Account{Key: key, Balance: eachHas})
		require.NoError(t, err)
		_, err = b.e.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &own.tables.Accounts, Item: item})
		require.NoError(t, err)
	}
	for _, table := range []string{own.tables.Locks, own.tables.Units, own.tables.Accounts} {
		b.e.DropLater(t, table)
	}
	return own
}

func (b *bed) accounts() (keys []string) {
	for c := range customers {
		keys = append(keys, fmt.Sprintf("%d/giro", c), fmt.Sprintf("%d/savings", c))
	}
	return keys
}

// now is a teller of the present version.
func (b *bed) now() *Teller {
	b.t.Helper()
	teller, err := NewTeller(b.e.Client, b.tables, hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
		way := "locked "
		if e.Optimistic {
			way = "free "
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ends = append(b.ends, way+e.Outcome)
	}))
	require.NoError(b.t, err)
	return teller
}

func (b *bed) earlier() *process {
	b.t.Helper()
	return start(b.t, b.program, b.e.Endpoint, b.tables)
}

// took returns how runs of the present version have ended since it was asked last.
func (b *bed) took() (ends []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ends, b.ends = b.ends, nil
	return ends
}

// ask returns the answer to what must not fail.
func (b *bed) ask(d desk, r Request) Answer {
	b.t.Helper()
	a := d.Answer(b.t.Context(), r)
	require.Empty(b.t, a.Error, "%+v", r)
	return a
}

// account reads one as it is.
func (b *bed) account(key string) (a Account) {
	b.t.Helper()
	out, err := b.e.Client.GetItem(b.t.Context(), &dynamodb.GetItemInput{TableName: &b.tables.Accounts, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"Key": &types.AttributeValueMemberS{Value: key}}})
	require.NoError(b.t, err)
	require.NoError(b.t, attributevalue.UnmarshalMap(out.Item, &a))
	return a
}

// drawn is a transfer between two accounts, which names one key for each, or one above.
func (b *bed) drawn(r *mathrand.Rand, id string) Request {
	all := b.accounts()
	from := r.IntN(len(all))
	to := (from + 1 + r.IntN(len(all)-1)) % len(all)
	t := Request{Do: "transfer", ID: id, From: all[from], To: all[to], Amount: 1 + r.Int64N(9)}
	for _, account := range []string{t.From, t.To} {
		key := ordering.Key(account)
		if r.IntN(4) == 0 {
			key = key.Root()
		}
		t.Keys = append(t.Keys, key)
	}
	return t
}

// job is a request, and who is asked.
type job struct {
	Request
	at desk
}

// testTransfers: every transfer with an ID is asked of both versions, others of one; a process
// of the earlier version is killed half way, with locks. Each transfer is done once, and
// everybody is told so.
func (b *bed) testTransfers() {
	withID, without := 24, 12
	if testing.Short() {
		withID, without = 12, 8
	}
	t, seed := b.t, mathrand.Uint64()
	t.Logf("seed %d", seed)
	r := mathrand.New(mathrand.NewPCG(seed, 0))
	mortal, old := b.earlier(), b.earlier()
	present := []*Teller{b.now(), b.now()}
	var jobs []job
	var transfers []Request
	for i := range withID {
		x := b.drawn(r, fmt.Sprint("id", i))
		transfers = append(transfers, x)
		jobs = append(jobs, job{x, mortal}, job{x, old}, job{x, present[i%2]})
	}
	for i := range without {
		x := b.drawn(r, "")
		transfers = append(transfers, x)
		if i%2 == 0 {
			jobs = append(jobs, job{x, old})
			continue
		}
		x.Keys = nil // it finds what it needs
		jobs = append(jobs, job{x, present[i%4/2]})
	}
	r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	left := b.drawn(r, "left behind")
	b.do(jobs, mortal, left)
	b.ask(present[0], left)
	transfers = append(transfers, left)
	b.audit(transfers)

	ends := b.took()
	free := 0
	for _, end := range ends {
		if end == "free committed" {
			free++
		}
	}
	t.Logf("of %d runs of the present version %d committed without locks", len(ends), free)
	for _, x := range transfers[:withID] {
		for _, d := range []desk{old, b.now()} {
			require.Equal(t, "committed before", b.ask(d, x).Told)
			other := x
			other.Amount++
			require.True(t, d.Answer(t.Context(), other).IDError)
		}
	}
	b.audit(transfers)

	b.outlive()
	b.took()
	last := b.drawn(r, "last")
	require.Equal(t, "committed", b.ask(b.now(), last).Told)
	require.Equal(t, "committed before", b.ask(old, last).Told)
	next := b.drawn(r, "next")
	require.Equal(t, "committed", b.ask(old, next).Told)
	require.Equal(t, "committed before", b.ask(b.now(), next).Told)
	require.Equal(t, []string{"free committed", "free committed before"}, b.took())
	b.audit(append(transfers, last, next))
}

// outlive waits until nobody who is dead has anything.
func (b *bed) outlive() {
	b.t.Helper()
	units, err := unitofwork.Open(b.e.Client, unitofwork.Config{Locks: lockset.Config{Table: b.tables.Locks, Lease: b.tables.Lease}, Table: b.tables.Units})
	require.NoError(b.t, err)
	work := unitofwork.Work{Lock: true}
	for _, account := range b.accounts() {
		work.Keys = append(work.Keys, ordering.Key(account).Root())
	}
	require.NoError(b.t, units.Do(b.t.Context(), work, func(context.Context, *unitofwork.Unit) error { return nil }))
}

// dies has a process die while it has the locks of a transfer.
func (b *bed) dies(p *process, left Request) {
	left.Do = "hang"
	if told := p.Answer(b.t.Context(), left); told.Told != "holds" {
		b.t.Errorf("%+v", told)
	}
	p.child.Kill()
}

// do does jobs, some at a time. When half of them are done the mortal process dies.
func (b *bed) do(jobs []job, mortal *process, left Request) {
	b.t.Helper()
	var done, failed atomic.Int64
	var told sync.Map
	next := make(chan job)
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for j := range next {
				a := j.at.Answer(b.t.Context(), j.Request)
				switch {
				case j.at == desk(mortal) && strings.HasPrefix(a.Error, gone):
				case a.Error != "":
					failed.Add(1)
					b.t.Errorf("%+v: %s", j.Request, a.Error)
				case a.Told == "committed":
					if _, twice := told.LoadOrStore(j.ID, true); twice && j.ID != "" {
						b.t.Errorf("%+v was committed twice", j.Request)
					}
				case a.Told != "committed before" || j.ID == "":
					b.t.Errorf("%+v: it was %q", j.Request, a.Told)
				}
				if done.Add(1) == int64(len(jobs)/2) {
					b.dies(mortal, left)
				}
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	working.Wait()
	require.Zero(b.t, failed.Load())
}

// audit finds each of these transfers done once, and nothing else.
func (b *bed) audit(transfers []Request) {
	b.t.Helper()
	balance, ids := map[string]int64{}, map[string][]string{}
	for _, x := range transfers {
		balance[x.From] -= x.Amount
		balance[x.To] += x.Amount
		if x.ID != "" {
			ids[x.From], ids[x.To] = append(ids[x.From], x.ID), append(ids[x.To], x.ID)
		}
	}
	for _, key := range b.accounts() {
		a := b.account(key)
		require.Equal(b.t, eachHas+balance[key], a.Balance, key)
		require.ElementsMatch(b.t, ids[key], a.Done, key)
	}
}

// testDoubts: what one version says of the other's units is true, or it says that it does not
// know.
func (b *bed) testDoubts() {
	t := b.t
	old, now := b.earlier(), b.now()
	var sent atomic.Pointer[dynamodb.TransactWriteItemsInput]
	now.Unheard = func(in *dynamodb.TransactWriteItemsInput) { commit := *in; sent.Store(&commit) }
	doubt := func(d desk, customer int, done bool) (x Request, ref string) {
		t.Helper()
		x = Request{Do: "doubt", ID: fmt.Sprint("id", customer), Done: done, Amount: 5,
			From: fmt.Sprintf("%d/giro", customer), To: fmt.Sprintf("%d/savings", customer)}
		x.Keys = []ordering.Key{ordering.Key(x.From), ordering.Key(x.To)}
		a := d.Answer(t.Context(), x)
		require.NotEmpty(t, a.Ref, a.Error)
		require.Equal(t, "in doubt", a.Told)
		x.Do = "transfer"
		return x, a.Ref
	}
	outcome := func(d desk, of string) string { return b.ask(d, Request{Do: "outcome", Of: of}).Told }
	knows := func(d desk, of string) bool { return !d.Answer(t.Context(), Request{Do: "outcome", Of: of}).IDError }

	done, ref := doubt(now, 0, true)
	require.False(t, knows(old, ref), "it would go by locks that there were not")
	require.Equal(t, "committed", outcome(now, ref))
	require.Equal(t, "committed", outcome(old, done.ID))
	require.Equal(t, "committed before", b.ask(old, done).Told)

	lost, ref := doubt(now, 1, false)
	require.False(t, knows(old, ref))
	require.Equal(t, "undecided", outcome(now, ref), "its request may come yet")
	require.Equal(t, "undecided", outcome(old, lost.ID))
	beside := lost
	beside.ID, beside.Amount = "", 7
	require.Equal(t, "committed", b.ask(old, beside).Told)
	late := sent.Load()
	late.ClientRequestToken = aws.String(rand.Text()) // the first one is forgotten by now
	_, err := b.e.Client.TransactWriteItems(t.Context(), late)
	require.ErrorAs(t, err, new(*types.TransactionCanceledException), "somebody has had its locks since")
	require.Equal(t, "not committed", outcome(now, ref))

	theirs, ref := doubt(old, 2, true)
	require.Equal(t, "committed", outcome(now, ref))
	require.Equal(t, "committed", outcome(old, ref))
	require.Equal(t, "committed before", b.ask(now, theirs).Told)

	silent, ref := doubt(old, 3, false)
	require.Equal(t, "undecided", outcome(now, ref), "it has its locks")
	require.Equal(t, "committed", b.ask(now, silent).Told, "once they are taken over")
	require.Equal(t, "not committed", outcome(now, ref))
	require.Equal(t, "not committed", outcome(old, ref))

	b.audit([]Request{done, beside, theirs, silent})
}
