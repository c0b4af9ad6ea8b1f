package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// onTwoRows is a transaction on the row of a key and on one above it.
type onTwoRows struct {
	name       string
	key, above expression
	// Rows that refuse it.
	keyNot, aboveNot item
}

func twoRows() []onTwoRows {
	entry := item{":entry": text("other address:9"), ":entries": set("other address:9")}
	marked := item{"pending": text("units"), "expiresAt": nil}
	waiting := queued(released, "a", "b")
	return []onTwoRows{
		{"a dead holder's row is freed, and its intent removed",
			expression{"", held, bury, with(held, item{"unit": nil, "isReleased": text("1"), "expiresAt": number(expires), "turnAt": number(tableNow)})},
			expression{"", carrier, write{releaseIntent.update, releaseIntent.condition, entry}, with(carrier, item{"below": set("me address:7"), "turnAt": number(tableNow)})},
			with(held, item{"recordVersionNumber": text("rvn-3")}), with(carrier, item{"below": set("me address:7")})},
		{"a key is taken past its queue, and the row above it past its own",
			expression{"", waiting, takePast, retaken},
			expression{"", waiting, intendPast, with(released, item{"fence": number(token), "below": set("me address:7"), "expiresAt": number(expires)})},
			with(waiting, item{"turnAt": number(freeSince + 1)}), with(waiting, item{"turnAt": number(freeSince - 1)})},
		{"a key is taken from the unit that has it",
			expression{"", ours, revoke, with(ours, item{"unit": text("operator"), "ownerName": text("host-1"), "recordVersionNumber": text("rvn-2"),
				"fence": number(token), "acquiredAt": taken["acquiredAt"], "takenFrom": text("me"), "purpose": nil, "renewedAt": nil})},
			expression{"", carrier, revokeIntent, with(carrier, item{"fence": number(token), "expiresAt": number(expires),
				"below": set("me address:7", "operator address:7", "other address:9")})},
			with(ours, marked), with(carrier, item{"below": set("other address:9")})},
		{"a key waits for a journal",
			expression{"", ours, mark, with(ours, marked)},
			expression{"", carrier, markIntent, with(carrier, item{"pendingBelow": set("me address:7"), "expiresAt": nil})},
			held, with(carrier, item{"below": set("other address:9")})},
		{"a key is put back",
			expression{"", nil, restoreHeld, with(taken, marked)},
			expression{"", nil, restoreIntent, item{"isReleased": text("1"), "fence": number(token), "below": set("me address:7"), "pendingBelow": set("me address:7")}},
			released, held},
	}
}

// testSeveralRows: a transaction on two lock rows changes both or neither, and each row that refuses it
// shows itself.
func testSeveralRows(t *testing.T, w *world) {
	for _, c := range twoRows() {
		t.Run(c.name, func(t *testing.T) {
			for _, codes := range [][]string{{none, none}, {conditionFailed, none}, {none, conditionFailed}, {conditionFailed, conditionFailed}} {
				key, above := c.key, c.above
				if codes[0] != none {
					key.before = c.keyNot
				}
				if codes[1] != none {
					above.before = c.aboveNot
				}
				keyOf, was := w.place(t, key)
				aboveOf, aboveWas := w.place(t, above)
				err := w.transact(t, key.do.action(w.locks, keyOf), above.do.action(w.locks, aboveOf))
				if codes[0] == none && codes[1] == none {
					require.NoError(t, err)
					requireRow(t, with(key.after, keyOf), w.read(t, w.locks, keyOf))
					requireRow(t, with(above.after, aboveOf), w.read(t, w.locks, aboveOf))
					continue
				}
				reasons := cancelled(t, err, codes...)
				for i, row := range []item{was, aboveWas} {
					if codes[i] == none {
						row = nil
					}
					requireRow(t, row, reasons[i].Item)
				}
				requireRow(t, was, w.read(t, w.locks, keyOf))
				requireRow(t, aboveWas, w.read(t, w.locks, aboveOf))
			}
		})
	}
}

// testExpiryAbove: a row above keys has no expiry while a unit with a journal has an intent there, whatever
// other units do, and gets it back when the last one has left.
func (w *world) testExpiryAbove(t *testing.T) {
	key := item{"key": text(fresh(t))}
	w.put(t, w.locks, with(carrier, key))
	other := item{":entry": text("other address:9"), ":entries": set("other address:9")}
	do := func(what write, own item) {
		t.Helper()
		what.values = with(what.values, own)
		_, err := w.UpdateItem(t.Context(), what.alone(w.locks, key))
		require.NoError(t, err)
	}
	lasts := func() {
		t.Helper()
		_, err := w.UpdateItem(t.Context(), letExpire.alone(w.locks, key))
		row := w.read(t, w.locks, key)
		requireRow(t, row, refusal(t, err))
		require.Nil(t, row["expiresAt"])
	}
	do(markIntent, nil)
	lasts()
	do(markIntent, other)
	lasts()
	do(releaseIntent, nil)
	lasts()
	do(releaseIntent, other)
	do(letExpire, nil)
	requireRow(t, with(key, item{"isReleased": text("1"), "fence": older, "expiresAt": number(expires), "turnAt": number(tableNow)}), w.read(t, w.locks, key))
}
