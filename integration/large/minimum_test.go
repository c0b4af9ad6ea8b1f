package large

import (
	"fmt"
	"strings"

	"github.com/holdall/holdall/internal/plans"
)

// What DynamoDB takes in one request, and how much of a journal one row has.
const (
	acquiredAtOnce = 24
	actionsAtOnce  = 100
	deletedAtOnce  = 25
	journalRow     = 360 << 10
)

// term is a part of the minimum.
type term struct {
	what     string
	requests int
}

// minimum are the fewest requests by which a unit can commit: without reads,
// without heartbeats and with all transactions full. bytes are its journal's.
func minimum(plan plans.Plan, writes, bytes int) []term {
	rows := plan.Rows()
	if rows+writes <= actionsAtOnce {
		return []term{{"acquire", per(rows, acquiredAtOnce)}, {"commit", 1}}
	}
	journal := per(bytes, journalRow)
	return []term{
		{"acquire", per(rows, acquiredAtOnce)},
		{"rehearse a write of each shape", 1},
		{"write the journal, with the entry of an open unit", journal},
		{"mark", per(rows, actionsAtOnce)},
		{"decide", 1},
		{"apply and free", per(rows+writes, actionsAtOnce)},
		{"conclude", 1},
		{"delete the journal", per(journal, deletedAtOnce)},
		{"remove the entry", 1},
	}
}

// per is how many requests take n, so many in each.
func per(n, each int) int { return (n + each - 1) / each }

func total(terms []term) (n int) {
	for _, t := range terms {
		n += t.requests
	}
	return n
}

func text(terms []term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = fmt.Sprintf("%s %d", t.what, t.requests)
	}
	return strings.Join(parts, " + ")
}
