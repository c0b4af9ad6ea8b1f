package main

// ofClosing: a process that is about to end leaves nobody waiting for a lease.
var ofClosing = []mutant{
	{
		clause: "closing waits for what is under way",
		file:   "internal/underway/underway.go",
		old:    `	w.some[n] = giveUp`,
		new:    `	_ = giveUp`,
		by:     check{in: "internal/underway", test: "TestCloseWaitsForWhatIsUnderWay"},
	},
	{
		clause: "what is given up is waited for",
		file:   "internal/underway/underway.go",
		old:    "	err := w.giveUp(ctx)\n	select {",
		new:    "	err := w.giveUp(ctx)\n	cancel()\n	select {",
		by:     check{in: "internal/underway", test: "TestCloseGivesUpWhenItsContextEnds"},
	},
	{
		clause: "whoever holds a set that Close releases is told before",
		file:   "lockset/close.go",
		old:    `c.lose(ErrClosed)`,
		new:    `c.lose(ErrReleased)`,
		by:     check{in: "lockset", test: "TestCloseReleasesSetsAndEndsWaits"},
	},
	{
		clause: "a commit under way is not cut short by Close",
		file:   "unitofwork/close.go",
		old:    `if u != nil && u.hasEnded() {`,
		new:    `if u != nil && u.hasEnded() && c.cancel == nil {`,
		by:     check{in: "unitofwork", test: "TestCloseDuringACommit"},
	},
	{
		clause: "a unit that Close ends lets go of its locks",
		file:   "unitofwork/close.go",
		old:    `err := u.set.Release(ctx)`,
		new:    `err := ctx.Err()`,
		by:     check{in: "unitofwork", test: "TestCloseGivesUpTheLocksOfUnits"},
	},
	{
		clause: "after an attempt its unit is not taken for one that commits",
		file:   "unitofwork/do.go",
		old:    `		call.unit.Store(nil)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestCloseAfterAnAttempt"},
	},
	{
		clause: "a unit that got its locks as it was closed gives them up",
		file:   "unitofwork/do.go",
		old:    `if call.unit.Store(u); call.closed.Load() {`,
		new:    `if call.unit.Store(u); call.closed.Load() && fn == nil {`,
		by:     check{in: "unitofwork", test: "TestCloseWhileLocksAreTaken"},
	},
}
