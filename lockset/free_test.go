package lockset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// operator returns an inspector of a process of its own.
func (b *bed) operator(script faults.Script) (*inspect.Inspector, *owner) {
	b.t.Helper()
	o := b.owner("operator", script)
	cfg := lockset.Config{Table: table, Owner: "operator", Lease: lease, Rand: o.Config().Rand, Trace: o.Config().Trace}
	return must(inspect.New(o.net, cfg))(b.t), o
}

// unitAt is the unit that has a key.
func (b *bed) unitAt(key ordering.Key) string { return lockrow.TextOf(b.row(key)["unit"]) }

// An operator takes a key from a holder that lives: it is told before anybody else can have the key
// or one above or below it, and it can do nothing in the tables from then on.
func TestAnOperatorTakesAKeyFromTheLiving(t *testing.T) {
	type given struct {
		held          []ordering.Key
		freed, wanted ordering.Key
	}
	inBedsOfBoth(t, map[string]bool{"somebody comes later": false, "somebody waits before": true}, map[string]given{
		"the key":                           {[]ordering.Key{"a"}, "a", "a"},
		"a fine key":                        {[]ordering.Key{"c/1"}, "c/1", "c/1"},
		"a fine key, wanted from above":     {[]ordering.Key{"c/1"}, "c/1", "c"},
		"much finer, from above":            {[]ordering.Key{"c/1/x"}, "c/1/x", "c"},
		"much finer, from above it":         {[]ordering.Key{"c/1/x"}, "c/1/x", "c/1"},
		"a coarse one, wanted from below":   {[]ordering.Key{"c"}, "c", "c/1"},
		"the first of several, from above":  {[]ordering.Key{"c/1", "c/2"}, "c/1", "c"},
		"a later one, from above":           {[]ordering.Key{"c/1", "c/2"}, "c/2", "c"},
		"a later one":                       {[]ordering.Key{"c/1", "c/2"}, "c/2", "c/2"},
		"one of several, and another later": {[]ordering.Key{"a", "b"}, "a", "b"},
	}, func(t *testing.T, b *bed, waits bool, c given) {
		set := must(b.owner("holder", nil).Acquire(t.Context(), c.held, purposed("pay out")))(t)
		told := make(chan time.Time, 1)
		context.AfterFunc(set.Context(), func() { told <- time.Now() })
		i, _ := b.operator(nil)
		ask := func() *patron { return b.ask(t.Context(), b.owner("heir", nil), []ordering.Key{c.wanted}) }
		var heir *patron
		if waits {
			heir = ask()
			time.Sleep(2*lease + lease/5) // it renewed a while ago
		}
		freed := time.Now()
		why := map[bool]string{true: "it hangs"}[waits]
		require.NoError(t, i.Free(t.Context(), c.freed, set.Nonce(), inspect.Freeing{By: "Ann", Reason: why}))
		require.Equal(t, "Ann", lockrow.TextOf(b.row(c.freed)["ownerName"]))
		require.Equal(t, why, lockrow.TextOf(b.row(c.freed)["purpose"]))
		if !waits {
			heir = ask()
		}
		next := heir.got()
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		at := <-told
		require.True(t, at.Before(heir.at))
		require.Less(t, at.Sub(freed), lease/2, "with its next renewal")
		if c.freed.Covers(c.wanted) || c.wanted.Covers(c.freed) {
			require.GreaterOrEqual(t, heir.at.Sub(freed), lease)
		}
		require.Less(t, heir.at.Sub(freed), lease+lease/2) // of other keys from when it was lost
		require.Greater(t, next.Token(), set.Token())
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		require.NoError(t, next.Context().Err())
		b.free(next)
		b.allFreeOnceAskedFor(append(c.held, "c/1", "c", c.wanted)...)
	})
}

func TestAnOperatorLetsOthersInAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "c/1")
		i, _ := b.operator(nil)
		start := time.Now()
		require.NoError(t, i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{Now: true}))
		next := b.take(b.owner("heir", nil), "c")
		require.Less(t, time.Since(start), lease/10)
		require.Greater(t, next.Token(), set.Token())
		time.Sleep(lease / 2)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.NoError(t, next.Context().Err())
		b.free(next)
		b.allFree()
	})
}

