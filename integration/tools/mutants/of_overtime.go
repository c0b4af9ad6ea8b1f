package main

// ofOvertime: a call whose time is over returns soon, and so does Close, without leaving anybody waiting for a
// lease; and how long a request may take.
var ofOvertime = []mutant{
	{
		clause: "a caller whose context has ended does not wait for the cleanup",
		file:   "internal/underway/finish.go",
		old:    `time.After(grace)`,
		new:    `time.After(100 * grace)`,
		by:     check{in: "internal/underway", test: "TestFinishWaitsWhileTheCallerHasTime"},
	},
	{
		clause: "a caller whose wait is over does not wait for the cleanup",
		file:   "internal/locks/giveup.go",
		old:    `a.c.work.Finish(ctx, end, `,
		new:    `a.c.work.Finish(ctx, time.Time{}, `,
		by:     check{in: "lockset", test: "TestTryAcquireAsksTwice"},
	},
	{
		clause: "Close waits for a cleanup in the background",
		file:   "internal/underway/finish.go",
		old:    `over := w.also()`,
		new:    `over := func() {}`,
		by:     check{in: "internal/underway", test: "TestCloseWaitsForWhatIsFinishedInTheBackground"},
	},
	{
		clause: "a release goes on when its context ends",
		file:   "internal/locks/set.go",
		old:    `releasing, cancel := underway.Outlive(ctx, s.c.cfg.Lease)`,
		new:    `releasing, cancel := context.WithCancel(ctx)`,
		by:     check{in: "lockset", test: "TestAReleaseGoesOnWhenItsContextEnds"},
	},
	{
		clause: "a renewal may take as long as what is observed says",
		file:   "internal/locks/acquire.go",
		old:    `		Longest: c.cfg.longestAttempt(),`,
		new:    ``,
		by:     check{in: "lockset", test: "TestRequestsThatTakeLongerThanAnAttempt"},
	},
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
