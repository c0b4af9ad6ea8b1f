package main

// ofOrder: the order that keys are taken in, and what a lock on one covers.
var ofOrder = []mutant{
	{
		clause: "a fine lock leaves an intent on each of its ancestors, not on the outermost alone",
		file:   "internal/plans/plan.go",
		old:    `slices.Clone(ancestors[shared:])`,
		new:    `slices.Clone(ancestors[shared:min(len(ancestors), max(shared, 1))])`,
		by:     check{in: "lockset", test: "TestCoarseAndFineExcludeEachOther"},
	},
}

// ofTokens: tokens rise along every conflict, whatever the clocks say.
var ofTokens = []mutant{
	{
		clause: "a row that has a fence beyond all tokens is not understood",
		file:   "internal/lockrow/row.go",
		old:    `r.number(AttrFence, int64(tokens.Max))`,
		new:    `r.number(AttrFence, max(math.MaxInt64, int64(tokens.Max)))`,
		by:     check{in: "internal/lockrow", test: "TestForeignRowsAreNotUnderstood"},
	},
	{
		clause: "a table admits a holder only with a token newer than the row's fence",
		file:   "internal/lockrow/expressions.go",
		old:    `takeIf = isFree + " AND attribute_not_exists(#below) AND " + isNewer`,
		new:    `takeIf = isFree + " AND attribute_not_exists(#below)"`,
		by:     check{in: "lockset", test: "TestTokensRiseAlongEveryConflictWhateverTheClocks"},
	},
	{
		clause: "a table admits an intent only with a token newer than the row's fence",
		file:   "internal/lockrow/expressions.go",
		old:    `intendIf = isFree + " AND " + isNewer +`,
		new:    `intendIf = isFree +`,
		by:     check{in: "lockset", test: "TestTokensRiseAlongEveryConflictWhateverTheClocks"},
	},
	{
		clause: "newer is newer, not as new",
		file:   "internal/lockrow/expressions.go",
		old:    `OR #fence < :token)"`,
		new:    `OR #fence <= :token)"`,
		by:     check{in: "lockset", test: "TestNoGhostLocks"},
	},
	{
		clause: "an intent stamps its ancestor's row with the token",
		file:   "internal/lockrow/expressions.go",
		old:    `SET #fence = :token, #isReleased = :one, " + outlives`,
		new:    `SET #fence = if_not_exists(#fence, :token), #isReleased = :one, " + outlives`,
		by:     check{in: "lockset", test: "TestTokensRiseAlongEveryConflictWhateverTheClocks"},
	},
	{
		clause: "the fence stays when a row is freed",
		file:   "internal/lockrow/expressions.go",
		old:    `Free   = "SET #isReleased = :one, #expiresAt = :expires, #turnAt`,
		new:    `Free   = "SET #isReleased = :one, #expiresAt = :expires, #fence = :one, #turnAt`,
		by:     check{in: "lockset", test: "TestNoGhostLocks"},
	},
	{
		clause: "steps taken with a lower token are stamped anew before the set counts as acquired",
		file:   "internal/locks/restamp.go",
		old:    `if a.ledger.stamps[i] >= a.token {`,
		new:    `if a.ledger.stamps[i] > 0 {`,
		by:     check{in: "lockset", test: "TestARaisedTokenIsStampedOnAllRows"},
	},
	{
		clause: "a re-stamp reaches the ancestors, too",
		file:   "internal/locks/restamp.go",
		old:    `range a.wants(i) {`,
		new:    `range a.wants(i)[len(a.plan[i].Intents):] {`,
		by:     check{in: "lockset", test: "TestARaisedTokenIsStampedOnAllRows"},
	},
	{
		clause: "a re-stamp touches only rows that are the unit's",
		file:   "internal/lockrow/expressions.go",
		old:    `RestampKeyIf    = "#fence < :token AND " + IsMine`,
		new:    `RestampKeyIf    = "#fence < :token"`,
		by:     check{in: "lockset", test: "TestARestampThatFindsARowLostFails"},
	},
	{
		clause: "a re-stamp that finds a row lost loses the set",
		file:   "internal/locks/restamp.go",
		old: `	if w.HeldIn(r) {
		return nil // still`,
		new: `	if w.HeldIn(r) || r.Exists {
		return nil // still`,
		by: check{in: "lockset", test: "TestARestampThatFindsARowLostFails"},
	},
	{
		clause: "no re-stamp lowers a fence",
		file:   "internal/lockrow/expressions.go",
		old:    `RestampKeyIf    = "#fence < :token AND " + IsMine`,
		new:    `RestampKeyIf    = IsMine`,
		by:     check{in: "lockset", test: "TestARestampLowersNoFence"},
	},
}
