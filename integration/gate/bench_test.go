package gate

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// BenchmarkGuard compares transactions that write a record for each of some
// resources with the same ones behind a gate, one after the other in one run: the
// ratio of the medians is what the gate costs.
func BenchmarkGuard(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store{"PostgreSQL": postgres, "SQLite": sqlite} {
		for _, n := range []int{1, 10} {
			for kind, key := range map[string]func(i int) ordering.Key{
				"coarse": func(i int) ordering.Key { return ordering.Join(fmt.Sprint("customer:", i)) },
				"fine":   func(i int) ordering.Key { return ordering.Join(fmt.Sprint("customer:", i), "account:1") },
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, n, kind), func(b *testing.B) { benchGuard(b, open(b), n, key) })
			}
		}
	}
}

func benchGuard(b *testing.B, s *store, n int, key func(int) ordering.Key) {
	records := `"` + s.table + ` records"`
	s.exec(b, s.db, "CREATE TABLE "+records+" (id TEXT PRIMARY KEY, balance BIGINT)")
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = key(i)
	}
	token := tokens.NewClock(time.Now)
	written := s.numbered("INSERT INTO " + records + " VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET balance = excluded.balance")
	balance := 0
	work := func(tx *sql.Tx) error {
		for _, k := range keys {
			balance++ // a write of what is there already may cost a store nothing
			if _, err := tx.Exec(written, string(k), balance); err != nil {
				return err
			}
		}
		return nil
	}
	plain := func() error {
		tx, err := s.db.BeginTx(b.Context(), nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := work(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	gated := func() error { return s.Do(b.Context(), s.db, token.Next(), keys, work) }
	var without, with []time.Duration
	timed := func(all *[]time.Duration, f func() error) {
		began := time.Now()
		require.NoError(b, f())
		*all = append(*all, time.Since(began))
	}
	for range 20 { // connections, caches
		require.NoError(b, plain())
		require.NoError(b, gated())
	}
	for b.Loop() {
		timed(&without, plain)
		timed(&with, gated)
	}
	b.ReportMetric(float64(median(without).Microseconds()), "plain-µs")
	b.ReportMetric(float64(median(with).Microseconds()), "gated-µs")
	b.ReportMetric(float64(median(with))/float64(median(without)), "ratio")
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
