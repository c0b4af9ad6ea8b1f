package conformance

// A unit may go past the units before it if they have left the row free for too long: the row must
// still say that it has been free and bare since the moment that was seen.
const (
	stillFree = "#turn = :turnSeen AND attribute_not_exists(#below)"
	weAre2nd  = "#queue[1] = :waiter"
	weAre3rd  = "#queue[2] = :waiter"
	// From the end, because some engines remove one element after the other.
	first3 = "#queue[2], #queue[1], #queue[0]"
)

var (
	takePast       = write{forNothing + ", #queue", takeIf + " AND " + stillFree, nil}
	takePastFor    = write{forPurpose + ", #queue", takeIf + " AND " + stillFree, nil}
	takePastTwo    = write{forNothing + ", " + first3, takeIf + " AND " + stillFree + " AND " + weAre3rd, nil}
	takePastTwoFor = write{forPurpose + ", " + first3, takeIf + " AND " + stillFree + " AND " + weAre3rd, nil}
	intendPast     = write{intend + " REMOVE #queue", intendIf + " AND " + stillFree, nil}
	intendPastTwo  = write{intend + " REMOVE " + first3, intendIf + " AND " + stillFree + " AND " + weAre3rd, nil}

	dropAll = write{"REMOVE #queue", "#released = :one AND " + stillFree, nil}

	// The first place in the queue of a row that is free and bare dates the row.
	first              = " AND #released = :one AND attribute_not_exists(#below) AND " + nobodyWaits
	joinFirst          = write{join.update + ", #turn = :turn", join.condition + first, nil}
	joinFirstForIntent = write{join.update + ", #turn = :turn", joinForIntent.condition + first, nil}

	burnLeaving        = write{burn.update + " REMOVE #queue[1]", burn.condition + " AND " + weAre2nd, nil}
	burnLastingLeaving = write{burnLasting.update + " REMOVE #queue[1]", burnLasting.condition + " AND " + weAre2nd, nil}
	restampLeaving     = write{restamp.update + " REMOVE #queue[1]", restamp.condition + " AND " + weAre2nd, nil}
)

// queued is a row with such a queue.
func queued(row item, units ...string) item { return with(row, item{"queue": list(units...)}) }

// otherTurns are changes to a row by which it is not one that has been free and bare since freeSince.
func otherTurns() map[string]item {
	return map[string]item{
		"free since a moment before": {"turnAt": number(freeSince - 1)},
		"free since a moment after":  {"turnAt": number(freeSince + 1)},
		"not dated":                  {"turnAt": nil},
		"dated by a text":            {"turnAt": text("1763000000000000007")},
		"intents below":              {"below": set("other address:9")},
	}
}

// notTakeable are changes by which nobody may take it at all.
func notTakeable() map[string]item {
	return map[string]item{
		"held":                        {"isReleased": nil, "unit": text("other")},
		"our token":                   {"fence": number(token)},
		"no fence":                    {"fence": nil},
		"released with another value": {"isReleased": text("0")},
	}
}

// pastCases: a unit takes a row past dead waiters, with a place or without.
func pastCases() (all []expression) {
	below := with(released, item{"fence": number(token), "below": set("me address:7"), "expiresAt": number(expires)})
	payOut := with(retaken, item{"purpose": text("pay out")})
	all = []expression{
		{"take for a purpose", queued(released, "a", "b"), takePastFor, payOut},
		{"take from the third place for a purpose", queued(released, "a", "b", "me", "c"), takePastTwoFor, queued(payOut, "c")},
	}
	for _, form := range []struct {
		name   string
		do     write
		after  item
		placed bool
	}{
		{"take", takePast, retaken, false},
		{"take from the third place", takePastTwo, retaken, true},
		{"intend", intendPast, below, false},
		{"intend from the third place", intendPastTwo, below, true},
	} {
		try := func(name string, before, after item) {
			all = append(all, expression{form.name + ": " + name, before, form.do, after})
		}
		if form.placed {
			try("as seen", queued(released, "a", "b", "me"), queued(form.after))
			try("a longer queue", queued(released, "a", "b", "me", "c", "d"), queued(form.after, "c", "d"))
			try("other units before us", queued(released, "x", "y", "me"), queued(form.after))
			try("a shorter queue", queued(released, "b", "me"), nil)
			try("more before us", queued(released, "x", "a", "b", "me"), nil)
			try("emptied", queued(released), nil)
			try("no queue", released, nil)
			try("no list", with(released, item{"queue": text("a b me")}), nil)
		} else {
			try("as seen", queued(released, "a", "b"), form.after)
			try("a full queue", queued(released, names("u", 64)...), form.after)
			try("emptied", queued(released), form.after)
			try("no queue", released, form.after)
			try("no list", with(released, item{"queue": number(7)}), form.after)
		}
		try("no row", nil, nil)
		for _, changes := range []map[string]item{otherTurns(), notTakeable()} {
			for name, change := range changes {
				try(name, with(queued(released, "a", "b", "me"), change), nil)
			}
		}
	}
	return all
}

