package staff

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// A paused owner sends nothing and hears nothing, until it goes on.
func TestAPausedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := newConfig(t)
		line := &connection{db: cfg.DB}
		ask := func(ctx context.Context) <-chan error {
			answer := make(chan error, 1)
			go func() {
				_, err := line.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{})
				answer <- err
			}()
			return answer
		}
		underWay := ask(t.Context())
		time.Sleep(latency / 4)
		line.pause()
		held := ask(t.Context())
		hasty, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		gaveUp := ask(hasty)
		time.Sleep(2 * lease)
		require.ErrorIs(t, <-gaveUp, context.DeadlineExceeded)
		require.Empty(t, underWay)
		require.Empty(t, held)
		begin := time.Now()
		line.goOn()
		<-underWay
		require.Zero(t, time.Since(begin), "it had its answer")
		<-held
		require.Positive(t, time.Since(begin), "it was not sent before")
	})
}

// shelf is an archive of one account. With a guard it refuses who was overtaken.
type shelf struct {
	guarded bool

	mu      sync.Mutex
	written []books.Statement
	at      []time.Time
}

func (s *shelf) Write(_ context.Context, token fencing.Token, _ []ordering.Key, statements []books.Statement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.written); s.guarded && n > 0 && s.written[n-1].Token > token {
		return &fencing.StaleError{Token: token, Found: s.written[n-1].Token}
	}
	s.written = append(s.written, statements...)
	s.at = append(s.at, time.Now())
	return nil
}

// overtakeOnce has an owner paused at a statement, while other work goes on.
func overtakeOnce(t *testing.T, archive *shelf, coarseIsLate bool) *Tally {
	t.Helper()
	cfg, tables := newConfig(t)
	account := books.Child{ID: "a", Home: "c"}
	opening := books.Opening{Customer: books.Customer{ID: "c", Accounts: []books.Child{account}}, Balance: 1000_00}
	require.NoError(t, Run(cfg, list(Job{Do: func(ctx context.Context, b *books.Bank) error { return b.Open(ctx, opening) }}), NewTally()))

	fine := Job{Kind: "fine", Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveAccount(ctx, account) }}
	coarse := Job{Kind: "coarse", Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveCustomer(ctx, "c") }}
	change := Job{Kind: "interest", Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, "c") }}
	overtaking := Overtaking{Late: fine, Meanwhile: []Job{change, coarse}}
	if coarseIsLate {
		overtaking = Overtaking{Late: coarse, Meanwhile: []Job{change, fine}}
	}
	cfg.Owners, cfg.Archive = 2, archive
	todo := []Overtaking{overtaking}
	cfg.Overtakings = func() (Overtaking, bool) {
		if len(todo) == 0 {
			return Overtaking{}, false
		}
		todo = nil
		return overtaking, true
	}
	n := 0
	tally := NewTally()
	require.NoError(t, Run(cfg, NewDesk(func() (Job, bool) { n++; return cash(n), true }), tally))
	require.Empty(t, tally.Unexpected)
	require.Equal(t, int64(1), tally.Paused.Load())
	require.Positive(t, tally.TakenOver.Load())
	require.Equal(t, n, tally.Total(Committed), "a paused owner's work is done by others, or later")
	sound(t, tables)
	return tally
}

// Whoever is paused at a statement goes on when another has written a newer one:
// it is refused, or without a guard, overwrites that.
func TestAnOvertakenOwner(t *testing.T) {
	for name, c := range map[string]struct{ guarded, coarseIsLate bool }{
		"fine":             {guarded: true},
		"coarse":           {guarded: true, coarseIsLate: true},
		"fine, no guard":   {},
		"coarse, no guard": {coarseIsLate: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				archive := &shelf{guarded: c.guarded}
				begin := time.Now()
				tally := overtakeOnce(t, archive, c.coarseIsLate)
				require.Equal(t, 1, archive.written[0].Changes)
				require.Equal(t, int64(1001_00), archive.written[0].Balance)
				require.GreaterOrEqual(t, archive.at[0].Sub(begin), lease, "the locks were taken over")
				if c.guarded {
					require.Len(t, archive.written, 1)
					require.Equal(t, int64(1), tally.Stale.Load())
					require.Equal(t, int64(1), tally.Archived.Load())
					return
				}
				require.Len(t, archive.written, 2)
				require.Equal(t, 0, archive.written[1].Changes)
				require.Less(t, archive.written[1].Token, archive.written[0].Token)
				require.Equal(t, int64(2), tally.Archived.Load())
			})
		})
	}
}

// A dead owner writes no statements either.
func TestADeadOwnersStatement(t *testing.T) {
	archive := &shelf{}
	line := &connection{gone: func() {}}
	line.cut()
	err := archiveLine{line: line, to: archive, tally: NewTally()}.Write(t.Context(), 1, nil, []books.Statement{{}})
	require.ErrorIs(t, err, errCut)
	require.Empty(t, archive.written)
}
