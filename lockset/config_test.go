package lockset_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
)

const week = 7 * 24 * time.Hour

func TestDefaults(t *testing.T) {
	c, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks"})
	require.NoError(t, err)
	is := c.Config()
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, `^\Q`+host+`\E [0-9a-f-]{36}$`, is.Owner)
	require.NotNil(t, is.Now)
	require.NotNil(t, is.Rand)
	require.NotNil(t, is.Logger)
	require.NotNil(t, is.Trace)
	require.NotEqual(t, is.Rand(t.Context()), is.Rand(t.Context()))
	is.Owner, is.Now, is.Rand, is.Logger, is.Trace = "", nil, nil, nil, nil
	require.Equal(t, lockset.Config{
		Table: "locks", HashKey: "key",
		Lease: 20 * time.Second, Heartbeat: 20 * time.Second / 3, Margin: 2 * time.Second, AttemptTimeout: 2 * time.Second,
		Poll: 400 * time.Millisecond, Grace: 5 * time.Second,
		MaxAge: week, Retention: 2 * week, ChunkSize: 24,
	}, is)
}

// What is set stays, and the other times go by the lease.
func TestWhatIsSetIsNoDefault(t *testing.T) {
	all := lockset.Config{
		Table: "locks", HashKey: "id", Owner: "me",
		Lease: time.Minute, Heartbeat: time.Second, Margin: 2 * time.Second, AttemptTimeout: 3 * time.Second,
		Poll: 4 * time.Second, Grace: 30 * time.Second, MaxAge: time.Hour, Retention: 2 * time.Hour, ChunkSize: 5,
	}
	c, err := lockset.New(struct{ lockset.DynamoDB }{}, all)
	require.NoError(t, err)
	is := c.Config()
	is.Now, is.Rand, is.Logger, is.Trace = nil, nil, nil, nil
	require.Equal(t, all, is)

	c, err = lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks", Lease: 10 * time.Minute})
	require.NoError(t, err)
	is = c.Config()
	require.Equal(t, []time.Duration{200 * time.Second, time.Minute, time.Minute, 12 * time.Second, 150 * time.Second},
		[]time.Duration{is.Heartbeat, is.Margin, is.AttemptTimeout, is.Poll, is.Grace})
}

func TestTheBoundsOfAConfiguration(t *testing.T) {
	const lease = 20 * time.Second
	for _, c := range []struct {
		field  string // that is refused; empty if none is
		change func(*lockset.Config)
	}{
		{"", func(*lockset.Config) {}},
		{"Table", func(c *lockset.Config) { c.Table = "" }},
		{"HashKey", func(c *lockset.Config) { c.HashKey = "unit" }},
		{"HashKey", func(c *lockset.Config) { c.HashKey = `a"b` }},
		{"", func(c *lockset.Config) { c.HashKey = "id" }},
		{"", func(c *lockset.Config) { c.Lease = locks.MinLease }},
		{"Lease", func(c *lockset.Config) { c.Lease = locks.MinLease - 1 }},
		{"Lease", func(c *lockset.Config) { c.Lease = -lease }},
		{"", func(c *lockset.Config) { c.Heartbeat, c.Margin, c.AttemptTimeout, c.Poll = 1, 1, 1, 1 }},
		{"Heartbeat", func(c *lockset.Config) { c.Heartbeat = -1 }},
		{"Margin", func(c *lockset.Config) { c.Margin = -1 }},
		{"AttemptTimeout", func(c *lockset.Config) { c.AttemptTimeout = -1 }},
		{"Poll", func(c *lockset.Config) { c.Poll = -1 }},
		{"", func(c *lockset.Config) { c.Retention = locks.MaxRetention }},
		{"Retention", func(c *lockset.Config) { c.Retention = locks.MaxRetention + 1 }},
		{"", func(c *lockset.Config) { c.MaxAge = lease }},
		{"MaxAge", func(c *lockset.Config) { c.MaxAge = lease - 1 }},
		{"", func(c *lockset.Config) { c.MaxAge = 2*week - 1 }},
		{"MaxAge", func(c *lockset.Config) { c.MaxAge = 2 * week }},
		{"", func(c *lockset.Config) { c.Heartbeat, c.AttemptTimeout, c.Margin = lease/2, lease/8, lease/4 }},
		{"Lease", func(c *lockset.Config) { c.Heartbeat, c.AttemptTimeout, c.Margin = lease/2+1, lease/8, lease/4 }},
		{"Lease", func(c *lockset.Config) { c.Heartbeat, c.AttemptTimeout, c.Margin = lease/2, lease/8+1, lease/4 }},
		{"Lease", func(c *lockset.Config) { c.Heartbeat, c.AttemptTimeout, c.Margin = lease/2, lease/8, lease/4+1 }},
		{"Lease", func(c *lockset.Config) { c.Heartbeat = math.MaxInt64 }}, // nor does a sum that overflows
		{"Lease", func(c *lockset.Config) { c.AttemptTimeout = 1 << 62 }},
		{"Lease", func(c *lockset.Config) { c.Margin = math.MaxInt64 }},
		{"", func(c *lockset.Config) { c.Poll, c.Grace = lease, 5*lease }},
		{"Poll", func(c *lockset.Config) { c.Poll, c.Grace = lease+1, 6*lease }},
		{"", func(c *lockset.Config) { c.Poll, c.Grace = time.Second, 5*time.Second }},
		{"Grace", func(c *lockset.Config) { c.Poll, c.Grace = time.Second, 5*time.Second-1 }},
		{"Grace", func(c *lockset.Config) { c.Grace = -1 }},
		{"", func(c *lockset.Config) { c.ChunkSize = 1 }},
		{"", func(c *lockset.Config) { c.ChunkSize = locks.MaxChunkSize }},
		{"ChunkSize", func(c *lockset.Config) { c.ChunkSize = locks.MaxChunkSize + 1 }},
		{"ChunkSize", func(c *lockset.Config) { c.ChunkSize = -1 }},
	} {
		cfg := lockset.Config{Table: "locks", Lease: lease}
		c.change(&cfg)
		_, err := lockset.New(struct{ lockset.DynamoDB }{}, cfg)
		if c.field == "" {
			require.NoError(t, err, "%+v", cfg)
			continue
		}
		var wrong *locks.ConfigError
		require.ErrorAs(t, err, &wrong, "%+v", cfg)
		require.Equal(t, c.field, wrong.Field, "%+v", cfg)
	}
	_, err := lockset.New(nil, lockset.Config{Table: "locks"})
	require.Error(t, err)
	require.Equal(t, 99, locks.MaxChunkSize)
	require.Equal(t, time.Second, locks.MinLease)
}

func TestAHashKeyOfATakenName(t *testing.T) {
	for _, name := range rowAttributes {
		_, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks", HashKey: name})
		require.ErrorAs(t, err, new(*locks.ConfigError), name)
	}
}

func TestHTTPClientSuitsLockTraffic(t *testing.T) {
	c := lockset.HTTPClient()
	require.Equal(t, 2*time.Second, c.GetDialer().Timeout)
	transport := c.GetTransport()
	require.Equal(t, 100, transport.MaxIdleConns)
	require.Equal(t, 100, transport.MaxIdleConnsPerHost)
	require.Equal(t, 2*time.Second, transport.TLSHandshakeTimeout)
}
