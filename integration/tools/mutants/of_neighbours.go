package main

// ofNeighbours: what runs without locks know of others of their process, and what becomes of those that are void.
var ofNeighbours = []mutant{
	{
		clause: "a run without locks keeps its rows from others of its process while a request is under way",
		file:   "internal/locks/run.go",
		old:    `return request - time.Since(p.since)`,
		new:    `return functionTime - time.Since(p.since)`,
		by:     check{in: "unitofwork", test: "TestRequestsThatTakeTheirTime"},
	},
}
