package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The expressions of the protocol.
const (
	isFree = "(attribute_not_exists(#key) OR #released = :one)"
	newer  = "(attribute_not_exists(#key) OR #fence < :token)"
	mine   = "#unit = :unit"
	within = "contains(#below, :entry)"
	// It also holds for an absent row.
	notMine = "(attribute_not_exists(#unit) OR #unit <> :unit)"

	// Whose turn it is: who has no place in the queue takes a row that nobody
	// waits for, who has one takes it as the head, and leaves in the same write.
	nobodyWaits = "attribute_not_exists(#queue[0])"
	weAreNext   = "#queue[0] = :waiter"
	stepForward = ", #queue[0]" // to be removed, too
)

var (
	takeIf = isFree + " AND attribute_not_exists(#below) AND " + newer
	take   = "SET #owner = :owner, #lease = :lease, #rvn = :rvn, #unit = :unit, #fence = :token, #at = :at, " +
		"#expires = :expires, #renewed = :renewed"
	forNothing  = take + " REMOVE #released, #purpose"
	forPurpose  = take + ", #purpose = :purpose REMOVE #released"
	acquire     = write{update: forNothing, condition: takeIf + " AND " + nobodyWaits}
	acquireFor  = write{update: forPurpose, condition: takeIf + " AND " + nobodyWaits}
	acquireHead = write{update: forNothing + stepForward, condition: takeIf + " AND " + weAreNext}
	acquireNext = write{update: forPurpose + stepForward, condition: takeIf + " AND " + weAreNext}

	intendIf   = isFree + " AND " + newer + " AND (attribute_not_exists(#below) OR size(#below) < :most)"
	intend     = "ADD #below :entries SET #fence = :token, #released = :one, " + outlives
	intent     = write{update: intend, condition: intendIf + " AND " + nobodyWaits}
	intentHead = write{update: intend + " REMOVE #queue[0]", condition: intendIf + " AND " + weAreNext}

	restamp       = write{update: "SET #fence = :token, " + outlives, condition: "#fence < :token AND " + mine}
	restampIntent = write{update: "SET #fence = :token", condition: "#fence < :token AND " + within}
	renew         = write{update: "SET #rvn = :rvn", condition: mine}
	bury          = write{
		update:    release.update,
		condition: "#rvn = :observed AND attribute_exists(#unit) AND attribute_not_exists(#pending)",
	}
	burn = write{
		update: "SET #fence = :token, " + outlives,
		condition: "#fence < :token AND (#released = :one OR attribute_exists(#unit) AND attribute_exists(#rvn)) AND " + notMine +
			" AND attribute_not_exists(#pending)",
	}
	burnLasting = write{
		update:    "SET #fence = :token",
		condition: "#fence < :token AND attribute_exists(#pending)",
	}
	burnNew = write{
		update:    "SET #released = :one, #fence = :token, #expires = :expires",
		condition: "attribute_not_exists(#key)",
	}
	release       = write{update: "SET #released = :one, #expires = :expires, #turn = :turn REMOVE #unit, #pending", condition: mine}
	commit        = write{update: "SET #released = :one, #expires = :expires, #turn = :turn, #by = :unit REMOVE #unit, #pending", condition: mine + " AND attribute_not_exists(#pending)"}
	commitMarked  = write{update: commit.update, condition: mine}
	releaseIntent = write{update: "DELETE #below :entries, #pendingBelow :entries SET #turn = :turn", condition: within}
	joinIf        = "attribute_exists(#key) AND NOT contains(#queue, :waiter) AND " + newer + " AND (attribute_not_exists(#queue) OR size(#queue) < :places)"
	join          = write{
		update:    "SET #queue = list_append(if_not_exists(#queue, :nobody), :place)",
		condition: joinIf + " AND " + notMine,
	}
	joinForIntent = write{update: join.update, condition: joinIf + " AND NOT " + within}
	leaveFirst    = write{update: "REMOVE #queue[0]", condition: "#queue[0] = :waiter"}
	leaveSecond   = write{update: "REMOVE #queue[1]", condition: "#queue[1] = :waiter"}
	leaveFourth   = write{update: "REMOVE #queue[3]", condition: "#queue[3] = :waiter"}
	dropHead      = write{
		update:    "REMOVE #queue[0]",
		condition: "#queue[0] = :other AND #fence = :seen",
		values:    item{":seen": number(token - 1)},
	}
	mark       = write{update: "SET #pending = :journal REMOVE #expires", condition: mine}
	markIntent = write{update: "ADD #pendingBelow :entries REMOVE #expires", condition: within}
	letExpire  = write{update: "SET #expires = :expires", condition: "#released = :one AND attribute_not_exists(#pendingBelow)"}

	isPending = mine + " AND attribute_exists(#pending)"
)

