package main

// ofInput: what nobody meant to be there harms nobody, and is left as it is.
var ofInput = []mutant{
	{
		clause: "a row that another lock client released is not taken",
		file:   "internal/lockrow/expressions.go",
		old:    `isNewer = "(attribute_not_exists(#key) OR #fence < :token)"`,
		new:    `isNewer = "(attribute_not_exists(#fence) OR #fence < :token)"`,
		by:     check{in: "lockset", test: "TestForeignRowsAreLeftAlone"},
	},
	{
		clause: "a unit that gives up burns nothing on a row that holdall did not write",
		file:   "internal/locks/giveup.go",
		old:    `!errors.As(cause, new(*lockrow.RowError)) || !a.foreign(ctx, b.id, key)`,
		new:    `!errors.As(cause, new(*lockrow.RowError)) || !a.foreign(ctx, b.id, key) || true`,
		by:     check{in: "lockset", test: "TestNothingIsBurnedOnAForeignRow"},
	},
	{
		clause: "an entry of an open unit names a unit",
		file:   "unitofwork/recover.go",
		old:    `|| !lockrow.IsUnit(unit.Value) {`,
		new:    `|| !lockrow.IsUnit(unit.Value) && false {`,
		by:     check{in: "unitofwork", test: "FuzzUnitTable"},
	},
	{
		clause: "an exponent has one value, however many zeros it begins with",
		file:   "internal/actions/values.go",
		old:    `([+-]?)0*(\d*))?$`,
		new:    `([+-]?)(\d*))?$`,
		by:     check{in: "internal/actions", test: "FuzzNumber"},
	},
	{
		clause: "nobody is buried within its lease",
		file:   "internal/lockrow/judge.go",
		old:    `end := at.Since.Add(r.Lease)`,
		new:    `end := at.Since.Add(r.Lease / 2)`,
		by:     check{in: "lockset", test: "FuzzRow"},
	},
	{
		clause: "an error that is joined is on one line",
		file:   "internal/oneline/oneline.go",
		old:    `return strings.Join(said, "; ")`,
		new:    `return strings.Join(said, "\n")`,
		by:     check{in: "unitofwork", test: "TestALostUnitIsToldAndWritesNothing"},
	},
}
