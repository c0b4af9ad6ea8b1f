package main

// ofVersions: units beside programs without locks count as those do.
var ofVersions = []mutant{
	{
		clause: "a write wants the version that was read",
		file:   "internal/actions/version.go",
		old:    `condition = versionName + " = " + versionRead`,
		new:    `condition = versionName + " >= " + versionRead`,
		by:     check{in: "unitofwork", test: "TestAChangeByAProgramWithoutLocks"},
	},
	{
		clause: "a write wants a record to be absent that was absent",
		file:   "internal/actions/version.go",
		old:    `condition = "attribute_not_exists(" + versionKey + ")"`,
		new:    `condition = "(attribute_not_exists(" + versionKey + ") OR attribute_exists(" + versionKey + "))"`,
		by:     check{in: "unitofwork", test: "TestAChangeByAProgramWithoutLocks"},
	},
	{
		clause: "a write wants a record without a number to have none",
		file:   "internal/actions/version.go",
		old:    `condition = "attribute_exists(" + versionKey + ") AND attribute_not_exists(" + versionName + ")"`,
		new:    `condition = "attribute_exists(" + versionKey + ") AND (attribute_not_exists(" + versionName + ") OR attribute_exists(" + versionName + "))"`,
		by:     check{in: "unitofwork", test: "TestAChangeByAProgramWithoutLocks"},
	},
	{
		clause: "a write leaves the next version",
		file:   "internal/actions/version.go",
		old:    `return n.Add(n, big.NewInt(1)).String()`,
		new:    `return n.String()`,
		by:     check{in: "unitofwork", test: "TestAProgramWithoutLocksIsRefused"},
	},
	{
		clause: "an update leaves the next version",
		file:   "internal/actions/version.go",
		old:    `versionName + ", " + versionZero + ") + " + versionOne`,
		new:    `versionName + ", " + versionZero + ") + " + versionZero`,
		by:     check{in: "unitofwork", test: "TestAProgramWithoutLocksIsRefused"},
	},
	{
		clause: "what was read and is not written has its version at the commit",
		file:   "unitofwork/version.go",
		old:    `!u.stage.records[record] {`,
		new:    `!u.stage.records[record] && c.table == "" {`,
		by:     check{in: "unitofwork", test: "TestAChangeByAProgramWithoutLocks"},
	},
	{
		clause: "and so has what a unit that comes along has read",
		file:   "unitofwork/in_group.go",
		old:    "		u.checkVersions()\n",
		new:    "",
		by:     check{in: "unitofwork", test: "TestAVersionThatAUnitOfAGroupHasRead"},
	},
	{
		clause: "two reads of a run without locks show one version",
		file:   "unitofwork/version.go",
		old:    `case u.optimistic != nil && first.version != version:`,
		new:    `case u.optimistic != nil && first.version != version && attribute == "":`,
		by:     check{in: "unitofwork", test: "TestAVersionThatChangesBetweenTwoReads"},
	},
	{
		clause: "a version that has changed is not a condition of the caller's",
		file:   "unitofwork/explain.go",
		old:    `case w.version != nil && !w.version.Same(reasons[i].Item):`,
		new:    `case w.version != nil && !w.version.Same(reasons[i].Item) && i < 0:`,
		by:     check{in: "unitofwork", test: "TestAChangeByAProgramWithoutLocks"},
	},
	{
		clause: "a condition of the caller's is not taken for a version",
		file:   "internal/actions/version.go",
		old:    `return !v.read || err == nil && now == v`,
		new:    `return err == nil && now == v`,
		by:     check{in: "unitofwork", test: "TestAConditionBesideAVersion"},
	},
	{
		clause: "a journal has no writes that want a version",
		file:   "unitofwork/verify.go",
		old:    `if w.version != nil {`,
		new:    `if w.version != nil && w.key == nil {`,
		by:     check{in: "unitofwork", test: "TestAVersionInALargeUnit"},
	},
	{
		clause: "what is written whole was read, where versions are counted",
		file:   "unitofwork/version.go",
		old:    `if r.version() != "" && !u.versionOf(r).Read() {`,
		new:    `if r.version() == "" && !u.versionOf(r).Read() {`,
		by:     check{in: "unitofwork", test: "TestWhatCannotBeCounted"},
	},
}