// Rows as they are met.
var (
	older    = number(token - 1)
	released = item{"isReleased": text("1"), "fence": older, "ownerName": text("host-0"), "leaseDuration": text("20000"),
		"recordVersionNumber": text("rvn-1"), "expiresAt": number(expires - 100), "committedBy": text("before"), "purpose": text("another"), "data": text("kept"),
		"renewedAt": number(aliveAt), "turnAt": number(freeSince)}
	held  = with(released, item{"isReleased": nil, "unit": text("other"), "acquiredAt": number(1)})
	ours  = with(held, item{"unit": text("me")})
	taken = item{"ownerName": text("host-1"), "leaseDuration": text("20000"), "recordVersionNumber": text("rvn-2"),
		"unit": text("me"), "fence": number(token), "acquiredAt": number(1_763_000_000_000), "expiresAt": number(expires), "renewedAt": number(tableNow)}
	retaken = with(taken, item{"committedBy": text("before"), "data": text("kept"), "turnAt": number(freeSince)})
	carrier = item{"isReleased": text("1"), "fence": older, "below": set("me address:7", "other address:9"), "expiresAt": number(expires - 100)}
	// One of its intents is of a unit with a journal.
	lasting = with(carrier, item{"pendingBelow": set("other address:9"), "expiresAt": nil})
)

// expression is one write, or a condition that a transaction checks, against one row.
type expression struct {
	name   string
	before item // without its key; nil: there is no row
	do     write
	after  item // without its key; nil: refused. A check that holds leaves the row as it is.
}

// testExpressions tries every write of the protocol on the rows it is meant for
// and on those it must spare, alone and as a part of a transaction. With -short it
// is only a part of one, which saves a quarter of the suite's requests; and DynamoDB Local, which takes
// most of the processor time, has one case of three of each group.
func testExpressions(t *testing.T, w *world) {
	for _, group := range []struct {
		name  string
		cases []expression
	}{
		{"acquire", acquireCases()},
		{"intent", intentCases()},
		{"holder", holderCases()},
		{"others", othersCases()},
		{"turn", turnCases()},
		{"queue", queueCases()},
		{"pass", passCases()},
		{"past", pastCases()},
		{"drop all", dropAllCases()},
		{"join first", joinFirstCases()},
		{"leaving", leavingCases()},
		{"date", dateCases()},
		{"silence", silenceCases()},
		{"pass past", passPastCases()},
		{"check", checkCases()},
		{"revoke", revokeCases()},
		{"restore", restoreCases()},
		{"expiry", expiryCases()},
	} {
		for i, c := range group.cases {
			if testing.Short() && w.slow && i%3 > 0 {
				continue
			}
			t.Run(group.name+": "+c.name, func(t *testing.T) {
				if !testing.Short() {
					w.tryAlone(t, c)
				}
				w.tryTogether(t, c)
			})
		}
	}
}

// tryEach tries writes alone and as a part of a transaction, also with -short.
func (w *world) tryEach(t *testing.T, cases ...expression) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.tryAlone(t, c)
			w.tryTogether(t, c)
		})
	}
}

func (w *world) place(t *testing.T, c expression) (key, before item) {
	t.Helper()
	key = item{"key": text(fresh(t))}
	return key, w.lay(t, w.locks, key, c.before)
}

func (w *world) tryAlone(t *testing.T, c expression) {
	t.Helper()
	if c.do.update == "" {
		return // only a transaction can check
	}
	key, before := w.place(t, c)
	_, err := w.UpdateItem(t.Context(), c.do.alone(w.locks, key))
	if c.after == nil {
		old := refusal(t, err)
		requireRow(t, before, old)
		if before == nil {
			require.Nil(t, old, "no row must not look like an empty one")
		}
		requireRow(t, before, w.read(t, w.locks, key))
		return
	}
	require.NoError(t, err)
	requireRow(t, with(c.after, key), w.read(t, w.locks, key))
}

// tryTogether has the write share its transaction with one that would succeed:
// it must not, when the write is refused.
func (w *world) tryTogether(t *testing.T, c expression) {
	t.Helper()
	key, before := w.place(t, c)
	bystander := item{"id": text(fresh(t))}
	err := w.transact(t, insert(w.records, bystander, "", nil), c.do.action(w.locks, key))
	if c.after == nil {
		reasons := cancelled(t, err, none, conditionFailed)
		require.Nil(t, reasons[0].Item)
		requireRow(t, before, reasons[1].Item)
		if before == nil {
			require.Nil(t, reasons[1].Item, "no row must not look like an empty one")
		}
		requireRow(t, before, w.read(t, w.locks, key))
		require.Nil(t, w.read(t, w.records, bystander), "half of a transaction was written")
		return
	}
	require.NoError(t, err)
	if c.do.update == "" {
		requireRow(t, before, w.read(t, w.locks, key))
	} else {
		requireRow(t, with(c.after, key), w.read(t, w.locks, key))
	}
	requireRow(t, bystander, w.read(t, w.records, bystander))
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%02d", prefix, i)
	}
	return out
}