// The unit is named, and what it has prepared is its journal's.
func TestWhatAnOperatorIsRefused(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		requests := 0
		i, _ := b.operator(func(faults.Call) faults.Fault { requests++; return faults.Pass() })
		set := b.take(b.owner("holder", nil), "a", "c/1")
		b.free(b.take(b.owner("gone", nil), "free"))
		prepared := b.take(b.owner("prepared", nil), "p")
		b.change("p", "SET pending = :units", item{":units": s("units")})
		for key, c := range map[ordering.Key]struct{ unit, reason string }{
			"a":     {prepared.Nonce(), "unit " + set.Nonce() + ` of owner "holder" has it`},
			"free":  {set.Nonce(), "it is free"},
			"never": {set.Nonce(), "it is free"},
			"c":     {set.Nonce(), "it is free"},
			"p":     {prepared.Nonce(), `the unit has its journal in table "units", which says what becomes of the key: recover it`},
		} {
			for _, now := range []bool{false, true} {
				before := b.db.Items(table)
				view := must(i.Look(t.Context(), key))(t)
				requests = 0
				err := i.Free(t.Context(), key, c.unit, inspect.Freeing{Now: now})
				refused := as[*inspect.FreeError](t, err)
				require.Equal(t, c.reason, refused.Reason)
				require.Equal(t, view.Row, refused.Row)
				require.Equal(t, 1, requests)
				require.Equal(t, before, b.db.Items(table))
			}
		}
		require.ErrorAs(t, i.Free(t.Context(), "", "u", inspect.Freeing{}), new(*ordering.KeyError))
		b.change("c", "SET fence = :text", item{":text": s("high")})
		err := i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{})
		require.Equal(t, ordering.Key("c"), as[*lockrow.RowError](t, err).Key, "nor what is below a row that holdall did not write")
	})
}

func isFree(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && strings.Contains(*in.TransactItems[0].Update.UpdateExpression, ":operator")
}

// Answers are lost, requests doubled, late: the key is taken once, and a late copy takes it from
// nobody else.
func TestAnOperatorsRequestThroughAPoorNetwork(t *testing.T) {
	inBeds(t, map[string]faults.Fault{
		"answer lost":    faults.LoseAnswer(faults.Reset),
		"request lost":   faults.LoseRequest(faults.Reset),
		"doubled, late":  faults.Duplicate(2 * lease),
		"delivered late": faults.DeliverLate(lease/4, faults.Reset),
	}, func(t *testing.T, b *bed, fault faults.Fault) {
		set := b.take(b.owner("holder", nil), "c/1")
		i, o := b.operator(nth("TransactWriteItems", 1, fault))
		require.NoError(t, i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{}))
		require.Equal(t, 1, o.net.Counts()[fault.Kind])
		time.Sleep(lease / 2)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		b.free(b.take(b.owner("heir", nil), "c"))
		after := b.take(b.owner("after", nil), "c/1")
		time.Sleep(3 * lease)
		o.net.Wait()
		require.NoError(t, after.Context().Err(), "a copy comes late")
		b.free(after)
		b.allFreeOnceAskedFor("c/1", "c")
	})
}

// lateFree has an operator whose clock is ahead take a key, and the request arrive so much later.
func (b *bed) lateFree(set *lockset.Set, late time.Duration) *faults.Wrapper {
	b.t.Helper()
	o := b.owner("late", when(isFree, faults.DeliverLate(late, faults.Hang)))
	cfg := o.Config()
	wrongBy(time.Hour)(&cfg)
	i := must(inspect.New(o.net, cfg))(b.t)
	require.Error(b.t, i.Free(b.lasting(lease/10), set.Keys()[0], set.Nonce(), inspect.Freeing{}))
	return o.net
}

