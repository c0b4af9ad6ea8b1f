package lockset_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// operator returns an inspector with its own way to the table.
func (b *bed) operator(script faults.Script) (*inspect.Inspector, *faults.Wrapper) {
	b.t.Helper()
	o := b.owner("operator", script)
	i, err := inspect.New(o.net, lockset.Config{Table: table, Owner: "operator", Lease: lease, Rand: o.Config().Rand, Trace: o.Config().Trace})
	require.NoError(b.t, err)
	return i, o.net
}

// unitAt is the unit that has a key.
func (b *bed) unitAt(key ordering.Key) string { return lockrow.TextOf(b.row(key)["unit"]) }

// An operator takes a key from a holder that lives: it is told before anybody else can have the key
// or one above or below it, and it can do nothing in the tables from then on.
func TestAnOperatorTakesAKeyFromTheLiving(t *testing.T) {
	for name, c := range map[string]struct {
		held   []ordering.Key
		freed  ordering.Key
		wanted ordering.Key
	}{
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
	} {
		for _, waits := range []bool{false, true} { // somebody waits before
			t.Run(name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					set := b.take(b.owner("holder", nil), c.held...)
					told := make(chan time.Time, 1)
					context.AfterFunc(set.Context(), func() { told <- time.Now() })
					i, _ := b.operator(nil)
					heir := b.owner("heir", nil)
					got := make(chan *lockset.Set, 1)
					take := func() { got <- b.take(heir, c.wanted) }
					if waits {
						go take()
						time.Sleep(2*lease + lease/5) // it renewed a while ago
					}
					freed := time.Now()
					require.NoError(t, i.Free(t.Context(), c.freed, set.Nonce(), inspect.Freeing{By: "somebody, because"}))
					require.Equal(t, "somebody, because", lockrow.TextOf(b.row(c.freed)["ownerName"]))
					if !waits {
						go take()
					}
					next := <-got
					now := time.Now()
					require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
					at := <-told
					require.True(t, at.Before(now))
					require.Less(t, at.Sub(freed), lease/2, "with its next renewal")
					if c.freed == c.wanted || c.freed.Covers(c.wanted) || c.wanted.Covers(c.freed) {
						require.GreaterOrEqual(t, now.Sub(freed), lease)
					}
					require.Less(t, now.Sub(freed), lease+lease/2) // of other keys from when it was lost
					require.Greater(t, next.Token(), set.Token())
					require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
					require.NoError(t, next.Context().Err())
					b.free(next)
					b.allFreeOnceAskedFor(append(c.held, "c/1", "c", c.wanted)...)
				})
			})
		}
	}
}

// With Now others have it at once, and the holder learns of it with its next renewal.
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
		b.putItem(plusPending(b.row("p")))
		for key, c := range map[ordering.Key]struct{ unit, reason string }{
			"a":     {prepared.Nonce(), "unit " + set.Nonce() + ` of owner "holder" has it`},
			"free":  {set.Nonce(), "it is free"},
			"never": {set.Nonce(), "it is free"},
			"c":     {set.Nonce(), "it is free"},
			"p":     {prepared.Nonce(), `the unit has its journal in table "units", which says what becomes of the key: recover it`},
		} {
			for _, now := range []bool{false, true} {
				before := b.db.Items(table)
				view, err := i.Look(t.Context(), key, inspect.LookOptions{})
				require.NoError(t, err)
				requests = 0
				err = i.Free(t.Context(), key, c.unit, inspect.Freeing{Now: now})
				var refused *inspect.FreeError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, c.reason, refused.Reason)
				require.Equal(t, view.Row, refused.Row)
				require.Equal(t, 1, requests)
				require.Equal(t, before, b.db.Items(table))
			}
		}
		require.ErrorAs(t, i.Free(t.Context(), "", "u", inspect.Freeing{}), new(*ordering.KeyError))
	})
}

