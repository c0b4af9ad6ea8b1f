package main

// ofGroups: units of one process that are committed together: who comes along, waits for whom,
// and is put back.
var ofGroups = []mutant{
	{
		clause: "a leader without locks reserves what its followers want besides",
		file:   "internal/lineup/along.go",
		old:    "if !c.covers(w) {\n				",
		new:    "if !c.covers(w) && !more {\n				",
		by:     check{in: "internal/lineup", test: "TestWhatElseIsWantedIsGivenOrNot"},
	},
	{
		clause: "who is put back stands in line where it stood",
		file:   "internal/lineup/along.go",
		old:    "	c.taken = false\n",
		new:    "	c.taken = false\n	t.arrived++\n	c.Caller.arrived = t.arrived\n",
		by:     check{in: "internal/lineup", test: "TestWhoIsPutBackStandsWhereItStood"},
	},
	{
		clause: "a call has one arrival for all that it waits for",
		file:   "internal/lineup/lineup.go",
		old:    `if c.Caller.arrived == 0 {`,
		new:    `if c.Caller.arrived >= 0 {`,
		by:     check{in: "internal/lineup", test: "TestACallerKeepsItsPlace"},
	},
	{
		clause: "what is kept for a call is for others when it ends",
		file:   "internal/lineup/claim.go",
		old:    "	if kept != nil {\n		t.Drop(kept)",
		new:    "	if kept != nil && kept.ended && false {\n		t.Drop(kept)",
		by:     check{in: "unitofwork", test: "TestWhatIsKeptForACallThatEnds"},
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
		clause: "a commit without locks needs the stamp of what its followers have read with it",
		file:   "unitofwork/group_reads.go",
		old:    `			u.sawForOthers(r, u.group.read[identityOf(r)])`,
		new:    `			_ = r`,
		by:     check{in: "unitofwork", test: "TestALateWriteOfWhatAMemberReads"},
	},
	{
		clause: "what a leader has read has the stamp of its first read, whoever reads it again",
		file:   "unitofwork/group_reads.go",
		old:    `if _, known := u.reads[identityOf(r)]; !known {`,
		new:    `if _, known := u.reads[identityOf(r)]; !known || known {`,
		by:     check{in: "unitofwork", test: "TestALateWriteBetweenTheReadsOfALeaderAndAMember"},
	},
	{
		clause: "a row that a key of the group covers takes no room in it",
		file:   "unitofwork/group.go",
		old:    `	count(counted, f.records, id)`,
		new:    "	for _, row := range rowsOf(f.guards) {\n		counted[string(row)] = true\n	}\n	count(counted, f.records, id)",
		by:     check{in: "unitofwork", test: "TestGroupsAreAsLargeAsCanBe"},
	},
}
