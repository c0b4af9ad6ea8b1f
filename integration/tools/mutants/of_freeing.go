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
		file:   "lockset/inspect/free.go",
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
	{
		clause: "the key of a unit that is prepared is not taken",
		file:   "internal/lockrow/revoke.go",
		old:    `revokeIf = IsUnprepared +`,
		new:    `revokeIf = IsMine +`,
		by:     check{in: "lockset", test: "TestFreeFindsTheRowsAsTheyWereSeen"},
	},
	{
		clause: "the key of a unit that is prepared is not taken with --now",
		file:   "internal/lockrow/revoke.go",
		old:    `t.Update(key, IsUnprepared, revokeNow`,
		new:    `t.Update(key, IsMine, revokeNow`,
		by:     check{in: "lockset", test: "TestFreeFindsTheRowsAsTheyWereSeen"},
	},
	{
		clause: "with --now a key is taken from nobody but the unit that was looked at",
		file:   "internal/lockrow/revoke.go",
		old:    `t.Update(key, IsUnprepared, revokeNow`,
		new:    `t.Update(key, "attribute_not_exists(#pending)", revokeNow`,
		by:     check{in: "lockset", test: "TestFreeNowSaysThatItTookWhatWasGivenBack"},
	},
	{
		clause: "an operator's token is above the key's fence",
		file:   "internal/lockrow/revoke.go",
		old:    `IsUnprepared + " AND #fence < :token"`,
		new:    `IsUnprepared`,
		by:     check{in: "lockset", test: "TestFreeFindsTheRowsAsTheyWereSeen"},
	},
	{
		clause: "an operator's token is above the fence of the row above",
		file:   "internal/lockrow/revoke.go",
		old:    `hasMine + " AND #fence < :token AND`,
		new:    `hasMine + " AND`,
		by:     check{in: "lockset", test: "TestFreeFindsTheRowsAsTheyWereSeen"},
	},
	{
		clause: "a holder of the operator's takes the unit's place, and does not free the row",
		file:   "internal/locks/operator.go",
		old:    "\tif how.Now {\n",
		new:    "\tif how.Now || len(above) >= 0 {\n",
		by:     check{in: "lockset", test: "TestAnOperatorTakesAKeyFromTheLiving"},
	},
	{
		clause: "the lease in the row that an operator takes stays the unit's",
		file:   "internal/lockrow/revoke.go",
		old:    `#acquiredAt = :now, " + takenFrom`,
		new:    `#acquiredAt = :now, #leaseDuration = :one, " + takenFrom`,
		by:     check{in: "lockset", test: "TestAnOperatorTakesAKeyFromTheLiving"},
	},
}
