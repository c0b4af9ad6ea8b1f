// Package nesting decides whether a call may be made under the context of lock sets and units
// that hold keys: a call that waits for what its own caller holds would wait for ever.
package nesting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// ErrNested matches every *[Error].
var ErrNested = next.Error("not under the context of a set or unit that holds the key", next.FixCall)

// Kind says whether keys are held, or asked for, by a lock set or by a unit.
type Kind string

// A unit under locks is a Unit, though it has a set.
const (
	Set  Kind = "set"
	Unit Kind = "unit"
)

// Holder is a set or a unit under whose context calls are made. It is safe for concurrent use.
type Holder interface {
	Kind() Kind
	// Nonce returns the holder's nonce.
	Nonce() string
	// Holding returns what it holds at this moment.
	Holding() Holding
}

// Holding is what a holder holds.
type Holding struct {
	Clients []any // which wait for the holder's end when they are closed
	Purpose string
	Table   Table          // of its lock rows
	Keys    []ordering.Key // in order, none of them covered by another
	Ended   bool           // it holds nothing any more
}

// Level is a holder, and those under whose contexts it began. Nil is nobody.
type Level struct {
	holder Holder
	outer  *Level

	mu    sync.Mutex
	inner []inner // sets that the function of a unit has taken
}

// inner is a set that the function of a unit has taken.
type inner struct {
	Holder
	waited bool // for its keys, if they were held
}

type contextKey struct{}

// Within returns a context under which calls are made by the caller of a holder.
func Within(ctx context.Context, h Holder) context.Context {
	return context.WithValue(ctx, contextKey{}, &Level{holder: h, outer: Of(ctx)})
}

// Without returns a context under which calls are made by nobody who holds anything: by another
// process, say, that a test plays.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, (*Level)(nil))
}

// Of returns the holders under whose contexts a call with this one is made.
func Of(ctx context.Context) *Level {
	l, _ := ctx.Value(contextKey{}).(*Level)
	return l
}

// Call is a call that needs keys.
type Call struct {
	Kind  Kind
	Nonce string // of the unit that makes it, if it has one: what it holds itself it may need
	Table Table
	// Ordered says that it waits for others while its caller holds what it holds, so the keys
	// must come later in the order of all keys.
	Ordered bool
}

// Refuse returns an *[Error] if a call that needs these keys would wait for its own caller, or
// may wait for another that waits for it.
func (l *Level) Refuse(c Call, keys ...ordering.Key) error {
	for ; l != nil; l = l.outer {
		if err := c.refusedBy(l.holder, keys); err != nil {
			return err
		}
	}
	return nil
}

// RefuseUnit returns an error if a unit would begin inside another.
func (l *Level) RefuseUnit() error {
	for ; l != nil; l = l.outer {
		if l.holder.Kind() == Unit && !l.holder.Holding().Ended {
			return &Error{text: "a unit of work cannot begin inside another: do everything in one function, or begin it when unit " +
				l.holder.Nonce() + " has ended"}
		}
	}
	return nil
}

// RefuseClose returns an error if one of these clients would be closed by the caller of a set or unit
// that it waits for.
func (l *Level) RefuseClose(clients ...any) error {
	for ; l != nil; l = l.outer {
		h := l.holder.Holding()
		if !h.Ended && slices.ContainsFunc(h.Clients, func(c any) bool { return slices.Contains(clients, c) }) {
			return &Error{text: fmt.Sprintf("Close would wait for the %s %s of its own caller, for ever: call it when that has ended",
				l.holder.Kind(), l.holder.Nonce())}
		}
	}
	return nil
}

// Began notes a set that began under these holders, and whether it waited for its keys.
func (l *Level) Began(set Holder, waited bool) {
	for ; l != nil; l = l.outer {
		if l.holder.Kind() == Unit {
			l.mu.Lock()
			l.inner = append(slices.DeleteFunc(l.inner, func(s inner) bool { return s.Holding().Ended }), inner{set, waited})
			l.mu.Unlock()
		}
	}
}

// RefuseInner returns an *[Error] if a unit needs keys that a set holds which its own function
// has taken, or which come after those of such a set: the next time its function is called, the unit
// may have them already.
func (l *Level) RefuseInner(c Call, keys ...ordering.Key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, set := range l.inner {
		if err := c.refusedBy(set, keys); err != nil {
			return err
		}
		h := set.Holding()
		if first, last, ok := disorder(h.Keys, keys); ok && set.waited && !h.Ended && h.Table.is(c.Table) {
			return &Error{last, first, fmt.Sprintf("key %q of the unit comes after %s in the order in which keys are locked, and the %s of its own function has that: "+
				"if the unit has to run under locks, it has its keys before its function is called, and two callers could wait for each other, for ever; %s",
				string(last), rowOf(first, last), inWords(set, h), asUnit)}
		}
	}
	return nil
}