// A request that arrives when the unit has let go, and another has the key, takes it from nobody,
// also if the operator's clock is ahead.
func TestAnOperatorsRequestThatArrivesWhenAnotherHasTheKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		late := b.lateFree(holder, lease/2)
		b.free(holder)
		next := b.take(b.owner("next", nil), "a")
		late.Wait()
		require.Positive(t, late.Counts()[faults.DeliveredLate])
		require.Equal(t, next.Nonce(), b.unitAt("a"))
		time.Sleep(lease)
		require.NoError(t, next.Context().Err())
		b.free(next)
	})
}

// A request that arrives minutes after it was sent takes the key all the same. Others have it when
// the holder knows, also those who look only once.
func TestAnOperatorsRequestThatArrivesMinutesLater(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "a")
		b.lateFree(set, 3*time.Minute).Wait()
		require.NotEqual(t, set.Nonce(), b.unitAt("a"))
		require.NoError(t, set.Context().Err(), "it has not heard of it yet")
		b.tried(b.owner("looks once", nil), "a")
		<-set.Context().Done()
		b.free(b.take(b.owner("heir", nil), "a"))
	})
}

// A unit that lets go of its key itself, between the operator's look and the write, was not robbed: Free says so.
func TestFreeNowSaysThatItTookWhatWasGivenBack(t *testing.T) {
	inBedsOf(t, []bool{false, true}, func(t *testing.T, b *bed, now bool) {
		set := b.take(b.owner("holder", nil), "a")
		released := false
		i, _ := b.operator(before(of("UpdateItem", "TransactWriteItems"), func() { b.free(set); released = true }))
		err := i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{Now: now})
		require.True(t, released)
		require.ErrorAs(t, err, new(*inspect.FreeError))
	})
}

// What has happened to the rows between the operator's look and the write refuses the write: the unit is
// prepared by now, or a later token has been there.
func TestFreeFindsTheRowsAsTheyWereSeen(t *testing.T) {
	const token = 4e15 // of the year 2096
	type given struct {
		row      ordering.Key
		change   string
		to       types.AttributeValue
		now      bool
		prepared bool
	}
	inBeds(t, map[string]given{
		"prepared":        {"c/1", "SET pending = :to", s("units"), false, true},
		"prepared, now":   {"c/1", "SET pending = :to", s("units"), true, true},
		"its fence":       {"c/1", "SET fence = :to", n(token), false, false},
		"the fence above": {"c", "SET fence = :to", n(token), false, false},
	}, func(t *testing.T, b *bed, c given) {
		set := b.take(b.owner("holder", nil), "c/1")
		changed := false
		i, _ := b.operator(before(of("UpdateItem", "TransactWriteItems"), func() {
			b.change(c.row, c.change, item{":to": c.to})
			changed = true
		}))
		err := i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{Now: c.now})
		require.True(t, changed)
		if c.prepared {
			require.ErrorAs(t, err, new(*inspect.FreeError))
			require.Equal(t, set.Nonce(), b.unitAt("c/1"))
			return
		}
		require.NoError(t, err)
		require.Greater(t, fenceOf(t, b.row(c.row)), int64(token))
	})
}

// The operator's request is carried out, and nobody hears of it; then others have the key, and
// another operator takes it from one of them. The row tells nothing of the first operator any more:
// that nothing was changed would be untrue.
func TestFreeDoesNotSayWhatItCannotKnow(t *testing.T) {
	rows := map[string]bool{"the key is free": true, "an operator's holder has it": false}
	inBeds(t, rows, func(t *testing.T, b *bed, now bool) {
		set := b.take(b.owner("holder", nil), "a")
		other := must(inspect.New(b.owner("another", nil).net, lockset.Config{Table: table, Lease: lease}))(t)
		n := 0
		i, _ := b.operator(func(c faults.Call) faults.Fault {
			if c.Op != "UpdateItem" {
				return faults.Pass()
			}
			if n++; n == 1 {
				return faults.LoseAnswer(faults.Reset)
			}
			next := b.take(b.owner("next", nil), "a")
			require.NoError(t, other.Free(t.Context(), "a", next.Nonce(), inspect.Freeing{Now: now}))
			return faults.Pass()
		})
		err := i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{Now: true})
		require.Equal(t, 2, n)
		require.NotErrorAs(t, err, new(*inspect.FreeError))
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
	})
}

