package unitofwork

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
)

// FuzzConfig: whatever a configuration says, it is refused with the name of a field,
// or IDs are remembered for longer than clocks may be wrong.
func FuzzConfig(f *testing.F) {
	for _, d := range []int64{0, 1, -1, int64(20 * 24 * time.Hour), int64(28 * 24 * time.Hour), math.MaxInt64, math.MaxInt64/2 + 1, math.MinInt64} {
		f.Add("units", "", d, int64(0), 0)
		f.Add("locks", "_fence", d, d, 100)
		f.Add("", "a.b", int64(0), d, 101)
	}
	f.Fuzz(func(t *testing.T, table, fence string, ids, retention int64, size int) {
		shared, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks", Retention: time.Duration(retention)})
		if err != nil {
			require.ErrorAs(t, err, new(*locks.ConfigError))
			return
		}
		given := Config{Table: table, FenceAttribute: fence, IDRetention: time.Duration(ids), TransactionSize: size}
		c, err := New(shared, given)
		if err != nil {
			var config *locks.ConfigError
			require.ErrorAs(t, err, &config)
			require.NotEmpty(t, config.Field)
			return
		}
		require.NotEqual(t, "locks", c.cfg.Table)
		require.NotEmpty(t, c.cfg.FenceAttribute)
		require.True(t, c.cfg.TransactionSize >= 1 && c.cfg.TransactionSize <= requests.MaxActions)
		require.GreaterOrEqual(t, float64(c.cfg.IDRetention)*1.001, 2*float64(c.lockConfig.Retention), "%+v", given)
	})
}

// FuzzRef: any text is a reference that names a unit in one way, or an IDError.
func FuzzRef(f *testing.F) {
	f.Add("unit:aaaa:1700000000000000:1700000000:payment%2F7:a/b:c", "id")
	f.Add("unit::1:1::a", "unit:x")
	f.Add("unit:u:9007199254740993:-5:%zz:a", strings.Repeat("x", 1025))
	f.Add("unit:u:9007199254740993:-5::a", "")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, s, id string) {
		err := checkID(id)
		if err != nil {
			require.ErrorAs(t, err, new(*IDError))
		}
		r, refErr := parseRef(s)
		if refErr != nil {
			require.ErrorAs(t, refErr, new(*IDError))
			return
		}
		require.True(t, r.token.Valid() && r.unit != "")
		require.NoError(t, r.key.Validate())
		again, refErr := parseRef(r.String())
		require.NoError(t, refErr)
		require.Equal(t, r, again)
		if r.id = id; err == nil {
			again, refErr = parseRef(r.String())
			require.NoError(t, refErr)
			require.Equal(t, r, again)
		}
	})
}
