package main

// ofGroups: units of one process that are committed together: who comes along, waits for whom,
// and is put back.
var ofGroups = []mutant{
	{
		clause: "who is put back stands in line where it stood",
		file:   "internal/lineup/along.go",
		old:    "	c.taken = false\n",
		new:    "	c.taken = false\n	t.arrived++\n	c.Caller.arrived = t.arrived\n",
		by:     check{in: "internal/lineup", test: "TestWhoIsPutBackStandsWhereItStood"},
	},
	{
		clause: "a run without locks has the arrival of its call",
		file:   "unitofwork/optimistic.go",
		old:    `c.locks.Run(ctx, r.end, &r.caller)`,
		new:    `c.locks.Run(ctx, r.end, nil)`,
		by:     check{in: "unitofwork", test: "TestWhoFallsBackKeepsItsPlace"},
	},
	{
		clause: "a run under locks has the arrival of its call, and what the run before it has kept",
		file:   "unitofwork/unit.go",
		old:    `c.locks.Acquire(ctx, nesting.Unit, r.keys, r.end, &r.caller, r.passes())`,
		new:    `c.locks.Acquire(ctx, nesting.Unit, r.keys, r.end, &new(runs).caller, r.passes())`,
		by:     check{in: "unitofwork", test: "TestWhoFallsBackKeepsItsPlace"},
	},
	{
		clause: "a row that a key of the group covers takes no room in it",
		file:   "unitofwork/group.go",
		old:    `	count(counted, f.records, id)`,
		new:    "	for _, row := range rowsOf(f.guards) {\n		counted[string(row)] = true\n	}\n	count(counted, f.records, id)",
		by:     check{in: "unitofwork", test: "TestGroupsAreAsLargeAsCanBe"},
	},
}
