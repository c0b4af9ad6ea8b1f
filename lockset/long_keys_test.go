package lockset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A key may have 1,024 bytes. The text of an error has a part of it, and its field all.
func TestALongKeyIsCutInTheTextOfAnError(t *testing.T) {
	long := ordering.Key(strings.Repeat("k", 1000))
	for _, err := range []*lockset.HeldError{
		{Key: long, Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Owner: "o", Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Owner: "o", Since: time.Now(), Err: lockset.ErrWaited},
	} {
		require.Less(t, len(err.Error()), 300)
		require.Contains(t, err.Error(), "kkk…kkk")
	}
}
