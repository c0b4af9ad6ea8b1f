package unitofwork

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A group may have no time left for a member before that has noticed that it is its turn.
func TestAMemberThatIsLeftOutBeforeItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &Unit{optimistic: &optimistic{}}
		f := &follower{u: u, changed: make(chan struct{}, 1), over: make(chan struct{})}
		g := &group{lead: &Unit{nonce: "lead"}}
		require.True(t, f.take(g) && f.start(g) && f.goAway())
		require.True(t, f.await(t.Context()))
		require.True(t, u.follows())
	})
}