// dropAllCases: all places of a queue are removed at once, if nobody has had the row since it was seen.
func dropAllCases() []expression {
	all := []expression{
		{"as seen", queued(released, "a", "b"), dropAll, released},
		{"a full queue", queued(released, names("u", 64)...), dropAll, released},
		{"with others than were seen", queued(released, "c"), dropAll, released},
		{"emptied", queued(released), dropAll, released},
		{"no queue", released, dropAll, released},
		{"no list", with(released, item{"queue": text("a")}), dropAll, released},
		{"no row", nil, dropAll, nil},
		{"held", queued(held, "a", "b"), dropAll, nil},
		{"released with another value", queued(with(released, item{"isReleased": text("0")}), "a"), dropAll, nil},
	}
	for name, change := range otherTurns() {
		all = append(all, expression{name, with(queued(released, "a", "b"), change), dropAll, nil})
	}
	return all
}

func joinFirstCases() (all []expression) {
	joined := with(released, item{"queue": list("me"), "turnAt": number(tableNow)})
	for name, do := range map[string]write{"join": joinFirst, "join to intend": joinFirstForIntent} {
		all = append(all,
			expression{name + ": free", released, do, joined},
			expression{name + ": emptied", queued(released), do, joined},
			expression{name + ": not dated", with(released, item{"turnAt": nil}), do, joined},
			expression{name + ": dated by a text", with(released, item{"turnAt": text("x")}), do, joined},
			expression{name + ": another was first", queued(released, "a"), do, nil},
			expression{name + ": joined before", queued(released, "me"), do, nil},
			expression{name + ": no list", with(released, item{"queue": number(7)}), do, nil},
			expression{name + ": no row", nil, do, nil},
			expression{name + ": our intent is there", carrier, do, nil},
			expression{name + ": intents below", with(released, item{"below": set("other address:9")}), do, nil},
		)
		for why, change := range notTakeable() {
			all = append(all, expression{name + ": " + why, with(released, change), do, nil})
		}
	}
	return all
}

// leavingCases: a token is made unusable, and the place of its unit given up, in one write.
func leavingCases() (all []expression) {
	marked := with(held, item{"pending": text("units")})
	for _, form := range []struct {
		name   string
		do     write
		row    item
		after  item
		others map[string]item // rows that refuse it whatever their queue
	}{
		{"burn", burnLeaving, held, item{"fence": number(token), "expiresAt": number(expires)},
			map[string]item{"marked": marked, "ours": ours, "neither free nor held": {"fence": number(9)}}},
		{"burn on a free row", burnLeaving, released, item{"fence": number(token), "expiresAt": number(expires)}, nil},
		{"burn on a row that lasts", burnLastingLeaving, marked, item{"fence": number(token)},
			map[string]item{"held": held, "free": released}},
		{"restamp", restampLeaving, ours, item{"fence": number(token), "expiresAt": number(expires)},
			map[string]item{"held": held, "free": released}},
	} {
		try := func(name string, before, after item) {
			all = append(all, expression{form.name + ": " + name, before, form.do, after})
		}
		after := with(form.row, form.after)
		try("from the end", queued(form.row, "a", "me"), queued(after, "a"))
		try("from the middle", queued(form.row, "a", "me", "b"), queued(after, "a", "b"))
		try("the queue has moved", queued(form.row, "me", "b"), nil)
		try("a shorter queue", queued(form.row, "me"), nil)
		try("emptied", queued(form.row), nil)
		try("no queue", form.row, nil)
		try("no list", with(form.row, item{"queue": text("me")}), nil)
		try("our token", with(queued(form.row, "a", "me"), item{"fence": number(token)}), nil)
		try("no fence", with(queued(form.row, "a", "me"), item{"fence": nil}), nil)
		for name, row := range form.others {
			try(name, queued(row, "a", "me"), nil)
		}
	}
	return all
}
