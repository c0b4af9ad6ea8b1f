package memdynamo

import (
	"fmt"
	"hash/maphash"
	"time"
)

// tokenLife is how long a ClientRequestToken is remembered.
const tokenLife = 10 * time.Minute

// tokenMemory remembers the request tokens of transactions that succeeded.
type tokenMemory struct {
	byToken map[string]uint64 // the digest of the request
	queue   []tokenEnd        // in the order of success, which is that of expiry
}

type tokenEnd struct {
	token string
	at    time.Time
}

// seen forgets what is old enough, then says whether a token is known, and
// whether for the same request.
func (m *tokenMemory) seen(token string, sum uint64, now time.Time) (seen, same bool) {
	n := 0
	for n < len(m.queue) && !now.Before(m.queue[n].at) {
		delete(m.byToken, m.queue[n].token)
		n++
	}
	m.queue = m.queue[n:]
	known, seen := m.byToken[token]
	return seen, seen && known == sum
}

func (m *tokenMemory) remember(token string, sum uint64, now time.Time) {
	if m.byToken == nil {
		m.byToken = make(map[string]uint64)
	}
	m.byToken[token] = sum
	m.queue = append(m.queue, tokenEnd{token, now.Add(tokenLife)})
}

// newToken is a token nobody used on this DB, in the shape the client gives it.
func (db *DB) newToken() string {
	return fmt.Sprintf("6d656d64-796e-4616-8d6f-%012x", db.issued.Add(1))
}

var digestSeed = maphash.MakeSeed()

// digest tells requests apart: equal for equal ones, and for different ones
// with a chance of one in 2^64. What an answer should contain is not part of it.
func digest(actions []action) uint64 {
	var d digester
	d.h.SetSeed(digestSeed)
	for i := range actions {
		a := &actions[i]
		d.num(uint64(a.verb))
		d.text(a.table)
		d.attrs(a.attrs)
		d.bound(a.cond)
		d.bound(a.update)
	}
	return d.h.Sum64()
}

type digester struct{ h maphash.Hash }

// num and text write with their own length, so that no two sequences of
// writes are the same bytes.
func (d *digester) num(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		_ = d.h.WriteByte(byte(n) | 0x80)
	}
	_ = d.h.WriteByte(byte(n))
}

func (d *digester) text(s string) {
	d.num(uint64(len(s)))
	_, _ = d.h.WriteString(s)
}

func (d *digester) texts(s []string) {
	d.num(uint64(len(s)))
	for _, e := range s {
		d.text(e)
	}
}

func (d *digester) attrs(attrs []attr) {
	d.num(uint64(len(attrs)))
	for i := range attrs {
		d.text(attrs[i].name)
		d.value(attrs[i].value)
	}
}

func (d *digester) bound(b *bound) {
	if b == nil {
		d.num(0)
		return
	}
	d.num(1)
	d.text(b.text)
	d.texts(b.names)
	d.num(uint64(len(b.slots)))
	for _, v := range b.slots {
		d.value(v)
	}
}

func (d *digester) value(v value) {
	d.num(uint64(v.kind()))
	switch v := v.(type) {
	case strValue:
		d.text(string(v))
	case binValue:
		d.text(string(v))
	case decimal:
		d.text(v.String())
	case strSet:
		d.texts(v)
	case binSet:
		d.texts(v)
	case listValue:
		d.num(uint64(len(v)))
		for _, e := range v {
			d.value(e)
		}
	case mapValue:
		d.attrs(v)
	default: // true, false, NULL or a set of numbers
		d.text(fmt.Sprint(v))
	}
}
