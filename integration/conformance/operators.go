package conformance

// What an operator does to rows, and a sweep.
var (
	revokeSet = "SET #unit = :operator, #owner = :owner, #rvn = :rvn, #fence = :token, #at = :at, #from = :unit"
	revokeIf  = mine + " AND attribute_not_exists(#pending) AND #fence < :token"
	revoke    = write{revokeSet + " REMOVE #purpose, #renewed", revokeIf, nil}
	revokeFor = write{revokeSet + ", #purpose = :purpose REMOVE #renewed", revokeIf, nil}
	revokeNow = write{"SET #released = :one, #expires = :expires, #turn = :turn, #from = :unit REMOVE #unit",
		mine + " AND attribute_not_exists(#pending)", nil}
	// The operator's intent is to stand in for the unit's.
	revokeIntent = write{"ADD #below :entries SET #fence = :token, " + outlives, within + " AND #fence < :token AND size(#below) < :room",
		item{":entries": set("operator address:7")}}

	restoreFreed = write{"SET #released = :one, #fence = :token, #by = :unit, #expires = :expires", "attribute_not_exists(#key)", nil}
	restoreHeld  = write{"SET #owner = :owner, #lease = :lease, #rvn = :rvn, #unit = :unit, #fence = :token, #at = :at, #renewed = :renewed, #pending = :journal",
		"attribute_not_exists(#key)", nil}
	restoreIntent = write{"ADD #below :entries, #pendingBelow :entries SET #released = :one, #fence = if_not_exists(#fence, :token) REMOVE #expires",
		"(attribute_not_exists(#key) OR #released = :one AND attribute_exists(#fence)) AND " +
			"(attribute_not_exists(#below) OR contains(#below, :entry) OR size(#below) < :room)", nil}

	limit = write{"SET #expires = :expires REMOVE #pendingBelow", "#released = :one AND #fence = :seen AND attribute_not_exists(#below)", seenFence}

	// Two intents of others go at once.
	clearTwo = write{releaseIntent.update, "contains(#below, :entry) AND contains(#below, :entryb)",
		item{":entryb": text("other address:9"), ":entries": set("me address:7", "other address:9")}}
)

func revokeCases() []expression {
	taken := item{"unit": text("operator"), "ownerName": text("host-1"), "recordVersionNumber": text("rvn-2"), "fence": number(token),
		"acquiredAt": number(1_763_000_000_000), "takenFrom": text("me"), "purpose": nil, "renewedAt": nil}
	let := item{"unit": nil, "isReleased": text("1"), "expiresAt": number(expires), "turnAt": number(tableNow), "takenFrom": text("me")}
	pending := item{"pending": text("units")}
	all := []expression{
		{"revoke", ours, revoke, with(ours, taken)},
		{"revoke what is not dated", with(ours, item{"renewedAt": nil, "purpose": nil}), revoke, with(ours, taken)},
		{"revoke for a purpose", ours, revokeFor, with(with(ours, taken), item{"purpose": text("pay out")})},
		{"revoke what was revoked before", with(ours, item{"takenFrom": text("before")}), revoke, with(ours, taken)},
		{"revoke with an old token", with(ours, item{"fence": number(token)}), revoke, nil},
		{"revoke where there is no fence", with(ours, item{"fence": nil}), revoke, nil},
		{"revoke and let others in", ours, revokeNow, with(ours, let)},
		{"revoke and let others in, with any fence", with(ours, item{"fence": number(token + 1)}), revokeNow, with(with(ours, let), item{"fence": number(token + 1)})},
	}
	for name, do := range map[string]write{"revoke": revoke, "revoke for a purpose": revokeFor, "revoke and let others in": revokeNow} {
		all = append(all,
			expression{name + ": marked", with(ours, pending), do, nil},
			expression{name + ": another's", held, do, nil},
			expression{name + ": free", released, do, nil},
			expression{name + ": no row", nil, do, nil},
		)
	}
	carrying := func(n int) item { return with(carrier, item{"below": set(append(names("u", n), "me address:7")...)}) }
	left := item{"fence": number(token), "expiresAt": number(expires)}
	stood := set("me address:7", "operator address:7", "other address:9")
	return append(all,
		expression{"leave an intent", carrier, revokeIntent, with(with(carrier, left), item{"below": stood})},
		expression{"leave an intent beside one of a journal", lasting, revokeIntent,
			with(lasting, item{"fence": number(token), "expiresAt": set("other address:9"), "below": stood})},
		expression{"leave an intent in the last place", carrying(78), revokeIntent,
			with(with(carrier, left), item{"below": set(append(names("u", 78), "me address:7", "operator address:7")...)})},
		expression{"leave an intent without a place", carrying(79), revokeIntent, nil},
		expression{"leave an intent where the unit has none", with(carrier, item{"below": set("other address:9")}), revokeIntent, nil},
		expression{"leave an intent where there are none", released, revokeIntent, nil},
		expression{"leave an intent with an old token", with(carrier, item{"fence": number(token)}), revokeIntent, nil},
		expression{"leave an intent where there is no set", with(carrier, item{"below": number(7)}), revokeIntent, nil},
		expression{"leave an intent where there is no row", nil, revokeIntent, nil},
	)
}

