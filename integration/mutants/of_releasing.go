package main

// ofReleasing: released in reverse, all that can be, and nobody else's.
var ofReleasing = []mutant{
	{
		clause: "a release needs the row to be the unit's",
		file:   "lockset/release.go",
		old:    `c.values(u, 0), isMine, free)`,
		new:    `c.values(u, 0), "attribute_exists(#key)", free)`,
		by:     check{in: "lockset", test: "TestFaultsInRelease"},
	},
	{
		clause: "steps are released in reverse",
		file:   "lockset/release.go",
		old:    `		steps, chunk = lastChunk(steps, most)`,
		new:    `		chunk, steps = steps.Cut(most)`,
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "a step heard of too late is the last",
		file:   "lockset/acquire.go",
		old:    "old.doubts })\n\treturn context.Cause(a.group.Context())",
		new:    "old.doubts })\n\treturn nil",
		by:     check{in: "lockset", test: "TestAStepHeardOfTooLateIsTheLast"},
	},
	{
		clause: "a release that left an intent is not done",
		file:   "lockset/release.go",
		old:    `			return lost, err`,
		new:    `			return lost, nil`,
		by:     check{in: "lockset", test: "TestAReleaseThatLeavesAnIntentIsNotDone"},
	},
	{
		clause: "an overtaken commit takes its intents away",
		file:   "lockset/ending.go",
		old:    `left, err := c.release(ctx, u, e.plan)`,
		new:    `left, err := c.release(ctx, u, nil)`,
		by:     check{in: "unitofwork", test: "TestAnOvertakenCommitLeavesNoIntent"},
	},
	{
		clause: "a step is not freed before a later one that its intents cover",
		file:   "lockset/release.go",
		old:    `		chunk, waits := independent(chunk, left)`,
		new:    `		chunk, waits := independent(chunk, nil)`,
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "a release goes on with what it can",
		file:   "lockset/release.go",
		old:    `			left = append(slices.Clone(chunk), left...)`,
		new:    "			left = append(slices.Clone(chunk), left...)\n			return append(slices.Clone(steps), left...), errors.Join(errs...)",
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "the intents of a key that is not ours any more are released",
		file:   "lockset/release.go",
		old:    `			rest = append(rest, w)`,
		new:    `			if !w.intent { rest = append(rest, w) }`,
		by:     check{in: "lockset", test: "TestReleaseIsIdempotentAndTellsOfALoss"},
	},
	{
		clause: "a release whose context has ended goes on for a lease",
		file:   "lockset/set.go",
		old:    `	if ctx.Err() != nil {`,
		new:    `	if false {`,
		by:     check{in: "lockset", test: "TestAReleaseUnderAContextThatHasEnded"},
	},
	{
		clause: "a key that was lost is told by its release",
		file:   "lockset/release.go",
		old:    `			if !w.intent && !unanswered {`,
		new:    `			if !w.intent && !unanswered && len(steps) == 0 {`,
		by:     check{in: "lockset", test: "TestReleaseIsIdempotentAndTellsOfALoss"},
	},
	{
		clause: "what a try of our own may have freed is not told as lost",
		file:   "lockset/release.go",
		old:    `		unanswered = unanswered || sent.Unanswered > 0`,
		new:    `		unanswered = unanswered && sent.Unanswered > 0`,
		by:     check{in: "lockset", test: "TestFaultsInRelease"},
	},
}
