package recent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/recent"
	"github.com/holdall/holdall/ordering"
)

func key(i int) ordering.Key { return ordering.Key(fmt.Sprint("k", i)) }

func TestWhatIsSetIsRemembered(t *testing.T) {
	var m recent.Map[int]
	_, known := m.Get("a")
	require.False(t, known)
	m.Delete("a")
	m.Set("a", 1)
	m.Set("b", 0)
	m.Set("a", 2)
	v, known := m.Get("a")
	require.True(t, known)
	require.Equal(t, 2, v)
	_, known = m.Get("b")
	require.True(t, known, "the zero value is one")
	m.Delete("a")
	_, known = m.Get("a")
	require.False(t, known)
	require.Equal(t, 1, m.Size())
}

// The newest are remembered, whatever comes, and never more than two generations.
func TestTheOldestAreForgotten(t *testing.T) {
	var m recent.Map[int]
	for i := range 5 * recent.Generation / 2 {
		m.Set(key(i), i)
		m.Set("again and again", i)
		require.LessOrEqual(t, m.Size(), 2*recent.Generation)
		for _, before := range []int{0, recent.Generation - 2} {
			if i >= before {
				v, known := m.Get(key(i - before))
				require.True(t, known)
				require.Equal(t, i-before, v)
			}
		}
	}
	v, known := m.Get("again and again")
	require.True(t, known)
	require.Equal(t, 5*recent.Generation/2-1, v)
	_, known = m.Get(key(0))
	require.False(t, known)
	old := 3 * recent.Generation / 2
	_, known = m.Get(key(old))
	require.True(t, known, "it is of the older generation")
	m.Delete(key(old))
	_, known = m.Get(key(old))
	require.False(t, known)
}
