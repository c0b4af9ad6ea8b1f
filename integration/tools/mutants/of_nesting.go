package main

// ofNesting: no call waits for its own caller.
var ofNesting = []mutant{
	{
		clause: "a set under a set is not below the same key",
		file:   "internal/nesting/nesting.go",
		old:    `ordering.Compare(first.Root(), last) < 0`,
		new:    `ordering.Compare(first, last) < 0`,
		by:     check{in: "lockset", test: "TestASetUnderASetIsNotBelowTheSameKey"},
	},
	{
		clause: "what is held adds up, level by level",
		file:   "internal/nesting/nesting.go",
		old:    `outer: Of(ctx)}`,
		new:    `outer: nil}`,
		by:     check{in: "lockset", test: "TestWhatIsHeldAddsUpUntilItIsReleased"},
	},
	{
		clause: "a unit that has ended is in nobody's way",
		file:   "unitofwork/nested.go",
		old:    `switch h.Ended = u.ended; {`,
		new:    `switch h.Ended = false; {`,
		by:     check{in: "unitofwork", test: "TestAUnitUnderTheContextOfOneThatHasEnded"},
	},
}
