package keys

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// onPage returns the numbers in the row of the page's table that begins with these cells.
func onPage(t *testing.T, cells ...string) (numbers []float64) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	begin := "\n| " + strings.Join(cells, " | ") + " | "
	_, row, found := strings.Cut(string(page), begin)
	require.True(t, found, "the page has no row%s", begin)
	row, _, _ = strings.Cut(row, "\n")
	for _, digits := range regexp.MustCompile(`[\d.]+`).FindAllString(strings.ReplaceAll(row, ",", ""), -1) {
		n, err := strconv.ParseFloat(digits, 64)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	return numbers
}

// near requires that a number of the page is what was measured, nearly: which of two requests at one
// moment is first is Go's choice, and where units meet the rate differs by up to a tenth.
func near(t *testing.T, measured, page float64, lock bool, what string) {
	t.Helper()
	t.Logf("%s, locks first %v, seed %d: %.1f; the page says %g", what, lock, seed, measured, page)
	require.InEpsilon(t, page, measured, 0.25, "%s, locks first %v", what, lock)
}

// lengthFor is how long units are counted of which the page says that there are so many a second.
func lengthFor(rate float64) time.Duration {
	return min(max(time.Duration(150/rate*float64(time.Second)), 250*time.Millisecond), time.Second)
}

// A first segment that everybody shares is in everybody's way.
func TestAHotFirstSegment(t *testing.T) {
	for _, c := range []struct {
		name  string
		guard func(id string) ordering.Key
	}{
		{"`article:7`", func(id string) ordering.Key { return ordering.Join("article:" + id) }},
		{"`shelf:3/article:7`, 100 shelves", func(id string) ordering.Key { return ordering.Join("shelf:"+id[3:], "article:"+id) }},
		{"`articles/7`", func(id string) ordering.Key { return ordering.Join("articles", id) }},
	} {
		page := onPage(t, c.name)
		for n, want := range page {
			lock, processes := n >= 3, []int{1, 4, 16}[n%3]
			if testing.Short() && want > 120 {
				continue // fewer, and those of which there are few units
			}
			inTown(t, processes, lengthFor(want), c.guard, func(w *town) {
				rates := w.work(func(random *rand.Rand) (unitofwork.Work, task) {
					return w.change(lock, fmt.Sprintf("%05d", random.IntN(10_000)))
				})
				near(t, rates[0], want, lock, fmt.Sprint(c.name, " by ", processes*clients, " clients"))
			})
		}
	}
}

// A unit that wants a hot key and a cold one holds the one that comes first while it waits for the
// other.
func TestAHotKeyAndColdOnes(t *testing.T) {
	const length, processes = 4 * time.Second, 8
	for _, racks := range []int{4, 16} {
		for _, stock := range []string{"a-stock", "stock"} {
			if testing.Short() && (racks != 4 || stock != "a-stock") {
				continue // one of four
			}
			guard := func(id string) ordering.Key {
				if id == "stock" {
					return ordering.Join(stock)
				}
				return ordering.Join("rack:" + id)
			}
			page := onPage(t, strconv.Itoa(racks), "`"+stock+"`")
			inTown(t, processes, length, guard, func(w *town) {
				rack := func(random *rand.Rand) string { return strconv.Itoa(random.IntN(racks)) }
				rates := w.work(
					func(random *rand.Rand) (unitofwork.Work, task) { return slowly(w.change(true, "stock", rack(random))) },
					func(random *rand.Rand) (unitofwork.Work, task) { return slowly(w.change(true, rack(random))) },
				)
				near(t, rates[0], page[0], true, "stock and a rack")
				near(t, rates[1], page[1], true, "a rack")
			})
		}
	}
}

// slowly has a task take a while under its locks.
func slowly(work unitofwork.Work, do task) (unitofwork.Work, task) {
	return work, func(ctx context.Context, u *unitofwork.Unit) error {
		time.Sleep(10 * time.Millisecond)
		return do(ctx, u)
	}
}

// Fine keys let more units work at a time, if these want different records.
func TestCoarseAgainstFine(t *testing.T) {
	const processes, customers, each = 16, 10, 10
	for _, c := range []struct {
		name  string
		guard func(id string) ordering.Key
	}{
		{"`customer:42`, for all ten", func(id string) ordering.Key { return ordering.Join("customer:" + id[:1]) }},
		{"`customer:42/account:7`", func(id string) ordering.Key { return ordering.Join("customer:"+id[:1], "account:"+id) }},
		{"`account:7`", func(id string) ordering.Key { return ordering.Join("account:" + id) }},
	} {
		page := onPage(t, c.name)
		for n, want := range page {
			lock, wanted := n >= 2, []int{1, each}[n%2]
			if testing.Short() && (!lock || wanted != 1 || want > 700) {
				continue // one of four, and not the one of most units
			}
			inTown(t, processes, lengthFor(want), c.guard, func(w *town) {
				rates := w.work(func(random *rand.Rand) (unitofwork.Work, task) {
					customer, first := random.IntN(customers), random.IntN(each)
					ids := make([]string, wanted)
					for i := range ids {
						ids[i] = fmt.Sprint(customer, (first+i)%each)
					}
					return w.change(lock, ids...)
				})
				near(t, rates[0], want, lock, fmt.Sprintf("%s, %d of ten", c.name, wanted))
			})
		}
	}
}
