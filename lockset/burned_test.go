package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A burned token is of use for as long as the row that has it: a row that was
// about to expire stays for the retention.
func TestABurnedTokenOutlivesWhatIsUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const retention = 5 * time.Minute
		short := func(c *lockset.Config) { c.MaxAge, c.Retention = time.Minute, retention }
		b.free(b.take(b.owner("before", nil, short), "a"))
		time.Sleep(retention - 30*time.Second)

		o := b.owner("o", nth("UpdateItem", 1, faults.DeliverLate(2*time.Minute, faults.Hang)), short)
		ctx, cancel := context.WithTimeout(t.Context(), lease/20)
		defer cancel()
		_, err := o.Acquire(ctx, []ordering.Key{"a"})
		require.Error(t, err)
		for range 4 { // the row's time comes, the late request after it
			time.Sleep(31 * time.Second)
			b.db.Expire(time.Now())
		}
		o.net.Wait()
		b.allFree()

		time.Sleep(retention)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"), "it does expire")
	})
}
