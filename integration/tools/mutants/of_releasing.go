package main

// ofReleasing: released in reverse, all that can be, and nobody else's.
var ofReleasing = []mutant{
	{
		clause: "a release needs the row to be the unit's",
		file:   "internal/locks/release.go",
		old:    `c.values(u, 0), lockrow.IsMine, lockrow.Free)`,
		new:    `c.values(u, 0), "attribute_exists(#key)", lockrow.Free)`,
		by:     check{in: "lockset", test: "TestFaultsInRelease"},
	},
	{
		clause: "steps are released in reverse",
		file:   "internal/locks/release.go",
		old:    `		steps, chunk = lastChunk(steps, most)`,
		new:    `		chunk, steps = steps.Cut(most)`,
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "a function is told of the loss of its keys",
		file:   "lockset/with.go",
		old:    `held, end, _ := set.engine().Under(`,
		new:    "held, end := context.WithCancelCause(ctx)\n	_, _, _ = set.engine().Under(",
		by:     check{in: "lockset", test: "TestWithTellsOfALoss"},
	},
	{
		clause: "an overtaken commit takes its intents away",
		file:   "internal/locks/ending.go",
		old:    `left, err := c.release(ctx, u, e.plan)`,
		new:    `left, err := c.release(ctx, u, nil)`,
		by:     check{in: "unitofwork", test: "TestAnOvertakenCommitLeavesNoIntent"},
	},
	{
		clause: "a step is not freed before a later one that its intents cover",
		file:   "internal/locks/release.go",
		old:    `		chunk, waits := independent(chunk, left)`,
		new:    `		chunk, waits := independent(chunk, nil)`,
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "a release goes on with what it can",
		file:   "internal/locks/release.go",
		old:    `			left = append(slices.Clone(chunk), left...)`,
		new:    "			left = append(slices.Clone(chunk), left...)\n			return append(slices.Clone(steps), left...), errors.Join(errs...)",
		by:     check{in: "lockset", test: "TestAReleaseThatStumblesKeepsWhatCoversTheRest"},
	},
	{
		clause: "the intents of a key that is not ours any more are released",
		file:   "internal/locks/release.go",
		old:    `			rest = append(rest, w)`,
		new:    `			if w.Mode == lockrow.Exclusive { rest = append(rest, w) }`,
		by:     check{in: "lockset", test: "TestReleaseIsIdempotentAndTellsOfALoss"},
	},
}
