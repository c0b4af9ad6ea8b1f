package plain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 999 * time.Millisecond: "0s", 61*time.Second + time.Millisecond: "1m1s", 90 * time.Minute: "1h30m",
		47 * time.Hour: "47h0m", 49 * time.Hour: "2d",
	} {
		require.Equal(t, want, Ago(d))
	}
}
