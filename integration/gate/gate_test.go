package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

func TestTheRulesOfCoarseAndFineKeys(t *testing.T) {
	type admission struct {
		token fencing.Token
		keys  []ordering.Key
		found fencing.Token // that makes it stale; zero if it is admitted
		at    ordering.Key
	}
	of := func(token fencing.Token, keys ...ordering.Key) admission { return admission{token: token, keys: keys} }
	stale := func(a admission, found fencing.Token, at ordering.Key) admission {
		a.found, a.at = found, at
		return a
	}
	each(t, func(t *testing.T, s *store) {
		for name, all := range map[string][]admission{
			"the same key":               {of(10, "K"), of(10, "K"), of(12, "K"), stale(of(11, "K"), 12, "K"), of(12, "K")},
			"fine after coarse":          {of(10, "K"), stale(of(9, "K/a"), 10, "K"), of(11, "K/a")},
			"coarse after fine":          {of(10, "K/a"), stale(of(9, "K"), 10, "K"), of(11, "K")},
			"much finer":                 {of(10, "K/a/b/c"), stale(of(9, "K"), 10, "K"), stale(of(9, "K/a"), 10, "K/a"), stale(of(9, "K/a/b"), 10, "K/a/b")},
			"much coarser":               {of(10, "K"), stale(of(9, "K/a/b/c"), 10, "K")},
			"beside each other":          {of(10, "K/a"), of(9, "K/b"), of(8, "K/c/d"), of(10, "K/a")},
			"a name that begins alike":   {of(10, "K/a"), of(9, "K/ab"), of(8, "K/a b"), of(7, "Kx")},
			"one of many is stale":       {of(10, "K/b"), stale(of(9, "K/a", "K/b", "K/c"), 10, "K/b"), of(8, "K/a"), of(8, "K/c")},
			"the first of several":       {of(10, "K/b", "K/c"), stale(of(9, "K/c", "K/b", "K/a"), 10, "K/b")},
			"covered by another of them": {of(10, "K", "K/a"), stale(of(9, "K/a"), 10, "K")},
			"whatever is in a key":       {of(10, "K/'; DROP TABLE x; --/ż%25\"$1?1"), stale(of(9, "K/'; DROP TABLE x; --"), 10, "K/'; DROP TABLE x; --")},
		} {
			t.Run(name, func(t *testing.T) {
				own := func(k ordering.Key) ordering.Key { return ordering.Key(strings.Replace(string(k), "K", name, 1)) }
				for _, a := range all {
					keys := slices.Clone(a.keys)
					for i := range keys {
						keys[i] = own(keys[i])
					}
					err := s.admit(t, a.token, keys...)
					if a.found == 0 {
						require.NoError(t, err, "%v", a)
						continue
					}
					var e *fencing.StaleError
					require.ErrorAs(t, err, &e, "%v", a)
					require.ErrorIs(t, err, fencing.ErrStale)
					require.Equal(t, fencing.StaleError{Resource: fmt.Sprintf("key %q", string(own(a.at))), Token: a.token, Found: a.found}, *e)
				}
			})
		}
	})
}

// What is admitted is what a list of all that was admitted before allows.
func TestAdmissionsAgainstAModel(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		type met struct {
			key   ordering.Key
			token fencing.Token
		}
		var admitted []met
		for i := range 400 {
			keys := make([]ordering.Key, 1+r.IntN(4))
			for i := range keys {
				keys[i] = randomKey(r)
			}
			token := fencing.Token(1 + i/4 + r.IntN(30)) // it rises, so that some are admitted to the last
			stale := slices.ContainsFunc(admitted, func(m met) bool {
				return m.token > token && slices.ContainsFunc(keys, func(k ordering.Key) bool { return k.Covers(m.key) || m.key.Covers(k) })
			})
			err := s.admit(t, token, keys...)
			if stale {
				require.ErrorIs(t, err, fencing.ErrStale, "%v %v after %v", keys, token, admitted)
				continue
			}
			require.NoError(t, err, "%v %v after %v", keys, token, admitted)
			for _, k := range keys {
				admitted = append(admitted, met{k, token})
			}
		}
	})
}

func randomKey(r *rand.Rand) ordering.Key {
	segments := []string{"a", "b", "c"}
	key := []string{segments[r.IntN(3)]}
	for len(key) < 3 && r.IntN(3) > 0 {
		key = append(key, segments[r.IntN(3)])
	}
	return ordering.Join(key...)
}

