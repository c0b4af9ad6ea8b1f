package conformance

// Commits without locks that go past dead waiters, and rows that a commit only checks.
const (
	isUntaken = " AND attribute_not_exists(#below) AND " + stillFree
	blindIf   = isFree + " AND " + newer

	// The fence of a row above may rise, because of others below it.
	checkAboveIf     = "#released = :one AND " + nobodyWaits + " AND #rvn = :seen"
	checkAboveNoneIf = isFree + " AND " + nobodyWaits + " AND attribute_not_exists(#rvn)"
	checkPastIf      = "#released = :one AND " + stillFree + " AND #rvn = :seen"
	checkPastNoneIf  = isFree + " AND " + stillFree + " AND attribute_not_exists(#rvn)"
)

var (
	pastSeen         = write{passSeen.update + " REMOVE #queue", "#released = :one AND #fence = :seen" + isUntaken, seenFence}
	pastCovering     = write{passKey + " REMOVE #queue", blindIf + isUntaken + " AND #rvn = :seen", seenRVN}
	pastCoveringNone = write{passKey + " REMOVE #queue", blindIf + isUntaken + " AND attribute_not_exists(#rvn)", nil}
	pastAbove        = write{passAboveSeen.update + " REMOVE #queue", "#released = :one AND #fence < :token AND " + stillFree + " AND #rvn = :seen", seenRVN}
	pastAboveNone    = write{passAbove + " REMOVE #queue", blindIf + " AND " + stillFree + " AND attribute_not_exists(#rvn)", nil}
)

// onlyAbove is a row that has never been held, and has been free and bare for some time.
var onlyAbove = with(never, item{"turnAt": number(freeSince)})

// passPastCases: a commit passes a row whose queue has left it untaken, and removes the queue.
func passPastCases() (all []expression) {
	for _, form := range []struct {
		name  string
		do    write
		row   item
		after item
		rvn   bool // it names the RVN
		blind bool // any fence below the token will do
	}{
		{"seen", pastSeen, released, passed, false, false},
		{"covering", pastCovering, released, passed, true, true},
		{"covering, seen without an RVN", pastCoveringNone, onlyAbove, passed, false, true},
		{"above", pastAbove, released, passedAbove, true, true},
		{"above, seen without an RVN", pastAboveNone, onlyAbove, passedAbove, false, true},
	} {
		try := func(name string, before, after item) {
			all = append(all, expression{form.name + ": " + name, before, form.do, after})
		}
		waiting, after := queued(form.row, "a", "b"), with(form.row, form.after)
		try("as seen", waiting, after)
		try("others wait by now", queued(form.row, "x"), after)
		try("a full queue", queued(form.row, names("u", 64)...), after)
		try("emptied", queued(form.row), after)
		try("no queue", form.row, after)
		try("no row", nil, nil)
		for _, changes := range []map[string]item{otherTurns(), notTakeable()} {
			for name, change := range changes {
				try(name, with(waiting, change), nil)
			}
		}
		earlier := with(waiting, item{"fence": number(token - 2)})
		if form.blind {
			try("an earlier fence", earlier, with(after, item{"fence": number(token)}))
		} else {
			try("an earlier fence", earlier, nil)
		}
		switch other := with(waiting, item{"recordVersionNumber": text("rvn-3")}); {
		case form.name == "seen":
			try("another RVN, which says nothing", other, after)
		case form.rvn:
			try("another RVN", other, nil)
			try("no RVN", with(waiting, item{"recordVersionNumber": nil}), nil)
		default:
			try("had for the first time", other, nil)
		}
	}
	return all
}

// checkCases: a commit that writes nothing under a key requires of its row what it would require to pass
// it, and leaves it as it is.
func checkCases() (all []expression) {
	for _, form := range []struct {
		name      string
		condition string
		values    item
		row       item
		absent    bool // it holds where there is no row
		past      bool // it goes past a queue
		above     bool // what happens below the row is no matter, and who has had it is
	}{
		{"seen", passSeen.condition, seenFence, released, false, false, false},
		{"seen absent", passSeenAbsent.condition, nil, nil, true, false, false},
		{"unseen", passUnseen.condition, nil, released, true, false, false},
		{"covering", passCovering.condition, seenRVN, released, false, false, false},
		{"covering, seen without an RVN", passCoveringNone.condition, nil, never, true, false, false},
		{"above, unseen", passAboveUnseen.condition, nil, released, true, false, false},
		{"above", checkAboveIf, seenRVN, released, false, false, true},
		{"above, seen without an RVN", checkAboveNoneIf, nil, never, true, false, true},
		{"past, seen", pastSeen.condition, seenFence, released, false, true, false},
		{"past, covering", pastCovering.condition, seenRVN, released, false, true, false},
		{"past, covering, seen without an RVN", pastCoveringNone.condition, nil, onlyAbove, false, true, false},
		{"past, above", checkPastIf, seenRVN, released, false, true, true},
		{"past, above, seen without an RVN", checkPastNoneIf, nil, onlyAbove, false, true, true},
	} {
		try := func(name string, row item, holds bool) {
			e := expression{form.name + ": " + name, row, write{"", form.condition, form.values}, nil}
			if holds {
				e.after = with(row, nil)
			}
			all = append(all, e)
		}
		try("no row", nil, form.absent)
		if form.row == nil {
			try("has come", never, false)
			continue
		}
		try("as seen", form.row, true)
		try("emptied", queued(form.row), true)
		try("waited for", queued(form.row, "a", "b"), form.past)
		try("held", with(form.row, item{"isReleased": nil, "unit": text("other")}), false)
		try("released with another value", with(form.row, item{"isReleased": text("0")}), false)
		if form.past {
			for name, change := range otherTurns() {
				try(name, with(queued(form.row, "a", "b"), change), false)
			}
		}
		if form.above {
			for name, fence := range map[string]item{"our token": {"fence": number(token)}, "a later token": {"fence": number(token + 1)}, "no fence": {"fence": nil}} {
				try(name, with(form.row, fence), true)
			}
			try("had since", with(form.row, item{"recordVersionNumber": text("rvn-3")}), false)
		}
	}
	return all
}
