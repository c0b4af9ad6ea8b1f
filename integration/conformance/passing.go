package conformance

// The writes of a commit without locks: it passes the rows that its unit would have locked.
const (
	isOpen      = " AND attribute_not_exists(#below) AND " + nobodyWaits
	passBlindIf = isFree + " AND " + newer + isOpen
	passKey     = "SET #released = :one, #fence = :token" + asPassed
	asPassed    = ", #rvn = :rvn, #by = :unit, #expires = :expires"
	passAboveIf = isFree + " AND " + newer + " AND " + nobodyWaits
	// Where a unit with a journal has an intent, the row gets an expiry that is not a number.
	outlives  = "#expires = if_not_exists(#pendingBelow, :expires)"
	passAbove = "SET #fence = :token, #released = :one, " + outlives
)

var (
	seenFence = item{":seen": older}
	seenRVN   = item{":seen": text("rvn-1")}

	passSeen       = write{"SET #fence = :token" + asPassed, "#released = :one AND #fence = :seen" + isOpen, seenFence}
	passSeenAbsent = write{passKey, "attribute_not_exists(#key)", nil}
	passUnseen     = write{passKey, passBlindIf, nil}
	// A key that nobody has looked at, above others that somebody has.
	passCovering     = write{passKey, passBlindIf + " AND #rvn = :seen", seenRVN}
	passCoveringNone = write{passKey, passBlindIf + " AND attribute_not_exists(#rvn)", nil}

	passAboveSeen   = write{"SET #fence = :token, " + outlives, "#released = :one AND #fence < :token AND " + nobodyWaits + " AND #rvn = :seen", seenRVN}
	passAboveNone   = write{passAbove, passAboveIf + " AND attribute_not_exists(#rvn)", nil}
	passAboveUnseen = write{passAbove, passAboveIf, nil}
)

// What the passed rows show afterwards.
var (
	passed = item{"isReleased": text("1"), "fence": number(token), "recordVersionNumber": text("rvn-2"),
		"committedBy": text("me"), "expiresAt": number(expires)}
	passedAbove = item{"isReleased": text("1"), "fence": number(token), "expiresAt": number(expires)}

	// A row that has only ever been above others.
	never = item{"isReleased": text("1"), "fence": older}
)

// passCases: each form of passing a row, on the row as it was seen and on all that it may
// have become since.
func passCases() []expression {
	all := []expression{
		{"seen", released, passSeen, with(released, passed)},
		{"seen, with an emptied queue", with(released, item{"queue": list()}), passSeen, with(with(released, passed), item{"queue": list()})},
		{"seen, only ever above others", never, passSeen, passed},
		{"seen, and another RVN, which says nothing", with(released, item{"recordVersionNumber": text("rvn-3")}), passSeen, with(released, passed)},
		// As text, 9 would be after the token.
		{"seen with few digits", with(released, item{"fence": number(9)}), write{passSeen.update, passSeen.condition, item{":seen": number(9)}}, with(released, passed)},
		{"seen, and gone", nil, passSeen, nil},
		{"seen, and had since", released, write{passSeen.update, passSeen.condition, item{":seen": number(token - 2)}}, nil},
		{"seen, and had since, with a later token", with(released, item{"fence": number(token + 1)}), passSeen, nil},
		{"seen, and our token made unusable", with(released, item{"fence": number(token)}), passSeen, nil},

		{"seen absent", nil, passSeenAbsent, passed},
		{"seen absent, and come", never, passSeenAbsent, nil},
		{"seen absent, and another client's", item{"data": text("x")}, passSeenAbsent, nil},

		{"covering", released, passCovering, with(released, passed)},
		{"covering, and gone", nil, passCovering, nil},
		{"covering, and had since", with(released, item{"recordVersionNumber": text("rvn-3")}), passCovering, nil},
		{"covering, seen without an RVN", never, passCoveringNone, passed},
		{"covering, seen absent", nil, passCoveringNone, passed},
		{"covering, and had for the first time", released, passCoveringNone, nil},

		{"above", released, passAboveSeen, with(released, passedAbove)},
		{"above intents", with(carrier, item{"recordVersionNumber": text("rvn-1")}), passAboveSeen,
			with(carrier, item{"recordVersionNumber": text("rvn-1"), "fence": number(token), "expiresAt": number(expires)})},
		{"above, and units beside us came and went", with(released, item{"fence": number(token - 2)}), passAboveSeen, with(released, passedAbove)},
		{"above, and gone", nil, passAboveSeen, nil},
		{"above, and had since", with(released, item{"recordVersionNumber": text("rvn-3")}), passAboveSeen, nil},
		{"above, seen without an RVN", never, passAboveNone, with(never, passedAbove)},
		{"above intents, seen without an RVN", carrier, passAboveNone, with(carrier, passedAbove)},
		{"above, seen absent", nil, passAboveNone, with(item{}, passedAbove)},
		{"above, and had for the first time", released, passAboveNone, nil},
	}
	for _, unseen := range []struct {
		name  string
		do    write
		after item
	}{
		{"unseen", passUnseen, passed}, {"above, unseen", passAboveUnseen, passedAbove},
	} {
		all = append(all,
			expression{unseen.name, released, unseen.do, with(released, unseen.after)},
			expression{unseen.name + ", absent", nil, unseen.do, with(item{}, unseen.after)},
			expression{unseen.name + ", with an emptied queue", with(released, item{"queue": list()}), unseen.do,
				with(with(released, unseen.after), item{"queue": list()})},
		)
	}
	return append(all, passRefusals()...)
}

// passRefusals: a row that somebody has, or waits for, or that has had our token or a later
// one, is passed in no form.
func passRefusals() (all []expression) {
	for _, form := range []struct {
		name  string
		do    write
		free  item // what it could pass
		key   bool // it needs nobody below
		newer bool // it needs a token newer than the row's
	}{
		{"seen", passSeen, released, true, false},
		{"seen absent", passSeenAbsent, released, true, true},
		{"unseen", passUnseen, released, true, true},
		{"covering", passCovering, released, true, true},
		{"covering none", passCoveringNone, never, true, true},
		{"above", passAboveSeen, released, false, true},
		{"above none", passAboveNone, never, false, true},
		{"above unseen", passAboveUnseen, released, false, true},
	} {
		refuse := func(name string, changes item) {
			all = append(all, expression{form.name + ": " + name, with(form.free, changes), form.do, nil})
		}
		refuse("held", item{"isReleased": nil, "unit": text("other")})
		refuse("held by ourselves", item{"isReleased": nil, "unit": text("me")})
		refuse("marked", item{"isReleased": nil, "unit": text("other"), "pending": text("units")})
		refuse("waited for", item{"queue": list("other")})
		refuse("released with another value", item{"isReleased": text("0")})
		all = append(all, expression{form.name + ": foreign", item{"data": text("x")}, form.do, nil})
		if form.key {
			refuse("intents below", item{"below": set("other address:9")})
		}
		if form.newer {
			refuse("our own token", item{"fence": number(token)})
			refuse("a later token", item{"fence": number(token + 1)})
			refuse("no fence", item{"fence": nil})
		}
	}
	return all
}
