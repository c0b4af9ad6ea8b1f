package main

// ofLettingGo: the dead hold up nobody but those who need what they have.
var ofLettingGo = []mutant{
	{
		clause: "who waits for somebody silent lets go of what it has",
		file:   "lockset/letgo.go",
		old:    `return silent && a.mayLetGo()`,
		new:    `return false`,
		by:     check{in: "lockset", test: "TestWhoWaitsForTheDeadLetsGo"},
	},
	{
		clause: "who waits for the dead below a key lets go, too",
		file:   "lockset/wait.go",
		old:    `below.answered && a.letsGoOf(below.living.Row, below.living.Since)`,
		new:    `false`,
		by:     check{in: "lockset", test: "TestWhoWaitsForTheDeadLetsGo"},
	},
	{
		clause: "nobody lets go because of the living",
		file:   "lockset/letgo.go",
		old:    `time.Since(since) > a.c.patience(r.Lease)`,
		new:    `time.Since(since) > a.c.patience(r.Lease)/2`,
		by:     check{in: "lockset", test: "TestWhoKeepsWhatItHas"},
	},
	{
		clause: "a holder is given the time that it has by its own lease",
		file:   "lockset/letgo.go",
		old:    `part * float64(lease)`,
		new:    `part * float64(c.cfg.Lease)`,
		by:     check{in: "lockset", test: "TestWhoKeepsWhatItHas"},
	},
	{
		clause: "who has nothing goes on waiting",
		file:   "lockset/letgo.go",
		old:    `a.letsGo && a.ledger.secured > 0`,
		new:    `a.letsGo`,
		by:     check{in: "lockset", test: "TestWhoKeepsWhatItHas"},
	},
	{
		clause: "a unit lets go three times at most",
		file:   "lockset/acquire.go",
		old:    `n <= mostLetGo`,
		new:    `n <= 100*mostLetGo`,
		by:     check{in: "lockset", test: "TestWhoHasLetGoOftenEnoughKeepsWhatItHas"},
	},
	{
		clause: "who has let go has the row for which it waited before it begins anew",
		file:   "lockset/acquire.go",
		old:    `a.waitAlone(ctx, err)`,
		new:    `context.Cause(ctx)`,
		by:     check{in: "lockset", test: "TestWhoWaitsForTheDeadLetsGo"},
	},
	{
		clause: "those who stand in line behind it let go, too",
		file:   "lockset/letgo.go",
		old:    `case a.c.lineup.WhoBlocks(a.claim).Silent:`,
		new:    `case false:`,
		by:     check{in: "lockset", test: "TestALineBehindTheDeadLetsGo"},
	},
	{
		clause: "who lets go when its context has ended says who was in its way",
		file:   "lockset/letgo.go",
		old:    `held.Err = context.Cause(ctx)`,
		new:    `_ = held`,
		by:     check{in: "lockset", test: "TestAContextThatEndsWhileAUnitLetsGo"},
	},
}