func restoreCases() (all []expression) {
	back := with(taken, item{"expiresAt": nil, "pending": text("units")})
	for _, form := range []struct {
		name  string
		do    write
		after item
	}{
		{"freed", restoreFreed, item{"isReleased": text("1"), "fence": number(token), "committedBy": text("me"), "expiresAt": number(expires)}},
		{"held", restoreHeld, back},
	} {
		all = append(all,
			expression{form.name + ": no row", nil, form.do, form.after},
			expression{form.name + ": free", released, form.do, nil},
			expression{form.name + ": held", held, form.do, nil},
			expression{form.name + ": empty", item{}, form.do, nil},
		)
	}
	entry := set("me address:7")
	carrying := func(n int) item { return with(carrier, item{"below": set(names("u", n)...)}) }
	marked := func(row item, below ...string) item {
		return with(row, item{"below": set(below...), "pendingBelow": entry, "expiresAt": nil})
	}
	return append(all,
		expression{"intent: no row", nil, restoreIntent, item{"isReleased": text("1"), "fence": number(token), "below": entry, "pendingBelow": entry}},
		expression{"intent: free", released, restoreIntent, marked(released, "me address:7")},
		expression{"intent: is there", carrier, restoreIntent, marked(carrier, "me address:7", "other address:9")},
		expression{"intent: beside one of a journal", with(lasting, item{"below": set("other address:9")}), restoreIntent,
			with(lasting, item{"pendingBelow": set("me address:7", "other address:9")})},
		expression{"intent: a later fence stays", with(carrier, item{"fence": number(token + 1)}), restoreIntent,
			with(marked(carrier, "me address:7", "other address:9"), item{"fence": number(token + 1)})},
		expression{"intent: the last place", carrying(79), restoreIntent, marked(carrier, append(names("u", 79), "me address:7")...)},
		expression{"intent: no place left", carrying(80), restoreIntent, nil},
		expression{"intent: no place left, and is there", carrying(80), write{restoreIntent.update, restoreIntent.condition,
			item{":entry": text("u00"), ":entries": set("u00")}}, with(carrying(80), item{"pendingBelow": set("u00"), "expiresAt": nil})},
		expression{"intent: no set", with(carrier, item{"below": number(7)}), restoreIntent, nil},
		expression{"intent: held", held, restoreIntent, nil},
		expression{"intent: no fence", with(carrier, item{"fence": nil}), restoreIntent, nil},
		expression{"intent: released with another value", with(carrier, item{"isReleased": text("0")}), restoreIntent, nil},
	)
}

// expiryCases: a row above keys gets an expiry when no unit with a journal has an intent there.
func expiryCases() []expression {
	lasts := with(released, item{"expiresAt": nil, "pendingBelow": set("me address:7")})
	limited := with(released, item{"expiresAt": number(expires)})
	return []expression{
		{"let expire", carrier, letExpire, with(carrier, item{"expiresAt": number(expires)})},
		{"let expire without an expiry", with(released, item{"expiresAt": nil}), letExpire, limited},
		{"let expire with another value", with(released, item{"isReleased": text("0")}), letExpire, nil},
		{"limit", lasts, limit, limited},
		{"limit without a remnant", with(released, item{"expiresAt": nil}), limit, limited},
		{"limit with intents", with(lasts, item{"below": set("me address:7")}), limit, nil},
		{"limit what was had since", with(lasts, item{"fence": number(token)}), limit, nil},
		{"limit without a fence", with(lasts, item{"fence": nil}), limit, nil},
		{"limit what is held", held, limit, nil},
		{"limit with another value", with(lasts, item{"isReleased": text("0")}), limit, nil},
		{"limit what is gone", nil, limit, nil},

		{"clear two", carrier, clearTwo, with(carrier, item{"below": nil, "turnAt": number(tableNow)})},
		{"clear two beside another", with(carrier, item{"below": set("a", "me address:7", "other address:9")}), clearTwo,
			with(carrier, item{"below": set("a"), "turnAt": number(tableNow)})},
		{"clear two of journals", with(lasting, item{"pendingBelow": set("a", "me address:7", "other address:9")}), clearTwo,
			with(lasting, item{"below": nil, "pendingBelow": set("a"), "turnAt": number(tableNow)})},
		{"clear two, one of which is gone", with(carrier, item{"below": set("me address:7")}), clearTwo, nil},
		{"clear two, both of which are gone", released, clearTwo, nil},
		{"clear two where there is no row", nil, clearTwo, nil},
	}
}