// Many transactions on the same keys, coarse and fine ones, named in any order:
// none dies of a deadlock, and no record is ever written by an older token than
// the one it has.
func TestConcurrentAdmissions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		records := `"records of ` + s.table + `"`
		s.exec(t, s.db, "CREATE TABLE "+records+" (id TEXT PRIMARY KEY, token BIGINT, writes BIGINT)")
		var leaves []ordering.Key
		for _, family := range []string{"a", "b"} {
			for _, part := range []string{"x", "y", "z"} {
				leaves = append(leaves, ordering.Join(family, part))
				s.exec(t, s.db, "INSERT INTO "+records+" VALUES (?, 0, 0)", family+"/"+part)
			}
		}
		choices := append([]ordering.Key{"a", "b"}, leaves...)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		tokens := tokens.NewClock(time.Now)
		var mu sync.Mutex
		var wg sync.WaitGroup
		counts := map[bool]int{}
		for worker := range 8 {
			r := rand.New(rand.NewPCG(seed, uint64(worker)))
			wg.Go(func() {
				for range 40 {
					keys := make([]ordering.Key, 1+r.IntN(4))
					for i := range keys {
						keys[i] = choices[r.IntN(len(choices))]
					}
					token := tokens.Next() - fencing.Token(r.IntN(40)) // some are overtaken
					err := s.Do(t.Context(), s.db, token, keys, func(tx *sql.Tx) error {
						for _, leaf := range leaves {
							if slices.ContainsFunc(keys, func(k ordering.Key) bool { return k.Covers(leaf) }) {
								s.write(t, tx, records, leaf, token)
							}
						}
						return nil
					})
					if err != nil {
						require.ErrorIs(t, err, fencing.ErrStale)
					}
					mu.Lock()
					counts[err == nil]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		t.Logf("%d admitted, %d stale", counts[true], counts[false])
		require.NotZero(t, counts[true])
		require.NotZero(t, counts[false])
	})
}

func (s *store) write(t *testing.T, tx *sql.Tx, records string, id ordering.Key, token fencing.Token) {
	var before int64
	require.NoError(t, tx.QueryRow(s.numbered("SELECT token FROM "+records+" WHERE id = ?"), string(id)).Scan(&before))
	if before > int64(token) {
		t.Errorf("%s: %v writes over %v", id, token, before)
	}
	s.exec(t, tx, "UPDATE "+records+" SET token = ?, writes = writes + 1 WHERE id = ?", int64(token), string(id))
}

// A refused token leaves no trace, nor does a transaction that fails after it.
func TestWhatIsRolledBackAdmitsNobody(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		require.NoError(t, s.admit(t, 10, "b"))
		require.ErrorIs(t, s.admit(t, 9, "a", "b", "c"), fencing.ErrStale)
		require.NoError(t, s.admit(t, 5, "a", "c"))
		failed := errors.New("no")
		require.ErrorIs(t, s.Do(t.Context(), s.db, 20, []ordering.Key{"a"}, func(*sql.Tx) error { return failed }), failed)
		require.PanicsWithValue(t, "oh", func() {
			_ = s.Do(t.Context(), s.db, 20, []ordering.Key{"a"}, func(*sql.Tx) error { panic("oh") })
		})
		require.NoError(t, s.admit(t, 6, "a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Do(ctx, s.db, 20, []ordering.Key{"a"}, func(*sql.Tx) error { return nil }), context.Canceled)
	})
}

// counting counts statements.
type counting struct {
	*sql.Tx
	n int
}

func (c *counting) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.n++
	return c.Tx.QueryContext(ctx, query, args...)
}

func TestManyKeysAreAdmittedByOneStatement(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := make([]ordering.Key, 3000)
		for i := range keys {
			keys[i] = ordering.Join(fmt.Sprint("c", i%1000), fmt.Sprint("a", i))
		}
		tx, err := s.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		c := &counting{Tx: tx}
		require.NoError(t, s.Admit(t.Context(), c, 10, keys...))
		require.Equal(t, 1, c.n)
		require.NoError(t, tx.Commit())
		require.ErrorIs(t, s.admit(t, 9, keys[17]), fencing.ErrStale)
		require.ErrorIs(t, s.admit(t, 9, keys[17].Root()), fencing.ErrStale)
	})
}

func TestTheTableIsCreatedOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		require.NoError(t, s.admit(t, 10, "a"))
		for _, table := range []string{s.table, s.table + " that is new"} {
			gate, err := s.newGate(table)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { require.NoError(t, gate.CreateTable(t.Context(), s.db)) })
			}
			wg.Wait()
		}
		require.ErrorIs(t, s.admit(t, 9, "a"), fencing.ErrStale)
		missing, err := s.newGate(s.table + " that is not there")
		require.NoError(t, err)
		err = missing.Do(t.Context(), s.db, 10, []ordering.Key{"a"}, func(*sql.Tx) error { return nil })
		require.ErrorContains(t, err, "that is not there")
	})
}

// WithPgx does the same with pgx itself, without database/sql.
func WithPgx(ctx context.Context, gate *fencing.Gate, conn *pgx.Conn, token fencing.Token, keys []ordering.Key, write func(pgx.Tx) error) error {
	statement, args, judge, err := gate.Admission(token, keys...)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if err := judge(rows); err != nil {
			return err // BeginFunc rolls back
		}
		return write(tx)
	})
}

// The statement may be sent with a library that is not database/sql.
func TestAdmissionWithPgxItself(t *testing.T) {
	s := postgres(t)
	conn, err := pgx.Connect(t.Context(), engines.Postgres(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	admit := func(token fencing.Token, keys ...ordering.Key) error {
		return WithPgx(t.Context(), s.Gate, conn, token, keys, func(pgx.Tx) error { return nil })
	}
	require.NoError(t, admit(10, "a/x", "b"))
	require.ErrorIs(t, admit(9, "a"), fencing.ErrStale)
	require.NoError(t, admit(9, "a/y"))
}

// Under the stricter levels of PostgreSQL, who waited for another's admission is
// refused, and may try again; nobody is admitted who was overtaken.
func TestIsolationLevels(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			s := postgres(t)
			tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			var one int
			require.NoError(t, tx.QueryRow("SELECT 1").Scan(&one)) // its snapshot is taken
			require.NoError(t, s.admit(t, 11, "a"))
			err = s.Admit(t.Context(), tx, 10, "a/x")
			require.Error(t, err)
			if level == sql.LevelReadCommitted {
				require.ErrorIs(t, err, fencing.ErrStale)
			}
			require.NoError(t, tx.Rollback())
			require.ErrorIs(t, s.admit(t, 10, "a/x"), fencing.ErrStale)
		})
	}
}

func TestATokenIsAdmittedInATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		require.ErrorContains(t, s.Admit(t.Context(), s.db, 10, "a"), "in a transaction")
		require.NoError(t, s.admit(t, 9, "a"))
	})
}
