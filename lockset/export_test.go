package lockset

import (
	"context"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/ordering"
)

// What units need, by the names under which these tests use it.

type (
	Ending      = ending
	Prepared    = prepared
	RecoverDead = unitlocks.RecoverDead
	Hold        = unitlocks.Hold
)

const (
	Held  = unitlocks.Held
	Freed = unitlocks.Freed
	Gone  = unitlocks.Gone
)

var ErrUnresolved = unitlocks.ErrUnresolved

func (s *Set) End(ctx context.Context) (*Ending, error) {
	e, err := setForUnits{s}.End(ctx)
	if err != nil {
		return nil, err
	}
	return e.(*ending), nil
}

func (s *Set) Prepare(ctx context.Context, table string, progress func(int)) (*Prepared, error) {
	p, err := setForUnits{s}.Prepare(ctx, table, progress)
	if p == nil {
		return nil, err
	}
	return p.(*prepared), err
}

func (s *Set) RequestID() string { return setForUnits{s}.RequestID() }

func (c *Client) PreparedOf(ctx context.Context, nonce string, token fencing.Token, plan ordering.Plan) *Prepared {
	return forUnits{c}.PreparedOf(ctx, nonce, token, plan).(*prepared)
}

func (c *Client) RecoverWith(table string, decide RecoverDead) {
	forUnits{c}.RecoverWith(table, decide)
}

func (c *Client) RequestID(ctx context.Context) string { return forUnits{c}.RequestID(ctx) }

func (c *Client) RowGet(key ordering.Key) types.TransactGetItem { return forUnits{c}.RowGet(key) }

func (c *Client) RowHand(key ordering.Key, item map[string]types.AttributeValue) (bool, string, error) {
	return forUnits{c}.RowHand(key, item)
}

func (c *Client) RowFate(key ordering.Key, item map[string]types.AttributeValue, unit string, token fencing.Token) (lockrow.Fate, error) {
	return forUnits{c}.RowFate(key, item, unit, token, false)
}

func (c *Client) Silence(ctx context.Context, key ordering.Key, unit string) (bool, time.Duration, error) {
	return forUnits{c}.Silence(ctx, key, unit)
}

// Plan returns the steps, in order.
func (p *prepared) Plan() ordering.Plan { return p.plan }

// What fuzz targets, which are outside the package as the engine is, hold against
// the table.

// RowAttributes are the attributes of a row.
var RowAttributes = []string{
	lockrow.AttrOwner, lockrow.AttrLease, lockrow.AttrRVN, lockrow.AttrReleased, lockrow.AttrUnit, lockrow.AttrFence, lockrow.AttrPrepared, lockrow.AttrCommittedBy, lockrow.AttrBelow, lockrow.AttrQueue, lockrow.AttrExpires,
	"acquiredAt", "data",
}

// Understood says whether holdall can have written an item of the lock table: by the
// table of attributes and the invariants in docs/protocol.md, and not as lockrow.Parse
// goes about it. It writes no empty text.
func Understood(key ordering.Key, item map[string]types.AttributeValue) bool {
	texts := map[string]string{}
	for _, name := range []string{lockrow.AttrOwner, lockrow.AttrLease, lockrow.AttrRVN, lockrow.AttrReleased, lockrow.AttrUnit, lockrow.AttrPrepared, lockrow.AttrCommittedBy} {
		if v, there := item[name]; there {
			s, is := v.(*types.AttributeValueMemberS)
			if !is || s.Value == "" {
				return false
			}
			texts[name] = s.Value
		}
	}
	fence, is := item[lockrow.AttrFence].(*types.AttributeValueMemberN)
	if !is || !isWhole(fence.Value, 1, int64(fencing.MaxToken)) {
		return false
	}
	below, is := understoodBelow(key, item[lockrow.AttrBelow])
	if !is || !understoodQueue(item[lockrow.AttrQueue]) {
		return false
	}
	if lease := texts[lockrow.AttrLease]; lease != "" && !isWhole(lease, 0, math.MaxInt64/1_000_000) {
		return false
	}
	if texts[lockrow.AttrPrepared] != "" && !nonce.MatchString(texts[lockrow.AttrUnit]) {
		return false
	}
	switch texts[lockrow.AttrReleased] {
	case "1":
		return texts[lockrow.AttrUnit] == "" && texts[lockrow.AttrPrepared] == ""
	case "":
		return texts[lockrow.AttrUnit] != "" && texts[lockrow.AttrOwner] != "" && texts[lockrow.AttrRVN] != "" && isWhole(texts[lockrow.AttrLease], 1, math.MaxInt64) && below == 0
	}
	return false
}

