package main

// ofSmaller: what a function ignores, what a caller changes later, what is held for too long, and
// changes that no test noticed.
var ofSmaller = []mutant{
	{
		clause: "who stands behind a kept run is told when that leaves its line",
		file:   "internal/lineup/claim.go",
		old:    `		defer t.promote([]ordering.Key{at}, "")`,
		new:    `		_ = at`,
		by:     check{in: "internal/lineup", test: "TestWhoStandsBehindAKeptRunIsTold"},
	},
	{
		clause: "a sweep goes on after the first dead witness",
		file:   "lockset/inspect/sweep_run.go",
		old:    `		return s.acted(ctx, k, s.rows.Clean(ctx, k.key, are.remnants), does...)`,
		new:    "\t\terr := s.acted(ctx, k, s.rows.Clean(ctx, k.key, are.remnants), does...)\n\t\tk.over = true\n\t\treturn err",
		by:     check{in: "lockset", test: "TestASweepGoesOnAfterTheFirstDeadWitness"},
	},
}
