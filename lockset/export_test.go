package lockset

import (
	"context"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// What units need, by the names under which these tests use it.

type (
	Ending      = locks.Ending
	Prepared    = locks.Prepared
	RecoverDead = locks.RecoverDead
	Hold        = locks.Hold
)

const (
	Held  = locks.Held
	Freed = locks.Freed
)

var ErrUnresolved = locks.ErrUnresolved

func (s *Set) End(ctx context.Context) (*Ending, error) { return s.engine().End(ctx) }

func (s *Set) Prepare(ctx context.Context, table string, progress func(int)) (*Prepared, error) {
	return s.engine().Prepare(ctx, table, progress)
}

func (c *Client) PreparedOf(ctx context.Context, nonce string, token fencing.Token, plan plans.Plan) *Prepared {
	return c.engine().PreparedOf(ctx, nonce, token, plan)
}

func (c *Client) RecoverWith(table string, decide RecoverDead) {
	c.engine().RecoverWith(table, decide)
}

func (c *Client) RowHand(key ordering.Key, item map[string]types.AttributeValue) (bool, string, error) {
	return c.engine().RowHand(key, item)
}

func (c *Client) Silence(ctx context.Context, key ordering.Key, unit string) (bool, time.Duration, error) {
	return c.engine().Silence(ctx, key, unit)
}

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
	if !is || !isWhole(fence.Value, 1, int64(tokens.Max)) {
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
func (c *Client) LetExpire(ctx context.Context, plan plans.Plan) { c.engine().LetExpire(ctx, plan) }

// Plan returns how the keys were taken: their intents too.
func (s *Set) Plan() plans.Plan { return slices.Clone(s.engine().Plan()) }