var nonce = regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)

func isWhole(digits string, least, most int64) bool {
	n, ok := new(big.Int).SetString(digits, 10)
	return ok && n.Cmp(big.NewInt(least)) >= 0 && n.Cmp(big.NewInt(most)) <= 0
}

func understoodBelow(key ordering.Key, v types.AttributeValue) (entries int, understood bool) {
	if v == nil {
		return 0, true
	}
	set, is := v.(*types.AttributeValueMemberSS)
	if !is {
		return 0, false
	}
	for _, text := range set.Value {
		at := strings.IndexByte(text, ' ')
		if at < 1 || (key+"/"+ordering.Key(text[at+1:])).Validate() != nil {
			return 0, false
		}
	}
	return len(set.Value), true
}

func understoodQueue(v types.AttributeValue) bool {
	if v == nil {
		return true
	}
	list, is := v.(*types.AttributeValueMemberL)
	if !is {
		return false
	}
	for _, place := range list.Value {
		if _, is := place.(*types.AttributeValueMemberS); !is {
			return false
		}
	}
	return true
}

// Look is what a unit makes of an item of the lock table.
type Look struct {
	Reason  string // why it is no row
	Verdict string
	Since   time.Duration // the holder has been silent for so long
	Fence   fencing.Token
	Held    bool          // by anybody
	Pending bool          // and its unit has a journal
	Lease   time.Duration // of the holder
	Below   int
	Behind  bool // others are before the unit in the queue

	Take func(fencing.Token) *types.Update // takes the row
	Bury *types.Update                     // frees it
}

// LookAt looks at the row of key, for a unit that wants to lock it, or witness below
// it; the row has been as it is for as long as since says.
func LookAt(key ordering.Key, item map[string]types.AttributeValue, unit string, witness ordering.Key, token fencing.Token, since time.Duration) Look {
	r, reason := lockrow.Parse(key, item)
	place, queued := r.Place(unit)
	w := lockrow.Want{Key: key, Entry: lockrow.Entry{Unit: unit, Witness: witness}, Turn: lockrow.Turn{Queued: queued && place == 0}}
	if witness != key {
		w.Mode = lockrow.Intent
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := lockrow.Judge(r, w, token, lockrow.Watch{Since: now.Add(-since), Now: now, Patience: lockrow.Patience{Turn: time.Second, Grace: time.Second}})
	if j.Verdict == lockrow.Admits || j.Verdict == lockrow.Raise {
		w.Turn = j.Turn
	}
	t := lockrow.Table{Name: "locks", HashKey: "key"}
	return Look{
		Reason: reason, Since: since, Fence: r.Fence, Held: !r.Free(), Pending: r.Prepared != "", Lease: r.Lease, Below: len(r.Below), Behind: place > 0,
		Verdict: map[lockrow.Verdict]string{
			lockrow.Admits: "admits", lockrow.Raise: "raise", lockrow.Mine: "mine", lockrow.Await: "await", lockrow.Bury: "bury", lockrow.Recover: "settle", lockrow.Pass: "pass", lockrow.Witnesses: "witnesses",
		}[j.Verdict],
		Take: func(token fencing.Token) *types.Update {
			vs := lockrow.UnitValues(unit, lockrow.Waiter(unit), token, now, now, now, lockrow.Now{}).With(lockrow.Values{":owner": lockrow.Text("me"), ":lease": lockrow.Text("1000"), ":rvn": lockrow.Text("first")})
			return t.Acquire(w, vs)
		},
		Bury: t.Update(key, lockrow.BuryIf, lockrow.Free, lockrow.UnitValues(unit, lockrow.Waiter(unit), token, now, now, now, lockrow.Now{}).With(lockrow.Values{":rvn": lockrow.Text(r.RVN)})),
	}
}

// LetExpire is for tests of rows above keys.
func (c *Client) LetExpire(ctx context.Context, plan ordering.Plan) { forUnits{c}.LetExpire(ctx, plan) }
