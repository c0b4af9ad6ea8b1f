package main

// ofFreeing: an operator takes a key from a unit, and nobody else has it before that unit knows.
var ofFreeing = []mutant{
	{
		clause: "a key is taken from nobody but the unit that was looked at",
		file:   "internal/lockrow/revoke.go",
		old:    `IsUnprepared + " AND #fence < :token"`,
		new:    `"attribute_not_exists(#pending) AND #fence < :token"`,
		by:     check{in: "lockset", test: "TestAnOperatorsRequestThatArrivesWhenAnotherHasTheKey"},
	},
	{
		clause: "others have the key a lease after an operator has taken it",
		file:   "internal/lockrow/revoke.go",
		old:    `#recordVersionNumber = :rvn, #fence = :token`,
		new:    `#fence = :token`,
		by:     check{in: "lockset", test: "TestAnOperatorTakesAKeyFromTheLiving"},
	},
	{
		clause: "a unit from which an operator took a key never commits, and is told so",
		file:   "internal/lockrow/outcome.go",
		old:    `case r.TakenFrom == unit:`,
		new:    `case false:`,
		by:     check{in: "unitofwork", test: "TestACommitAfterAnOperatorTookTheKey"},
	},
	{
		clause: "an operator is not told that nothing was changed where the row does not tell",
		file:   "lockset/free.go",
		old:    `(row.Unit != unit || row.Prepared == "")`,
		new:    `row.Unit == unit && row.Prepared == ""`,
		by:     check{in: "lockset", test: "TestFreeDoesNotSayWhatItCannotKnow"},
	},
	{
		clause: "an operator keeps out those who want a row above as a whole",
		file:   "internal/lockrow/revoke.go",
		old:    `if r.carries(theirs) {`,
		new:    `if false && r.carries(theirs) {`,
		by:     check{in: "lockset", test: "TestAnOperatorTakesAKeyFromTheLiving"},
	},
}
