package main

// ofSilence: short-lived processes find out the dead, and never the living.
var ofSilence = []mutant{
	{
		clause: "what a row says of a silence counts for the sign of life that it names",
		file:   "internal/lockrow/silence.go",
		old:    `r.Free() || r.RVN != r.silentOf`,
		new:    `r.Free()`,
		by:     check{in: "internal/lockrow", test: "TestWhatARowSaysOfASilence"},
	},
	{
		clause: "a holder's silence is believed for two leases at most",
		file:   "internal/lockrow/silence.go",
		old:    `min(r.silentFor, 2*r.Lease)`,
		new:    `r.silentFor`,
		by:     check{in: "internal/lockrow", test: "TestWhatARowSaysOfASilence"},
	},
	{
		clause: "what a process knows is the longer of its own and what is recorded, not the sum",
		file:   "internal/lockrow/sightings.go",
		old:    `now.Add(-r.Silence())`,
		new:    `seen.since.Add(-r.Silence())`,
		by:     check{in: "internal/lockrow", test: "TestSightingsGoOnFromWhatIsRecorded"},
	},
	{
		clause: "what others have recorded counts",
		file:   "internal/lockrow/sightings.go",
		old:    `recorded.Before(seen.since)`,
		new:    `false`,
		by:     check{in: "lockset", test: "TestShortLivedProcessesFindOutTheDead"},
	},
	{
		clause: "a record needs the rvn that was watched",
		file:   "internal/lockrow/silence.go",
		old:    `"#recordVersionNumber = :rvn AND attribute_exists(#unit) AND " + isLonger`,
		new:    `"attribute_exists(#unit) AND " + isLonger`,
		by:     check{in: "lockset", test: "TestALateRecordOfASilence"},
	},
	{
		clause: "a record only replaces a shorter one of that rvn",
		file:   "internal/lockrow/silence.go",
		old:    `OR #silentFor < :silentFor)`,
		new:    `OR #silentFor <> :silentFor)`,
		by:     check{in: "lockset", test: "TestAShorterRecordThatArrivesLate"},
	},
	{
		clause: "a wait that ends in vain is recorded",
		file:   "lockset/giveup.go",
		old:    `	a.noteSilences(ctx)`,
		new:    `	_ = ctx`,
		by:     check{in: "lockset", test: "TestTheAgeOfAHolderIsAllThatIsKnown"},
	},
	{
		clause: "while it goes on, too",
		file:   "lockset/wait.go",
		old:    `a.c.noteSilences(ctx, a.unit, []lockrow.Row{at.Row}, false)`,
		new:    `_ = ctx`,
		by:     check{in: "lockset", test: "TestShortLivedProcessesFindOutTheDead"},
	},
	{
		clause: "nothing is recorded of one that was seen alive before half a lease",
		file:   "internal/lockrow/silence.go",
		old:    `(!alive || known >= whole/2)`,
		new:    `(true || !alive)`,
		by:     check{in: "lockset", test: "TestWhoSeesTheHolderLiveRecordsNothing"},
	},
	{
		clause: "a unit from which Recover was cut off has been watched",
		file:   "unitofwork/recover.go",
		old:    `case err != nil || left > 0:`,
		new:    `case err == nil && left > 0:`,
		by:     check{in: "unitofwork", test: "TestRecoverThatIsCutOffIsNotInVain"},
	},
	{
		clause: "recover records what it has watched when it ends",
		file:   "unitofwork/recover.go",
		old:    `c.rows.NoteSilences(ctx, keys)`,
		new:    `_ = keys`,
		by:     check{in: "unitofwork", test: "TestRecoverEndsWithItsContext"},
	},
}
