package main

// ofLettingGo: the dead hold up nobody but those who need what they have.
var ofLettingGo = []mutant{
	{
		clause: "a unit lets go three times at most",
		file:   "internal/locks/acquire.go",
		old:    `n <= mostLetGo`,
		new:    `n <= 100*mostLetGo`,
		by:     check{in: "lockset", test: "TestWhoHasLetGoOftenEnoughKeepsWhatItHas"},
	},
	{
		clause: "who has let go has the row for which it waited before it begins anew",
		file:   "internal/locks/acquire.go",
		old:    `a.waitAlone(ctx, err)`,
		new:    `context.Cause(ctx)`,
		by:     check{in: "lockset", test: "TestWhoWaitsForTheDeadLetsGo"},
	},
}