// Nor does it while a copy of its request may still arrive.
func TestFreeDoesNotSayThatACopyWillNotArrive(t *testing.T) {
	rows := map[string]bool{"the row above is full": false, "it changes all the time": true}
	inBeds(t, rows, func(t *testing.T, b *bed, passes bool) {
		set := b.take(b.owner("holder", nil), "c/1")
		others := &types.AttributeValueMemberSS{} // leave no room on the row above for a while
		for n := range 80 {
			others.Value = append(others.Value, fmt.Sprintf("%022d %d", n, n))
		}
		n := 0
		i, o := b.operator(func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" && n > 1 && passes {
				b.change("c", "DELETE below :others", item{":others": others})
			}
			if !isFree(c) {
				return faults.Pass()
			}
			if n++; n == 1 {
				return faults.DeliverLate(lease, faults.Reset)
			}
			b.change("c", "ADD below :others", item{":others": others})
			return faults.Pass()
		})
		err := i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{})
		require.Equal(t, set.Nonce(), b.unitAt("c/1"))
		b.change("c", "DELETE below :others", item{":others": others})
		o.net.Wait()
		require.NotEqual(t, set.Nonce(), b.unitAt("c/1"))
		require.NotErrorAs(t, err, new(*inspect.FreeError))
	})
}

// Each key that is taken from the dead leaves one intent more on the row above, until somebody cleans
// it. Free says which row has no room, and a sweep makes some.
func TestFreeOfManyKeysBelowAFullRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.owner("dead", nil)
		var sets []*lockset.Set
		for n := range 64 { // as many intents as fit
			sets = append(sets, b.take(dead, ordering.Key(fmt.Sprintf("c/%02d", n))))
		}
		dead.net.Crash()
		i, _ := b.operator(nil)
		var err error
		taken := 0
		for ; err == nil; taken++ {
			err = i.Free(t.Context(), sets[taken].Keys()[0], sets[taken].Nonce(), inspect.Freeing{})
		}
		require.Equal(t, 16+1, taken)
		const full = `the row of "c" above it has 80 intents, and no room for another: sweep it`
		require.Equal(t, full, as[*inspect.FreeError](t, err).Reason)
		b.swept(b.owner("o", nil), "c")
		b.allFree()
	})
}

// An operator whose clock is behind takes a key all the same. One whose clock reads a year that leaves no
// tokens must not write one: nobody could ever have the key again.
func TestFreeByAClockThatIsWrong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "c/1")
		o := b.owner("operator", nil)
		cfg := o.Config()
		cfg.Now = func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }
		err := must(inspect.New(o.net, cfg))(t).Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{})
		require.ErrorAs(t, err, new(*locks.ConfigError))
		require.Equal(t, set.Nonce(), b.unitAt("c/1"))

		o.requests()
		wrongBy(-time.Hour)(&cfg)
		require.NoError(t, must(inspect.New(o.net, cfg))(t).Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{}))
		require.Less(t, o.requests()["TransactWriteItems"], 2, "the first look shows which token it takes")
		b.free(b.take(b.owner("heir", nil), "c/1"))
	})
}

// anyKeys are of three levels, so that some of them conflict.
var anyKeys = []ordering.Key{"a", "c", "c/1", "c/2", "c/1/x", "c/1/y", "c/2/x", "d/1"}

func someOf(r *rand.Rand, n int) (keys []ordering.Key) {
	for _, j := range r.Perm(len(anyKeys))[:n] {
		keys = append(keys, anyKeys[j])
	}
	return keys
}

// heirs is what others had before the unit knew.
type heirs struct {
	b     *bed
	knows func() bool
	early chan ordering.Key
	all   sync.WaitGroup
}