func (c Call) refusedBy(holder Holder, keys []ordering.Key) error {
	if holder.Nonce() == c.Nonce {
		return nil
	}
	h := holder.Holding()
	if h.Ended || !h.Table.is(c.Table) {
		return nil
	}
	if needed, held, ok := conflict(keys, h.Keys); ok {
		return &Error{needed, held, fmt.Sprintf("key %q is needed, and the %s of the same caller has key %q: the call would wait for its own caller, for ever; %s",
			string(needed), inWords(holder, h), string(held), advice[holder.Kind()][c.Kind])}
	}
	if needed, held, ok := disorder(keys, h.Keys); ok && c.Ordered {
		instead := "name both keys in one set, or acquire this one first"
		if holder.Kind() == Unit {
			instead = asUnit
		}
		return &Error{needed, held, fmt.Sprintf("%s comes before key %q in the order in which keys are locked, and the %s of the same caller has that already: "+
			"two callers that do so could wait for each other, for ever; %s", rowOf(needed, held), string(held), inWords(holder, h), instead)}
	}
	return nil
}

// conflict returns the first of the keys that is held, or is above or below one that is, with
// that one.
func conflict(needed, held []ordering.Key) (key, at ordering.Key, found bool) {
	for _, k := range needed {
		if at, covered := plans.Covering(held, k); covered {
			return k, at, true
		}
		i, _ := slices.BinarySearchFunc(held, k, ordering.Compare) // what is below k follows it
		if i < len(held) && k.Covers(held[i]) {
			return k, held[i], true
		}
	}
	return "", "", false
}

// disorder returns the first of the keys in the order of all, and the last that is held, if that
// comes later than the first row that is needed: the outermost one above that key. Somebody may wait
// there for all that is below, and so for what is held.
func disorder(needed, held []ordering.Key) (first, last ordering.Key, found bool) {
	if len(needed) == 0 || len(held) == 0 {
		return "", "", false
	}
	first, last = slices.MinFunc(needed, ordering.Compare), slices.MaxFunc(held, ordering.Compare)
	return first, last, ordering.Compare(first.Root(), last) < 0
}

// Error says that a call was refused for what its own caller holds.
type Error struct {
	Key, Held ordering.Key // that is needed, and that is held; empty if the call needs no key
	text      string
}

func (e *Error) Error() string { return e.text }

// WhatNext is for lockset.NextOf.
func (e *Error) WhatNext() next.Next { return next.FixCall }

// Unwrap returns ErrNested.
func (e *Error) Unwrap() error { return ErrNested }

// inWords names a holder and what it holds for.
func inWords(holder Holder, h Holding) string {
	text := fmt.Sprintf("%s %s", holder.Kind(), holder.Nonce())
	if h.Purpose != "" {
		text += fmt.Sprintf(" for %q", h.Purpose)
	}
	return text
}

const asUnit = "have the unit itself lock it, by Work.Keys and Work.Lock, or take the set around the unit"

// rowOf names a key, or the row above it if it is that which comes before another.
func rowOf(key, other ordering.Key) string {
	if ordering.Compare(key, other) < 0 {
		return fmt.Sprintf("key %q", string(key))
	}
	return fmt.Sprintf("key %q, above key %q,", string(key.Root()), string(key))
}

// advice says what to do instead, by who holds the key and who needs it.
var advice = map[Kind]map[Kind]string{
	Set: {
		Set:  "name both keys in one set",
		Unit: "have the unit itself lock the key, by Work.Keys and Work.Lock, instead of the set",
	},
	Unit: {
		Set:  "the unit protects what it reads and stages without a set; name other keys in its Work.Keys",
		Unit: "do both in one unit",
	},
}

// Table tells the lock tables of several clients apart, as far as that can be told.
type Table struct {
	name            string
	region, account string // empty if they are not known
}

// TableOf returns the table of this name, or ARN, that a client of a region uses.
func TableOf(name, region string) Table {
	t := Table{name: name, region: region}
	if part := strings.SplitN(name, ":", 6); len(part) == 6 && part[0] == "arn" {
		t = Table{region: part[3], account: part[4], name: part[5][strings.LastIndexByte(part[5], '/')+1:]}
	}
	return t
}

// is reports whether two tables may be the same.
func (t Table) is(other Table) bool {
	may := func(a, b string) bool { return a == "" || b == "" || a == b }
	return t.name == other.name && may(t.region, other.region) && may(t.account, other.account)
}
