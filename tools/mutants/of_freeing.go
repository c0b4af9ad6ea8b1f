package main

// ofFreeing: an operator takes a key from a unit, and nobody else has it before that unit knows.
var ofFreeing = []mutant{
	{
		clause: "an operator takes a key only from the unit that is named",
		file:   "lockset/free.go",
		old:    `case row.Unit != unit:`,
		new:    `case false:`,
		by:     check{in: "lockset", test: "TestWhatAnOperatorIsRefused"},
	},
	{
		clause: "an operator leaves alone what has a journal",
		file:   "lockset/free.go",
		old:    `case row.Prepared != "":`,
		new:    `case false:`,
		by:     check{in: "lockset", test: "TestWhatAnOperatorIsRefused"},
	},
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
		clause: "an operator is not told that nothing was changed while a copy of the request may arrive",
		file:   "lockset/free.go",
		old:    `(row.Unit != unit || row.Prepared == "")`,
		new:    `row.Unit != unit`,
		by:     check{in: "lockset", test: "TestFreeDoesNotSayThatACopyWillNotArrive"},
	},
	{
		clause: "an operator is told which row has no room for another intent",
		file:   "internal/lockrow/revoke.go",
		old:    `len(r.Below) >= mostBelowOfOperators`,
		new:    `false`,
		by:     check{in: "lockset", test: "TestFreeOfManyKeysBelowAFullRow"},
	},
	{
		clause: "an operator keeps out those who want a row above as a whole",
		file:   "internal/lockrow/revoke.go",
		old:    `if r.carries(theirs) {`,
		new:    `if false && r.carries(theirs) {`,
		by:     check{in: "lockset", test: "TestAnOperatorTakesAKeyFromTheLiving"},
	},
	{
		clause: "who gives up what an operator has taken in part releases the rest",
		file:   "lockset/places.go",
		old:    `if r.TakenFrom == p.unit {`,
		new:    `if r.TakenFrom == "" {`,
		by:     check{in: "lockset", test: "TestAnOperatorTakesAPartOfWhatIsUnheard"},
	},
}