// wants has a process get keys, once, whenever it can.
func (h *heirs) wants(name string, keys []ordering.Key, held []ordering.Key, delay time.Duration, polls bool) {
	o := h.b.owner(name, nil)
	h.all.Go(func() {
		time.Sleep(delay)
		ask := func() (*lockset.Set, error) { return o.Acquire(h.b.t.Context(), keys) }
		if polls {
			ask = func() (*lockset.Set, error) { return o.TryAcquire(h.b.t.Context(), keys) }
		}
		set, err := ask()
		for ; err != nil; set, err = ask() {
			time.Sleep(lease / 20)
		}
		for _, k := range keys {
			if !h.knows() && slices.ContainsFunc(held, func(had ordering.Key) bool { return k.Covers(had) || had.Covers(k) }) {
				h.early <- k
			}
		}
		_ = set.Release(context.Background())
	})
}

// Whatever is held, freed and wanted, and whatever becomes of the holder's renewals: nobody has
// what conflicts with one of its keys before it knows.
func TestTheUnitKnowsFirst(t *testing.T) {
	for seed := range uint64(shorter(25, 8)) {
		r := rand.New(rand.NewPCG(seed, 7))
		inBed(t, func(t *testing.T, b *bed) {
			anyLease := func() time.Duration { return []time.Duration{lease, lease / 2, 3 * lease}[r.IntN(3)] }
			upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
			fault := []faults.Fault{faults.Pass(), faults.LoseRequest(faults.Hang), faults.LoseAnswer(faults.Reset)}[r.IntN(3)]
			cutAt := time.Now().Add(upTo(2 * lease))
			holder := b.owner("holder", when(func(c faults.Call) bool {
				return c.Op == "BatchExecuteStatement" && time.Now().After(cutAt)
			}, fault), func(c *lockset.Config) { c.Lease = anyLease() })
			set := b.take(holder, someOf(r, 1+r.IntN(4))...)
			held := set.Keys()
			time.Sleep(upTo(2 * lease))
			h := &heirs{b: b, knows: func() bool { return set.Context().Err() != nil }, early: make(chan ordering.Key, 64)}
			for i := range 1 + r.IntN(3) {
				h.wants(fmt.Sprint("heir ", i), someOf(r, 1+r.IntN(2)), held, upTo(2*lease), r.IntN(4) == 0)
			}
			for i := range 1 + r.IntN(3) {
				time.Sleep(upTo(lease))
				var doubles faults.Script
				if r.IntN(3) == 0 {
					doubles = when(isFree, faults.Duplicate(lease/2))
				}
				o := b.owner(fmt.Sprint("operator ", i), doubles)
				cfg := lockset.Config{Table: table, Owner: "operator", Lease: anyLease(), Rand: o.Config().Rand}
				inspector := must(inspect.New(o.net, cfg))(t)
				_ = inspector.Free(t.Context(), held[r.IntN(len(held))], set.Nonce(), inspect.Freeing{}) // it may be gone
			}
			h.all.Wait()
			require.Empty(t, h.early, "seed %d: the unit held %v and did not know", seed, held)
			_ = set.Release(context.Background())
			time.Sleep(10 * lease) // copies end
		})
	}
}

// A unit that did not hear that it had its keys, and lost the first of them to an operator, releases
// the others when it gives up.
func TestAnOperatorTakesAPartOfWhatIsUnheard(t *testing.T) {
	inBedsOf(t, []bool{false, true}, func(t *testing.T, b *bed, now bool) {
		began := time.Now()
		o := b.owner("o", when(func(c faults.Call) bool {
			return c.Op == "TransactWriteItems" && time.Since(began) < lease/4
		}, faults.LoseAnswer(faults.Reset)))
		time.AfterFunc(lease/8, func() {
			i, _ := b.operator(nil)
			require.NoError(t, i.Free(t.Context(), "a", b.unitAt("a"), inspect.Freeing{Now: now}))
		})
		_, err := o.Acquire(b.lasting(lease/4), []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, b.row("b"), "unit")
	})
}
