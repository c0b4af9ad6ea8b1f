package conformance

func acquireCases() []expression {
	return []expression{
		{"no row", nil, acquire, taken},
		{"free row", released, acquire, retaken},
		{"no row, for a purpose", nil, acquireFor, with(taken, item{"purpose": text("pay out")})},
		{"free row, for a purpose", released, acquireFor, with(retaken, item{"purpose": text("pay out")})},
		{"the head, for a purpose", with(released, item{"queue": list("me")}), acquireNext, with(retaken, item{"purpose": text("pay out"), "queue": list()})},
		{"free row without fence, of another client", with(released, item{"fence": nil}), acquire, nil},
		// As text, 9 would be newer than the token.
		{"fences compare as numbers", with(released, item{"fence": number(9)}), acquire, retaken},
		{"fence equal", with(released, item{"fence": number(token)}), acquire, nil},
		{"fence newer", with(released, item{"fence": number(token + 1)}), acquire, nil},
		{"held", held, acquire, nil},
		{"intents below", with(released, item{"below": set("other address:9")}), acquire, nil},
		{"foreign row", item{"data": text("x")}, acquire, nil},
		{"released with another value", with(released, item{"isReleased": text("0")}), acquire, nil},
	}
}

func intentCases() []expression {
	first := item{"isReleased": text("1"), "fence": number(token), "below": set("me address:7"), "expiresAt": number(expires)}
	carrying := func(n int) item {
		return item{"isReleased": text("1"), "fence": older, "below": set(names("u", n)...)}
	}
	return []expression{
		{"no row", nil, intent, first},
		{"free row with a TTL", released, intent,
			with(released, item{"fence": number(token), "below": set("me address:7"), "expiresAt": number(expires)})},
		{"beside another", with(carrier, item{"below": set("other address:9")}), intent,
			with(carrier, item{"fence": number(token), "expiresAt": number(expires)})},
		{"beside one of a journal", with(lasting, item{"below": set("other address:9")}), intent,
			with(lasting, item{"fence": number(token), "expiresAt": set("other address:9")})},
		{"again", carrier, intent, with(carrier, item{"fence": number(token), "expiresAt": number(expires)})},
		{"the last place", carrying(63), intent,
			item{"isReleased": text("1"), "fence": number(token), "below": set(append(names("u", 63), "me address:7")...), "expiresAt": number(expires)}},
		{"no place left", carrying(64), intent, nil},
		{"held", held, intent, nil},
		{"fence equal", with(carrier, item{"fence": number(token)}), intent, nil},
		{"restamp", carrier, restampIntent, with(carrier, item{"fence": number(token)})},
		{"restamp another's", with(carrier, item{"below": set("other address:9")}), restampIntent, nil},
		{"restamp without intents", released, restampIntent, nil},
		{"release beside another", carrier, releaseIntent, with(carrier, item{"below": set("other address:9"), "turnAt": number(tableNow)})},
		// The last entry takes the attribute with it: a row without intents has no below.
		{"release the last", with(carrier, item{"below": set("me address:7")}), releaseIntent, with(carrier, item{"below": nil, "turnAt": number(tableNow)})},
		{"release another's", with(carrier, item{"below": set("other address:9")}), releaseIntent, nil},
		{"mark it", carrier, markIntent, with(carrier, item{"pendingBelow": set("me address:7"), "expiresAt": nil})},
		{"mark it beside another", lasting, markIntent, with(lasting, item{"pendingBelow": set("me address:7", "other address:9")})},
		{"mark another's", with(carrier, item{"below": set("other address:9")}), markIntent, nil},
		{"release beside one of a journal", lasting, releaseIntent, with(lasting, item{"below": set("other address:9"), "turnAt": number(tableNow)})},
		{"release that of a journal", with(carrier, item{"pendingBelow": set("me address:7"), "expiresAt": set("me address:7")}), releaseIntent,
			with(carrier, item{"below": set("other address:9"), "expiresAt": set("me address:7"), "turnAt": number(tableNow)})},
		{"let expire", with(carrier, item{"expiresAt": set("me address:7")}), letExpire, with(carrier, item{"expiresAt": number(expires)})},
		{"let expire beside one of a journal", lasting, letExpire, nil},
		{"let expire what is held", held, letExpire, nil},
		{"let expire what is gone", nil, letExpire, nil},
		// contains on a set asks for a member, not for a part of one.
		{"release by a part of the name", with(carrier, item{"below": set("me address:77")}), releaseIntent, nil},
	}
}

func holderCases() []expression {
	pending := with(ours, item{"pending": text("units")})
	gone := item{"unit": nil, "isReleased": text("1"), "expiresAt": number(expires), "turnAt": number(tableNow)}
	return []expression{
		{"restamp", ours, restamp, with(ours, item{"fence": number(token), "expiresAt": number(expires)})},
		{"restamp with the token it has", with(ours, item{"fence": number(token)}), restamp, nil},
		{"restamp never lowers", with(ours, item{"fence": number(token + 1)}), restamp, nil},
		{"restamp another's", held, restamp, nil},
		{"renew", ours, renew, with(ours, item{"recordVersionNumber": text("rvn-2")})},
		{"renew another's", held, renew, nil},
		{"renew a released row", released, renew, nil},
		{"release", ours, release, with(ours, gone)},
		{"release a marked row", pending, release, with(ours, gone)},
		{"release another's", held, release, nil},
		{"release twice", released, release, nil},
		{"commit", ours, commit, with(with(ours, gone), item{"committedBy": text("me")})},
		{"commit after a loss", held, commit, nil},
		{"mark", ours, mark, with(pending, item{"expiresAt": nil})},
		{"mark another's", held, mark, nil},
		{"commit on a marked row", pending, commit, nil},
		{"commit by a journal", pending, commitMarked, with(with(ours, gone), item{"committedBy": text("me")})},
	}
}

func othersCases() []expression {
	buried := item{"unit": nil, "isReleased": text("1"), "expiresAt": number(expires), "turnAt": number(tableNow)}
	created := item{"isReleased": text("1"), "fence": number(token), "expiresAt": number(expires)}
	marked := with(held, item{"pending": text("units")})
	return []expression{
		{"bury", held, bury, with(held, buried)},
		{"bury a row that was renewed", with(held, item{"recordVersionNumber": text("rvn-3")}), bury, nil},
		{"bury a row that was freed", released, bury, nil},
		{"bury a marked row", marked, bury, nil},
		{"burn on a held row", held, burn, with(held, item{"fence": number(token), "expiresAt": number(expires)})},
		{"burn on a free row", released, burn, with(released, item{"fence": number(token), "expiresAt": number(expires)})},
		{"burn on a marked row", marked, burn, nil},
		{"burn on a row that is neither free nor held", item{"fence": number(9)}, burn, nil},
		{"burn on a row with intents", carrier, burn, with(carrier, item{"fence": number(token), "expiresAt": number(expires)})},
		{"burn on a row with the intent of a journal", lasting, burn, with(lasting, item{"fence": number(token), "expiresAt": set("other address:9")})},
		{"burn on a row that lasts: marked", marked, burnLasting, with(marked, item{"fence": number(token)})},
		{"burn on a row that lasts: with intents", carrier, burnLasting, nil},
		{"burn on a row that lasts: neither", held, burnLasting, nil},
		{"burn where the fence is newer", with(released, item{"fence": number(token + 1)}), burn, nil},
		{"burn where there is no row", nil, burnNew, created},
		{"burn where there is a row", released, burnNew, nil},
	}
}
