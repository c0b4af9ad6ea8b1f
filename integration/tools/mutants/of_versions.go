package main

// ofVersions: units beside programs without locks count as those do.
var ofVersions = []mutant{
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
}
