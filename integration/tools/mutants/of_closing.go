package main

// ofClosing: a process that is about to end leaves nobody waiting for a lease.
var ofClosing = []mutant{
	{
		clause: "what is given up is waited for",
		file:   "internal/underway/underway.go",
		old:    "	err := w.giveUp(ctx)\n	select {",
		new:    "	err := w.giveUp(ctx)\n	cancel()\n	select {",
		by:     check{in: "internal/underway", test: "TestCloseGivesUpWhenItsContextEnds"},
	},
	{
		clause: "a unit that Close ends lets go of its locks",
		file:   "unitofwork/close.go",
		old:    `err := u.set.Release(ctx)`,
		new:    `err := ctx.Err()`,
		by:     check{in: "unitofwork", test: "TestCloseGivesUpTheLocksOfUnits"},
	},
}
