package main

// ofOvertime: a call whose time is over returns soon, and how long a request may take.
var ofOvertime = []mutant{
	{
		clause: "a caller whose context has ended does not wait for the cleanup",
		file:   "internal/underway/finish.go",
		old:    `timer := time.NewTimer(grace)`,
		new:    `timer := time.NewTimer(100 * grace)`,
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
}
