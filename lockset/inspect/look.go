package inspect

import (
	"context"
	"slices"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/ordering"
)

// View is a key's row and what there is around it.
type View struct {
	Row   Row
	Above []Row // the rows of the key's ancestors, outermost first, also those that do not exist
	// Witnesses are the rows of the keys that the intents on the key's row name, each once.
	// An intent whose unit does not hold its witness is stale: whoever wants the key as a
	// whole removes it.
	Witnesses []Row
}

// How often a look is repeated because intents came meanwhile whose witnesses were not read.
const mostLooks = 5

// Look reads the row of a key with those above it and the witnesses of its intents, all as
// of one moment, consistently. Where intents come and go all the time, the witnesses of some
// of them may be missing. A row that holdall did not write is in the view, with its Damage.
//
// Errors: *ordering.KeyError, *[lockset.TableError], *[lockset.NoAnswerError].
func (i *Inspector) Look(ctx context.Context, key ordering.Key) (View, error) {
	if err := key.Validate(); err != nil {
		return View{}, err
	}
	above := key.Ancestors()
	own := append(slices.Clone(above), key)
	var witnesses []ordering.Key
	for n := 1; ; n++ {
		seen, err := read(ctx, i.rows, slices.Concat(own, witnesses))
		if err != nil {
			return View{}, err
		}
		rows := make([]Row, len(seen))
		for j, s := range seen {
			rows[j] = s.shown
		}
		view := View{Above: rows[:len(above)], Row: rows[len(above)], Witnesses: rows[len(own):]}
		named := witnessesOf(view.Row)
		if missing := slices.ContainsFunc(named, func(k ordering.Key) bool { return !slices.Contains(witnesses, k) }); !missing || n == mostLooks {
			view.Witnesses = slices.DeleteFunc(view.Witnesses, func(r Row) bool { return !slices.Contains(named, r.Key) })
			return view, nil
		}
		witnesses = named
	}
}

// witnessesOf are the keys that the intents of a row name, each once, in order.
func witnessesOf(r Row) []ordering.Key {
	var keys []ordering.Key
	for _, in := range r.Intents { // in the order of their witnesses
		keys = append(keys, in.Witness)
	}
	return slices.Compact(keys)
}

// Below returns the rows below a key that are not idle, in the order of their keys, as many as most, and
// whether there are more. A row that holdall did not write is one of them, and has a Damage. It lists
// the whole table, as o says but for its Prefix: see [Inspector.List] for its errors, after which there
// are no rows.
func (i *Inspector) Below(ctx context.Context, key ordering.Key, most int, o ListOptions) (rows []Row, more bool, err error) {
	o.Prefix = string(key) + "/"
	for row, err := range i.List(ctx, o) {
		switch {
		case err != nil && row.Damage == "":
			return nil, false, err
		case row.Idle():
			continue
		case len(rows) == most:
			more = true
		default:
			rows = append(rows, row)
		}
		if more {
			break
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return ordering.Compare(a.Key, b.Key) })
	return rows, more, nil
}

// seenRow is a row as it was seen.
type seenRow struct {
	locks.Seen
	shown Row
}

// read reads the rows of keys as of one moment, if they fit into one transaction.
func read(ctx context.Context, rows *locks.Operator, keys []ordering.Key) ([]seenRow, error) {
	seen, err := rows.Read(ctx, keys)
	if err != nil {
		return nil, err
	}
	all := make([]seenRow, len(seen))
	for n, s := range seen {
		all[n] = seenRow{Seen: s, shown: rowOf(s.Item, s.Row, s.Damage)}
	}
	return all, nil
}
