package main

// ofSmaller: what a function ignores, what a caller changes later, what is held for too long, and
// changes that no test noticed.
var ofSmaller = []mutant{
	{
		clause: "an error of Get that a function ignores fails the commit",
		file:   "unitofwork/get.go",
		old:    `		_ = u.stage.keep(err)`,
		new:    `		_ = err`,
		by:     check{in: "unitofwork", test: "TestAnIgnoredErrorOfGetFailsTheCommit"},
	},
	{
		clause: "what is staged is the unit's own",
		file:   "unitofwork/stage.go",
		old:    `	item = actions.Copy(item)`,
		new:    `	`,
		by:     check{in: "unitofwork", test: "TestWhatIsStagedIsTheUnitsOwn"},
	},
	{
		clause: "a set with a bound is lost when the bound is over",
		file:   "lockset/options.go",
		old:    `	if err == nil && o.HoldFor > 0 {`,
		new:    `	if err == nil && o.HoldFor < 0 {`,
		by:     check{in: "lockset", test: "TestASetIsHeldForNoLongerThanItsBound"},
	},
	{
		clause: "a set that is held for hours is logged again",
		file:   "lockset/holding.go",
		old:    `	time.AfterFunc(remindAfter, s.remind)`,
		new:    ``,
		by:     check{in: "lockset", test: "TestASetThatIsHeldForHoursIsLogged"},
	},
	{
		clause: "a renewal that is denied is logged once",
		file:   "lockset/set.go",
		old:    `warned.Swap(true)`,
		new:    `warned.Load()`,
		by:     check{in: "lockset", test: "TestADeniedRenewalIsLoggedOnce"},
	},
	{
		clause: "who stands behind a kept run is told when that leaves its line",
		file:   "internal/lineup/claim.go",
		old:    `		defer t.promote([]ordering.Key{at}, "")`,
		new:    `		_ = at`,
		by:     check{in: "internal/lineup", test: "TestWhoStandsBehindAKeptRunIsTold"},
	},
	{
		clause: "nobody comes along with a claim that has ended",
		file:   "internal/lineup/along.go",
		old:    "	if c.ended {\n		return\n",
		new:    "	if c.ended && c.has == nil {\n		return\n",
		by:     check{in: "internal/lineup", test: "TestNobodyComesAlongWithAnEndedClaim"},
	},
	{
		clause: "a claim that has ended is not put back",
		file:   "internal/lineup/along.go",
		old:    `if !c.taken || c.ended {`,
		new:    `if !c.taken {`,
		by:     check{in: "internal/lineup", test: "TestAnEndedClaimIsNotPutBack"},
	},
	{
		clause: "a claim that has ended is given nothing",
		file:   "internal/lineup/lineup.go",
		old:    "	case c.ended:\n		return len(steps)\n",
		new:    "",
		by:     check{in: "internal/lineup", test: "TestAnEndedClaimIsGivenNothing"},
	},
	{
		clause: "a sweep goes on after the first dead witness",
		file:   "lockset/sweep_run.go",
		old:    `		return s.acted(ctx, k, s.c.clean(ctx, s.unit, k.key, are.remnants), does...)`,
		new:    "\t\terr := s.acted(ctx, k, s.c.clean(ctx, s.unit, k.key, are.remnants), does...)\n\t\tk.over = true\n\t\treturn err",
		by:     check{in: "lockset", test: "TestASweepGoesOnAfterTheFirstDeadWitness"},
	},
	{
		clause: "a watch that cannot read ends",
		file:   "lockset/inspector_watch.go",
		old:    "\t\tif err != nil {\n\t\t\treturn sightings, err\n\t\t}\n\t\tleft",
		new:    "\t\tif err != nil {\n\t\t\treturn sightings, nil\n\t\t}\n\t\tleft",
		by:     check{in: "lockset", test: "TestAWatchThatCannotReadSaysSo"},
	},
	{
		clause: "the context of a unit by hand ends with it",
		file:   "unitofwork/end.go",
		old:    `	u.cancel(ErrEnded)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestTheContextOfAUnitByHandEndsWithIt"},
	},
	{
		clause: "a read that a function leaves under way ends when the function returns",
		file:   "unitofwork/do.go",
		old:    `	u.cancel(ErrEnded)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestAReadThatAFunctionLeavesUnderWayEnds"},
	},
}
