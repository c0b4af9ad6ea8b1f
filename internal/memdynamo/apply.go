package memdynamo

import (
	"errors"
	"slices"
)

var (
	errNoAttribute = errors.New("The provided expression refers to an attribute that does not exist in the item")
	errOperand     = errors.New("An operand in the update expression has an incorrect data type")
	errPath        = errors.New("The document path provided in the update expression is invalid for update")
)

// write is one thing an update does: put a value at a path, or, if it is nil,
// remove what is there.
type write struct {
	p path
	v value
}

// updated is the item's attributes after the update; it is nil for an absent
// one and must have the key's attributes otherwise. Every operand is read from
// the item as it was, whatever order the clauses stand in.
func (b *bound) updated(it *item) ([]attr, error) {
	writes, err := b.writes(it)
	if err != nil {
		return nil, err
	}
	var old []attr
	if it != nil {
		old = it.attrs
	}
	c := &change{b: b, attrs: append(make(mapValue, 0, len(old)+len(writes)), old...)}
	for _, w := range writes {
		if err := c.apply(w); err != nil {
			return nil, err
		}
	}
	return c.attrs, c.finish()
}

// writes computes what the update does, on the item as it is.
func (b *bound) writes(it *item) ([]write, error) {
	if !b.reachable(it) {
		return nil, errPath
	}
	out := make([]write, len(b.update))
	for i, a := range b.update {
		out[i].p = a.p
		if a.x == nil {
			continue
		}
		var err error
		if out[i].v, err = b.compute(a.x, it); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reachable reports whether what the update writes into is there: a map where
// a path ends in a name, a list where it ends in an index.
func (b *bound) reachable(it *item) bool {
	for _, a := range b.update {
		n := len(a.p) - 1
		if n == 0 {
			continue
		}
		parent := b.at(a.p[:n], it)
		_, isMap := parent.(mapValue)
		_, isList := parent.(listValue)
		if !isMap && !isList || isMap != (a.p[n].index < 0) {
			return false
		}
	}
	return true
}

// compute is the value of what an update computes; nil where the last element
// of a set went.
func (b *bound) compute(x operand, it *item) (value, error) {
	switch x := x.(type) {
	case slot:
		return b.slots[x], nil
	case path:
		if v := b.at(x, it); v != nil {
			return v, nil
		}
		return nil, errNoAttribute
	}
	c := x.(call)
	var l value
	switch c.function {
	case "+", "-", "list_append":
		var err error
		if l, err = b.compute(c.args[0], it); err != nil {
			return nil, err
		}
	default: // of a path, which may lead nowhere
		l = b.at(c.args[0].(path), it)
	}
	// A default, too, must have a value even where it is not needed.
	r, err := b.compute(c.args[1], it)
	if err != nil {
		return nil, err
	}
	switch c.function {
	case "if_not_exists":
		if l != nil {
			return l, nil
		}
		return r, nil
	case "list_append":
		ll, ok1 := l.(listValue)
		rl, ok2 := r.(listValue)
		if !ok1 || !ok2 {
			return nil, errOperand
		}
		return slices.Concat(ll, rl), nil
	case "DELETE", "set_delete":
		if l == nil {
			return nil, nil
		}
		return combine(l, r, true)
	case "ADD", "set_add":
		return add(l, r)
	}
	return sum(l, r, c.function == "-")
}

func sum(l, r value, minus bool) (value, error) {
	ln, ok1 := l.(decimal)
	rn, ok2 := r.(decimal)
	if !ok1 || !ok2 {
		return nil, errOperand
	}
	if minus {
		rn = rn.negate()
	}
	return ln.add(rn)
}

// add is ADD's arithmetic: on numbers the sum, on sets the union, on nothing
// the operand.
func add(old, v value) (value, error) {
	if old == nil {
		return v, nil
	}
	if _, ok := v.(decimal); ok {
		return sum(old, v, false)
	}
	return combine(old, v, false)
}

// change applies writes to an item's attributes. Indexes in paths are those of
// the item as it was, so elements removed from a list stay as holes, and those
// written past its end wait, until everything else is done.
type change struct {
	b     *bound
	attrs mapValue // a copy of the item's own, its values shared
	late  []write
	holes []path // of lists
}

func (c *change) apply(w write) error {
	return c.edit(w.p[:len(w.p)-1], func(parent value) (value, error) { return c.put(parent, w) })
}

// edit replaces what is at a path by what do makes of it: do may change the
// list or map that it is given, for those on the way there are copied.
func (c *change) edit(p path, do func(value) (value, error)) error {
	v, err := c.descend(c.attrs, p, do)
	if err != nil {
		return err
	}
	c.attrs = v.(mapValue)
	return nil
}

func (c *change) descend(v value, p path, do func(value) (value, error)) (value, error) {
	if len(p) == 0 {
		return do(v)
	}
	child := c.b.child(v, &p[0])
	switch v := child.(type) {
	case nil:
		return nil, errPath
	case mapValue:
		child = slices.Clone(v)
	case listValue:
		child = slices.Clone(v)
	}
	child, err := c.descend(child, p[1:], do)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case mapValue:
		i, _ := find(v, p[0].resolve(c.b.names))
		v[i].value = child
	case listValue:
		v[p[0].index] = child
	}
	return v, nil
}

// put does a write on the list or map it is in.
func (c *change) put(parent value, w write) (value, error) {
	last := &w.p[len(w.p)-1]
	switch parent := parent.(type) {
	case mapValue:
		if last.index >= 0 {
			return nil, errPath
		}
		name := last.resolve(c.b.names)
		i, ok := find(parent, name)
		switch {
		case w.v == nil && ok:
			parent = slices.Delete(parent, i, i+1)
		case w.v != nil && ok:
			parent[i].value = w.v
		case w.v != nil:
			parent = slices.Insert(parent, i, attr{name, w.v})
		}
		return parent, nil
	case listValue:
		switch {
		case last.index < 0:
			return nil, errPath
		case last.index < len(parent):
			if parent[last.index] = w.v; w.v == nil {
				c.holes = append(c.holes, w.p[:len(w.p)-1])
			}
		case w.v != nil:
			c.late = append(c.late, w)
		}
		return parent, nil
	}
	return nil, errPath
}

// finish appends what was written past the ends of lists, lowest index first,
// then closes the holes, innermost lists first: closing a list moves what is
// behind the hole, and paths still say where it was.
func (c *change) finish() error {
	slices.SortStableFunc(c.late, func(a, b write) int { return a.p[len(a.p)-1].index - b.p[len(b.p)-1].index })
	for _, w := range c.late {
		err := c.edit(w.p[:len(w.p)-1], func(list value) (value, error) {
			return append(list.(listValue), w.v), nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(c.holes, func(a, b path) int { return len(b) - len(a) })
	for _, p := range c.holes {
		err := c.edit(p, func(list value) (value, error) {
			return slices.DeleteFunc(list.(listValue), func(e value) bool { return e == nil }), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
