package main

// ofSweeping: a sweep frees the dead where nobody waits, and touches nobody else.
var ofSweeping = []mutant{
	{
		clause: "a sweep watches a holder for a full lease",
		file:   "lockset/inspector_look.go",
		old:    `lockrow.Watch{Since: s.since,`,
		new:    `lockrow.Watch{Since: s.since.Add(-lockrow.MaxQueue * time.Hour),`,
		by:     check{in: "lockset", test: "TestASweepLeavesTheLivingAlone"},
	},
	{
		clause: "a sweep judges a holder as of when it looked",
		file:   "lockset/inspector_look.go",
		old:    `Now: s.at, Table`,
		new:    `Now: time.Now(), Table`,
		by:     check{in: "lockset", test: "TestALookIsJudgedAsOfWhenItWas"},
	},
	{
		clause: "a sweep frees the dead",
		file:   "lockset/sweep_run.go",
		old:    `err = s.c.bury(ctx, s.unit, k.seen.parsed)`,
		new:    `err = &refusal{}`,
		by:     check{in: "lockset", test: "TestASweepFreesTheDeadAfterAFullLease"},
	},
	{
		clause: "what a sweep sees refused it decides anew",
		file:   "lockset/sweep_run.go",
		old:    `refused && k.refused < mostRefused`,
		new:    `refused && false`,
		by:     check{in: "lockset", test: "TestASweepThatIsTooLateChangesNothing"},
	},
	{
		clause: "a prepared row is never buried by a sweep",
		file:   "lockset/sweep_judge.go",
		old:    `case s.Row.Prepared():`,
		new:    `case s.Row.Prepared() && false:`,
		by:     check{in: "lockset", test: "TestASweepSettlesThePrepared"},
	},
	{
		clause: "who knows no journals keeps what is prepared",
		file:   "lockset/sweep_run.go",
		old:    `if !s.c.journals.knows(dead.Prepared) {`,
		new:    `if false {`,
		by:     check{in: "lockset", test: "TestADryRunOfASweep"},
	},
	{
		clause: "a sweep waits for whoever of its process settles the same unit",
		file:   "lockset/sweep_run.go",
		old:    `case underWay == nil:`,
		new:    `default:`,
		by:     check{in: "lockset", test: "TestASweepSettlesThePrepared"},
	},
	{
		clause: "a row that is as it was after its unit was settled is kept",
		file:   "lockset/sweep_run.go",
		old:    `case now.Unit != dead.Unit:`,
		new:    `case now.Unit != "":`,
		by:     check{in: "lockset", test: "TestASweepThatSettlesInVain"},
	},
	{
		clause: "a sweep looks at the witnesses of intents that it was not asked for",
		file:   "lockset/sweep_run.go",
		old:    `append([]ordering.Key{k.key}, witnessesOf(k.seen.row)...)`,
		new:    `[]ordering.Key{k.key}`,
		by:     check{in: "lockset", test: "TestASweepCleansIntents"},
	},
	{
		clause: "a sweep removes stale intents only",
		file:   "lockset/sweep_judge.go",
		old: `		case stale:
`,
		new: `		case stale || !stale:
`,
		by: check{in: "lockset", test: "TestASweepLeavesTheLivingAlone"},
	},
	{
		clause: "the witness of an intent has its full lease before a sweep",
		file:   "lockset/sweep_judge.go",
		old:    `w.parsed, w.watch(0)`,
		new:    `w.parsed, lockrow.Watch{Now: now}`,
		by:     check{in: "lockset", test: "TestASweepCleansIntents"},
	},
	{
		clause: "a sweep waits for nobody who came since it began",
		file:   "lockset/sweep_judge.go",
		old:    `first.alive(w.parsed) || !old[e]:`,
		new:    `first.alive(w.parsed):`,
		by:     check{in: "lockset", test: "TestASweepOfABusyRowEnds"},
	},
	{
		clause: "a sweep leaves a head its turn for a lease, whatever Grace is",
		file:   "lockset/sweep_run.go",
		old:    `grace: max(c.cfg.Grace, c.cfg.Lease)`,
		new:    `grace: min(c.cfg.Grace, c.cfg.Lease)`,
		by:     check{in: "lockset", test: "TestASweepDropsDeadHeads"},
	},
	{
		clause: "after a sweep has freed a row it looks after the queue",
		file:   "lockset/sweep_run.go",
		old: `		k.due = time.Now()
	case ctx.Err() != nil ||`,
		new: `		k.over = true
	case ctx.Err() != nil ||`,
		by: check{in: "lockset", test: "TestASweepDropsDeadHeads"},
	},
	{
		clause: "a sweep that ends too soon records what it has seen",
		file:   "lockset/sweep_tell.go",
		old:    `s.note(ctx, s.keys, true)`,
		new:    `_ = ctx`,
		by:     check{in: "lockset", test: "TestShortSweepsAddUp"},
	},
	{
		clause: "one that goes on records it, too",
		file:   "lockset/sweep_run.go",
		old:    `s.note(ctx, due, false)`,
		new:    `_ = ctx`,
		by:     check{in: "lockset", test: "TestWhatASweepCosts"},
	},
	{
		clause: "a dry run records nothing",
		file:   "lockset/sweep_tell.go",
		old: `if s.o.DryRun {
		return
	}`,
		new: `if s.o.DryRun && len(keys) == 0 {
		return
	}`,
		by: check{in: "lockset", test: "TestADryRunOfASweep"},
	},
	{
		clause: "a dry run settles nothing",
		file:   "lockset/sweep_run.go",
		old:    `for !s.o.DryRun {`,
		new:    `for {`,
		by:     check{in: "lockset", test: "TestADryRunOfASweep"},
	},
	{
		clause: "what a sweep may not do ends it",
		file:   "lockset/sweep_run.go",
		old:    `ctx.Err() != nil || errors.As(err, new(*TableError))`,
		new:    `ctx.Err() != nil`,
		by:     check{in: "lockset", test: "TestASweepThatMayNot"},
	},
	{
		clause: "a closed client does not sweep",
		file:   "lockset/sweep.go",
		old:    `cancel(ErrClosed); return nil`,
		new:    `return nil`,
		by:     check{in: "lockset", test: "TestCloseEndsASweep"},
	},
	{
		clause: "a sign of life is another than was there at first",
		file:   "lockset/inspector_watch.go",
		old:    `return r.LastSign() != first.LastSign()`,
		new:    `return r.Silence() < first.Silence()`,
		by:     check{in: "lockset", test: "TestWhatIsASignOfLife"},
	},
	{
		clause: "a sweep goes on with the head of the queue when the holder is gone",
		file:   "lockset/inspector_watch.go",
		old:    `if !known || !first.Free() && r.Free() {`,
		new:    `if !known {`,
		by:     check{in: "lockset", test: "TestASweepGoesOnWhenAnotherHasFreedTheRow"},
	},
}
