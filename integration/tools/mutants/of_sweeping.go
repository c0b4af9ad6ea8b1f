package main

// ofSweeping: a sweep frees the dead where nobody waits, and touches nobody else.
var ofSweeping = []mutant{
	{
		clause: "a sweep watches a holder for a full lease",
		file:   "internal/locks/operator.go",
		old:    `lockrow.Watch{Since: s.Since,`,
		new:    `lockrow.Watch{Since: s.Since.Add(-lockrow.MaxQueue * time.Hour),`,
		by:     check{in: "lockset", test: "TestASweepLeavesTheLivingAlone"},
	},
	{
		clause: "a sweep judges a holder as of when it looked",
		file:   "internal/locks/operator.go",
		old:    `Now: s.At, Table`,
		new:    `Now: time.Now(), Table`,
		by:     check{in: "lockset", test: "TestALookIsJudgedAsOfWhenItWas"},
	},
	{
		clause: "a sweep looks at the witnesses of intents that it was not asked for",
		file:   "lockset/inspect/sweep_run.go",
		old:    `append([]ordering.Key{k.key}, witnessesOf(k.seen.shown)...)`,
		new:    `[]ordering.Key{k.key}`,
		by:     check{in: "lockset", test: "TestASweepCleansIntents"},
	},
	{
		clause: "the witness of an intent has its full lease before a sweep",
		file:   "lockset/inspect/sweep_judge.go",
		old:    `w.Row, w.Watch(0)`,
		new:    `w.Row, lockrow.Watch{Now: now}`,
		by:     check{in: "lockset", test: "TestASweepCleansIntents"},
	},
	{
		clause: "after a sweep has freed a row it looks after the queue",
		file:   "lockset/inspect/sweep_run.go",
		old: `		k.due = time.Now()
	case ctx.Err() != nil ||`,
		new: `		k.over = true
	case ctx.Err() != nil ||`,
		by: check{in: "lockset", test: "TestASweepDropsDeadHeads"},
	},
	{
		clause: "a sweep removes a queue only if the row is free",
		file:   "internal/lockrow/expressions.go",
		old:    `dropAllIf = "#isReleased = :one AND " +`,
		new:    `dropAllIf = "attribute_exists(#key) AND " +`,
		by:     check{in: "lockset", test: "TestASweepKeepsTheQueueOfARowThatIsHeldByNow"},
	},
	{
		clause: "a sweep goes on after the first dead witness",
		file:   "lockset/inspect/sweep_run.go",
		old:    `		return s.acted(ctx, k, s.rows.Clean(ctx, k.key, are.remnants), does...)`,
		new:    "\t\terr := s.acted(ctx, k, s.rows.Clean(ctx, k.key, are.remnants), does...)\n\t\tk.over = true\n\t\treturn err",
		by:     check{in: "lockset", test: "TestASweepGoesOnAfterTheFirstDeadWitness"},
	},
}
