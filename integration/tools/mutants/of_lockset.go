package main

// ofAcquiring: who gets in, and what a refused chunk means.
var ofAcquiring = []mutant{
	{
		clause: "a key is taken only if it is free",
		file:   "internal/lockrow/expressions.go",
		old:    `takeIf = isFree + " AND attribute_not_exists(#below) AND " + isNewer`,
		new:    `takeIf = "attribute_not_exists(#below) AND " + isNewer`,
		by:     check{in: "lockset", test: "TestCoarseAndFineExcludeEachOther"},
	},
	{
		clause: "a key is taken only if no intent is below it",
		file:   "internal/lockrow/expressions.go",
		old:    `takeIf = isFree + " AND attribute_not_exists(#below) AND " + isNewer`,
		new:    `takeIf = isFree + " AND " + isNewer`,
		by:     check{in: "lockset", test: "TestCoarseAndFineExcludeEachOther"},
	},
	{
		clause: "an intent is left only on a row that nobody holds",
		file:   "internal/lockrow/expressions.go",
		old:    `intendIf = isFree + " AND " + isNewer +`,
		new:    `intendIf = isNewer +`,
		by:     check{in: "lockset", test: "TestCoarseAndFineExcludeEachOther"},
	},
	{
		clause: "a raised token keeps the rows that it is stamped on",
		file:   "internal/lockrow/mode.go",
		old:    `notTheirs, RestampKeyIf, Stamp}`,
		new:    `notTheirs, RestampKeyIf, stampIntent}`,
		by:     check{in: "lockset", test: "TestARowOutlivesItsFenceByTheRetention"},
	},
	{
		clause: "a freed row outlives its fence by the retention, by any clock",
		file:   "internal/locks/client.go",
		old:    `latest.Add(c.cfg.Retention)`,
		new:    `c.cfg.Now().Add(c.cfg.Retention)`,
		by:     check{in: "lockset", test: "TestARowOutlivesItsFenceByTheRetention"},
	},
	{
		clause: "acquiring leaves the last commit stamp",
		file:   "internal/lockrow/expressions.go",
		old:    `forNothing = " REMOVE #isReleased, #purpose"`,
		new:    `forNothing = " REMOVE #isReleased, #purpose, #committedBy"`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a unit that waits holds nothing later than what it waits for",
		file:   "internal/locks/queue.go",
		old:    `chunk, _ := a.plan[a.ledger.secured:].Cut(rows)`,
		new:    `chunk, _ := a.plan[a.ledger.secured+(len(a.plan)-a.ledger.secured-1)*(1-min(a.ledger.secured, 1)):].Cut(rows)`,
		by:     check{in: "lockset", test: "TestABlockedSetSecuresWhatComesBeforeAndWaits"},
	},
	{
		clause: "a unit frees nothing while it goes on",
		file:   "internal/locks/acquire.go",
		old:    `	return &heartbeat.LostError{Key: at.Row.Key, Reason: errOverslept}`,
		new:    "\t_, err := a.c.release(ctx, a.unit, a.plan[at.Step:at.Step+1])\n\treturn err",
		by:     check{in: "lockset", test: "TestALateReleaseFreesNothingThatItsUnitHas"},
	},
}

// ofTakingOver: the living are left alone, the dead are not.
var ofTakingOver = []mutant{
	{
		clause: "a holder is dead after a full lease of silence, not sooner",
		file:   "internal/lockrow/judge.go",
		old:    `	end := at.Since.Add(r.Lease)`,
		new:    `	end := at.Since.Add(r.Lease / 2)`,
		by:     check{in: "lockset", test: "TestTakeoverComesAFullLeaseAfterTheFirstSightAndAfterTheHolderKnows"},
	},
	{
		clause: "a holder's lease is the one its row names",
		file:   "internal/lockrow/judge.go",
		old:    `	end := at.Since.Add(r.Lease)`,
		new:    `	end := at.Since.Add(min(r.Lease, 20*time.Second))`,
		by:     check{in: "internal/lockrow", test: "TestJudge"},
	},
	{
		clause: "the watch begins after the answer, not before the question",
		file:   "internal/locks/client.go",
		old:    `c.seen.See(r, time.Now()), `,
		new:    `c.seen.See(r, time.Now().Add(-c.cfg.AttemptTimeout)), `,
		by:     check{in: "lockset", test: "TestTakeoverComesAFullLeaseAfterTheFirstSightAndAfterTheHolderKnows"},
	},
	{
		clause: "a new RVN is a sign of life",
		file:   "internal/lockrow/sightings.go",
		old:    `if !ok || seen.sign != sign {`,
		new:    `if !ok {`,
		by:     check{in: "lockset", test: "TestTheHolderIsToldBeforeTheTakeover"},
	},
	{
		clause: "a silent holder with a journal is not buried for its silence",
		file:   "internal/lockrow/judge.go",
		old:    `	if r.Prepared != "" {`,
		new:    `	if r.Prepared != "" && at.Now.Before(at.Since) {`,
		by:     check{in: "internal/lockrow", test: "TestJudge"},
	},
	{
		clause: "a bury needs the RVN that was watched",
		file:   "internal/lockrow/expressions.go",
		old:    `BuryIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit)`,
		new:    `BuryIf = "attribute_exists(#unit)`,
		by:     check{in: "lockset", test: "TestALateBuryFreesNobodyElse"},
	},
	{
		clause: "a bury needs a row without a journal",
		file:   "internal/lockrow/expressions.go",
		old:    ` AND attribute_exists(#unit) AND attribute_not_exists(#pending)"`,
		new:    ` AND attribute_exists(#unit)"`,
		by:     check{in: "lockset", test: "TestARowThatTurnsPendingIsNotBuried"},
	},
	{
		clause: "an intent is cleaned in one transaction with a check of its witness's row, not on a plain read",
		file:   "internal/lockrow/expressions.go",
		old:    `notTheirs = "(attribute_not_exists(#unit) OR #unit <> :unit)"`,
		new:    `notTheirs = "(attribute_not_exists(#unit) OR attribute_exists(#unit) OR #unit <> :unit)"`,
		by:     check{in: "lockset", test: "TestAnIntentWhoseKeyIsTakenMeanwhileIsNotCleaned"},
	},
	{
		clause: "a clean needs the entry to be there",
		file:   "internal/lockrow/expressions.go",
		old:    `strings.Join(conditions, " AND "), leave, entries)`,
		new:    `strings.TrimSpace("attribute_exists(#key)"), leave, entries)`,
		by:     check{in: "lockset", test: "TestACleaningIsToldOnce"},
	},
}
