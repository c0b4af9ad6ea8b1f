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
		clause: "what a process knows is the longer of its own and what is recorded, not the sum",
		file:   "internal/lockrow/sightings.go",
		old:    `now.Add(-r.Silence())`,
		new:    `seen.since.Add(-r.Silence())`,
		by:     check{in: "internal/lockrow", test: "TestSightingsGoOnFromWhatIsRecorded"},
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
		clause: "a record of a silence is set, nothing is added to it",
		file:   "internal/lockrow/silence.go",
		old:    `"SET #silentOf = :silentOf, #silentFor = :silentFor"`,
		new:    `"SET #silentOf = :silentOf ADD #silentFor :silentFor"`,
		by:     check{in: "lockset", test: "TestALateRecordOfASilence"},
	},
}