// An operator whose clock is behind takes a key all the same.
func TestFreeByAClockThatIsBehind(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "c/1")
		o := b.owner("operator", nil)
		cfg := o.Config()
		cfg.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		i, err := inspect.New(o.net, cfg)
		require.NoError(t, err)
		require.NoError(t, i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{}))
		require.Less(t, o.requests()["TransactWriteItems"], 2, "the first look shows which token it takes")
	})
}

// One below a row that holdall did not write it leaves alone.
func TestFreeBelowADamagedRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		i, _ := b.operator(nil)
		other := b.take(b.owner("other", nil), "d/1")
		b.change("d", "SET fence = :text", map[string]types.AttributeValue{":text": text("high")})
		var damaged *lockrow.RowError
		require.ErrorAs(t, i.Free(t.Context(), "d/1", other.Nonce(), inspect.Freeing{}), &damaged)
		require.Equal(t, ordering.Key("d"), damaged.Key)
	})
}

func plusPending(row map[string]types.AttributeValue) map[string]types.AttributeValue {
	row["pending"] = &types.AttributeValueMemberS{Value: "units"}
	return row
}

func isFree(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && strings.Contains(*in.TransactItems[0].Update.UpdateExpression, ":operator")
}

// Answers are lost, requests doubled, late: the key is taken once, and a late copy takes it from
// nobody else.
func TestAnOperatorsRequestThroughAPoorNetwork(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"answer lost":    faults.LoseAnswer(faults.Reset),
		"request lost":   faults.LoseRequest(faults.Reset),
		"doubled, late":  faults.Duplicate(2 * lease),
		"delivered late": faults.DeliverLate(lease/4, faults.Reset),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "c/1")
				done := false
				i, net := b.operator(func(c faults.Call) faults.Fault {
					if isFree(c) && !done {
						done = true
						return fault
					}
					return faults.Pass()
				})
				require.NoError(t, i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{}))
				require.True(t, done)
				time.Sleep(lease / 2)
				require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
				next := b.take(b.owner("heir", nil), "c")
				b.free(next)
				after := b.take(b.owner("after", nil), "c/1")
				time.Sleep(3 * lease)
				net.Wait()
				require.NoError(t, after.Context().Err(), "a copy comes late")
				b.free(after)
				b.allFreeOnceAskedFor("c/1", "c")
			})
		})
	}
}

// A request that arrives when the unit has let go, and another has the key, takes it from nobody,
// also if the operator's clock is ahead.
func TestAnOperatorsRequestThatArrivesWhenAnotherHasTheKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		late := b.owner("late", func(c faults.Call) faults.Fault {
			if isFree(c) {
				return faults.DeliverLate(lease/2, faults.Hang)
			}
			return faults.Pass()
		})
		cfg := late.Config()
		cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		i, err := inspect.New(late.net, cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), lease/10)
		defer cancel()
		require.Error(t, i.Free(ctx, "a", holder.Nonce(), inspect.Freeing{}))
		b.free(holder)
		next := b.take(b.owner("next", nil), "a")
		late.net.Wait()
		require.Positive(t, late.net.Counts()[faults.DeliveredLate])
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
		i, net := b.operator(func(c faults.Call) faults.Fault {
			if isFree(c) {
				return faults.DeliverLate(3*time.Minute, faults.Hang)
			}
			return faults.Pass()
		})
		ctx, cancel := context.WithTimeout(t.Context(), lease/10)
		defer cancel()
		require.Error(t, i.Free(ctx, "a", set.Nonce(), inspect.Freeing{}))
		net.Wait()
		require.NotEqual(t, set.Nonce(), b.unitAt("a"))
		require.NoError(t, set.Context().Err(), "it has not heard of it yet")
		_, err := b.owner("looks once", nil).TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.HeldError))
		<-set.Context().Done()
		b.free(b.take(b.owner("heir", nil), "a"))
	})
}
