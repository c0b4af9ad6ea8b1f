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
}
