package main

// ofSizes: what is too large at once is cut, and what is too large all the same is
// halved, or said to be.
var ofSizes = []mutant{
	{
		clause: "conditions are cut by their size",
		file:   "unitofwork/verify.go",
		old:    `u.sizeAsked(asCondition))`,
		new:    `func(write) requests.Size { return requests.Size{Actions: 1} })`,
		by:     check{in: "unitofwork", test: "TestConditionsAreCutByWhatTheyAreAsSent"},
	},
	{
		clause: "rehearsals are cut by their size",
		file:   "unitofwork/verify.go",
		old:    `u.sizeAsked(asRehearsal))`,
		new:    `func(write) requests.Size { return requests.Size{Actions: 1} })`,
		by:     check{in: "unitofwork", test: "TestRequestsAreCutByTheirBytes"},
	},
	{
		clause: "chunks stay small once they were too large",
		file:   "internal/locks/acquire.go",
		old:    "			whole = chunk[:half].Rows()\n			most = whole\n",
		new:    "			most = chunk[:half].Rows()\n",
		by:     check{in: "lockset", test: "TestChunksStaySmallOnceTheyWereTooLarge"},
	},
	{
		clause: "prepares that are refused for their size are halved",
		file:   "internal/locks/prepared.go",
		old:    `requests.Halve(chunk, requests.IsTooLarge, func`,
		new:    `requests.Halve(chunk, func(error) bool { return false }, func`,
		by:     check{in: "lockset", test: "TestASetThatIsTooLargeAtOnce"},
	},
	{
		clause: "rows that are too large to be read at once are read in parts",
		file:   "internal/locks/ending.go",
		old:    `requests.Halve(keys, requests.IsTooLarge, func`,
		new:    `requests.Halve(keys, func(error) bool { return false }, func`,
		by:     check{in: "lockset", test: "TestTheHeirOfALargeSet"},
	},
}
