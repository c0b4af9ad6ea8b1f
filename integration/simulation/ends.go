package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// unit is what is known of a unit of the library's, by its nonce.
type unit struct {
	p      *process
	ended  time.Time // when it had undone, or committed, all it did; zero: never, or it could not
	loose  bool      // it said that it could not undo everything
	waits  time.Time // until then it may be in a queue that it leaves in the background
	cleans bool      // in the background, for a caller whose time was over
	joins  map[ordering.Key]int

	// The highest tokens with which it asked for a place, and wrote anything else.
	place, wrote int64

	had     bool   // its keys
	taking  string // the first row of the chunk that it asked for last: it has those before
	placed  bool   // it asked for a place for the sake of that chunk
	doubled bool   // the network has a copy of a request for that chunk
	unheard bool   // of such a request
}

// joinsLate reports whether a late copy of a join may give the unit a place that it does
// not want: one with headroom, above all that the unit wrote else. It holds nothing, and
// others drop it.
func (u *unit) joinsLate() bool { return u.place > u.wrote }

// mayWait reports whether a unit at its end may have a place in a queue yet.
func (u *unit) mayWait() bool { return u.joinsLate() || time.Now().Before(u.waits) }

// takesLate reports whether a late copy may take rows for the unit: all takings of its last chunk
// were refused, without a place, and burning would cost every refused caller a second request. Others
// bury it.
func (u *unit) takesLate() bool { return u.doubled && !u.unheard && !u.had && !u.placed }

// mayBeShown reports whether a row may show the unit at its end, waiting in its queue or otherwise.
func (u *unit) mayBeShown(waits bool) bool {
	return u.loose || u.cleans || waits && u.mayWait() || u.takesLate()
}

// unanswered are the faults after which a unit cannot know what became of its request.
var unanswered = []faults.Kind{faults.AnswerLost, faults.RequestLost, faults.DeliveredLate, faults.ServerFailed}

