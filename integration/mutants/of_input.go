package main

// ofInput: what nobody meant to be there harms nobody, and is left as it is.
var ofInput = []mutant{
	{
		clause: "a row that another lock client released is not taken",
		file:   "lockset/expressions.go",
		old:    `isNewer = "(attribute_not_exists(#key) OR #fence < :token)"`,
		new:    `isNewer = "(attribute_not_exists(#fence) OR #fence < :token)"`,
		by:     check{in: "lockset", test: "TestForeignRowsAreLeftAlone"},
	},
	{
		clause: "an empty text is not an absent one",
		file:   "lockset/row.go",
		old:    `		if v.Value == "" {`,
		new:    `		if v.Value == "" && false {`,
		by:     check{in: "lockset", test: "FuzzRow"},
	},
	{
		clause: "only a unit has a journal",
		file:   "lockset/row.go",
		old:    `	case r.pending != "" && !IsUnit(r.unit):`,
		new:    `	case r.pending != "" && !IsUnit(r.unit) && false:`,
		by:     check{in: "lockset", test: "TestForeignRowsAreNotUnderstood"},
	},
	{
		clause: "who gives up burns nothing on a row that holdall did not write",
		file:   "lockset/giveup.go",
		old:    `		if errors.As(cause, new(*RowError)) && a.anothers(ctx, tried.at) {`,
		new:    `		if errors.As(cause, new(*RowError)) && a.anothers(ctx, tried.at) && false {`,
		by:     check{in: "lockset", test: "FuzzLockTable"},
	},
	{
		clause: "who had no answer burns nothing on a row that holdall did not write",
		file:   "lockset/expressions.go",
		old:    `burnIf        = "#fence < :token AND " + isOurs + " AND`,
		new:    `burnIf        = "#fence < :token AND`,
		by:     check{in: "lockset", test: "TestGivingUpLeavesForeignRowsAlone"},
	},
	{
		clause: "no sum of configured times wraps around",
		file:   "lockset/config.go",
		old:    `		{max(c.Heartbeat, c.AttemptTimeout, c.Margin) > c.Lease, "Lease"`,
		new:    `		{false, "Lease"`,
		by:     check{in: "lockset", test: "FuzzConfig"},
	},
	{
		clause: "the steps of a journal are a plan",
		file:   "unitofwork/journal.go",
		old:    `	if err != nil || !slices.EqualFunc(plan, j.plan, sameStep) {`,
		new:    `	if err != nil || len(plan) != len(j.plan) {`,
		by:     check{in: "unitofwork", test: "FuzzJournal"},
	},
	{
		clause: "an entry of an open unit names a unit",
		file:   "unitofwork/recover.go",
		old:    `|| !lockset.IsUnit(unit.Value) {`,
		new:    `|| !lockset.IsUnit(unit.Value) && false {`,
		by:     check{in: "unitofwork", test: "FuzzUnitTable"},
	},
	{
		clause: "an exponent has one value, however many zeros it begins with",
		file:   "unitofwork/value.go",
		old:    `([+-]?)0*(\d*))?$`,
		new:    `([+-]?)(\d*))?$`,
		by:     check{in: "unitofwork", test: "FuzzNumber"},
	},
	{
		clause: "two texts that are no UTF-8 may be one when they are sent",
		file:   "unitofwork/value.go",
		old:    `func(s string) bool { return !utf8.ValidString(s) })`,
		new:    `func(string) bool { return false })`,
		by:     check{in: "unitofwork", test: "FuzzValue"},
	},
}