// asks notes the tokens of a unit's writes, and what befalls them. A join may have headroom: its token is above
// that with which the unit has the row after it.
func (h *history) asks(c faults.Call, f faults.Fault) {
	var updates []*types.Update
	switch in := c.Input.(type) {
	case *dynamodb.UpdateItemInput:
		updates = append(updates, &types.Update{Key: in.Key, UpdateExpression: in.UpdateExpression, ExpressionAttributeValues: in.ExpressionAttributeValues})
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			if item.Update != nil {
				updates = append(updates, item.Update)
			}
		}
	}
	taking := ""
	if slices.ContainsFunc(updates, func(u *types.Update) bool { return u.ExpressionAttributeValues[":lease"] != nil }) {
		taking = keyText(updates[0].Key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, update := range updates {
		values := update.ExpressionAttributeValues
		name, named := values[":unit"]
		nonce := text(name)
		if !named { // a join for the sake of a key below names its unit in its place only
			nonce = lockrow.Waiter(text(values[":waiter"])).Unit()
		}
		u := h.units[nonce]
		if u != nil && taking != "" {
			u.asksToTake(taking, f)
		}
		token, stamped := values[":token"]
		if u == nil || !stamped {
			continue
		}
		n, err := strconv.ParseInt(text(token), 10, 64)
		must(err)
		if strings.Contains(*update.UpdateExpression, "list_append") {
			u.place, u.placed = max(u.place, n), true
		} else {
			u.wrote = max(u.wrote, n)
		}
	}
}

// asksToTake notes that the unit asked for a chunk of rows, by the first of them, and what befell that.
func (u *unit) asksToTake(first string, f faults.Fault) {
	if u.taking != first {
		u.taking, u.placed, u.doubled, u.unheard = first, false, false, false
	}
	u.doubled = u.doubled || f.Kind == faults.Duplicated
	u.unheard = u.unheard || slices.Contains(unanswered, f.Kind)
}

// born notes that a process begins a unit.
func (h *history) born(nonce string, p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.units[nonce] = &unit{p: p, joins: map[ordering.Key]int{}}
}

// joined notes that a unit has a place in a row's queue. It may lose it, to
// Grace, to a row's deletion or to another row that it needs, but not for ever.
func (h *history) joined(nonce string, key ordering.Key) {
	n := 0
	h.of(nonce, func(u *unit) {
		u.joins[key]++
		n = u.joins[key]
	})
	if n > mostJoins {
		h.problem("unit %s joins the queue of %s for the %dth time", nonce, key, n)
	}
}

// mostJoins is how often a unit may join the queue of one row.
const mostJoins = 8

// ended notes that a unit is at its end, and that by its own account nothing is
// left of it: from here on no row may ever show it again.
func (h *history) ended(nonce string) {
	h.of(nonce, func(u *unit) {
		if u.ended.IsZero() && !u.p.dead() {
			u.ended = time.Now()
		}
	})
}

// of has something noted of a unit, if it is known.
func (h *history) of(nonce string, note func(*unit)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u := h.units[nonce]; u != nil {
		note(u)
	}
}

// leaves notes that a unit that has given up may go on leaving queues for a lease, and
// for as long as its goroutine stalls. It has nothing else any more.
func (h *history) leaves(nonce string) {
	h.of(nonce, func(u *unit) { u.waits = time.Now().Add(u.p.h.lease + longestStall(u.p.h.lease)) })
}

// loose notes that a unit said it could not undo what it did.
func (h *history) loose(nonce string) { h.of(nonce, func(u *unit) { u.loose = true }) }

// cleans notes that a unit cleans up in the background, or that it has done so.
func (h *history) cleans(nonce string, goesOn bool) { h.of(nonce, func(u *unit) { u.cleans = goesOn }) }

// shown notes that a row shows a unit after a write, waiting in its queue or otherwise.
func (h *history) shown(row, nonce string, waits bool) {
	h.mu.Lock()
	u := h.units[nonce]
	ghost := u != nil && !u.ended.IsZero() && !u.mayBeShown(waits)
	h.mu.Unlock()
	if ghost {
		h.problem("row %s shows unit %s of %s, which was at its end at %v", row, nonce, u.p.name, h.when(u.ended))
	}
}

// left notes what is in the lock table when everybody has gone: it may only be
// of the dead, and of those who said that they could not undo it.
func (h *history) left(row, nonce string, waits bool) {
	h.mu.Lock()
	u := h.units[nonce]
	ghost := u != nil && !u.p.dead() && !u.mayBeShown(waits)
	h.mu.Unlock()
	if ghost {
		h.problem("row %s is left with unit %s of %s, which is alive and has said nothing of it", row, nonce, u.p.name)
	}
}

// expired notes that a row vanished that showed a unit.
func (h *history) expired(row, nonce string) {
	if h.believes(nonce) {
		h.problem("row %s has expired while unit %s held it", row, nonce)
	}
}

// believes reports whether a unit believes that it has its keys.
func (h *history) believes(nonce string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.beliefs, func(b *belief) bool { return b.unit == nonce && b.until().IsZero() })
}

// loosed listens to what the library has to say of ends that it could not bring
// about, and would otherwise keep to itself: others take over.
type loosed struct{ h *history }

func (loosed) Enabled(context.Context, slog.Level) bool { return true }
func (l loosed) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l loosed) WithGroup(string) slog.Handler          { return l }

func (l loosed) Handle(_ context.Context, r slog.Record) error {
	says := func(text string) bool { return strings.Contains(r.Message, text) }
	background := says("in the background")
	ends := []string{"release of a unit", "locks of a group are in doubt", "was not given up", "were not released"}
	if background {
		ends = []string{"not all was"}
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "unit" {
			return true
		}
		if background {
			l.h.cleans(a.Value.String(), says("goes on"))
		}
		if slices.ContainsFunc(ends, says) {
			l.h.loose(a.Value.String())
		}
		return true
	})
	return nil
}

// joined reports whether an error has others beside its cause: what could not be
// undone.
func joined(err error) bool { return fmt.Sprintf("%T", err) == "*oneline.joined" }
