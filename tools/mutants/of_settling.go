package main

// ofSettling: what is broken about a dead unit harms nobody else, and nothing is lost
// in silence.
var ofSettling = []mutant{
	{
		clause: "a key that is free is nobody's trouble, whatever else of its unit is stuck",
		file:   "lockset/recovery.go",
		old:    "now.Unit == unit {",
		new:    "now.Unit != \"\" || true {",
		by:     check{in: "unitofwork", test: "TestOneStuckFamilyKeepsNobodyElse"},
	},
	{
		clause: "a row that is shown once more after its unit was settled is no change",
		file:   "lockset/recovery.go",
		old:    "return changed && !again, err",
		new:    "return changed && (!again || again), err",
		by:     check{in: "unitofwork", test: "TestADoneUnitThatStillHasARow"},
	},
	{
		clause: "a record wait ends while another settles",
		file:   "lockset/recovery.go",
		old:    "case <-ended.Done():",
		new:    "case <-ctx.Done():",
		by:     check{in: "unitofwork", test: "TestARecordWaitWhileAnotherSettles"},
	},
	{
		clause: "a family that is stuck keeps no other",
		file:   "unitofwork/apply.go",
		old:    "p = p.Without(blocked)\n",
		new:    "if len(blocked) > 0 {\n\t\treturn nil\n\t}\n",
		by:     check{in: "unitofwork", test: "TestOneStuckFamilyKeepsNobodyElse"},
	},
	{
		clause: "a row that is gone does not say that its step was done",
		file:   "lockset/prepared.go",
		old:    "case r.Exists && r.Fence >= p.token:",
		new:    "case r.Exists && r.Fence >= p.token, !r.Exists:",
		by:     check{in: "unitofwork", test: "TestAMarkedRowThatIsGone"},
	},
	{
		clause: "of a step whose row is gone, the records say whether it was done",
		file:   "unitofwork/apply.go",
		old:    "hold == unitlocks.Freed, hold == unitlocks.Gone && a.stamped(act.piece, actions, reasons):",
		new:    "hold == unitlocks.Freed:",
		by:     check{in: "unitofwork", test: "TestAMarkedRowThatIsGone"},
	},
	{
		clause: "Recover leaves the units of another lock table alone",
		file:   "unitofwork/recover.go",
		old:    "if locks.Value != c.lockConfig.Table {",
		new:    "if locks.Value == \"\" {",
		by:     check{in: "unitofwork", test: "TestRecoverWithAnotherLockTableBesideALivingOwner"},
	},
	{
		clause: "a read without locks waits while a row is prepared",
		file:   "unitofwork/unlocked_read.go",
		old:    "again = hand, again || prepared",
		new:    "again = hand, again && prepared",
		by:     check{in: "unitofwork", test: "TestAReaderWithoutLocksSeesAllOrNothing"},
	},
	{
		clause: "a read without locks looks at the row of each record's guard",
		file:   "unitofwork/unlocked_read_plan.go",
		old:    "append(append(rows, guard.Ancestors()...), guard)",
		new:    "append(rows, guard.Ancestors()...)",
		by:     check{in: "unitofwork", test: "TestAReaderWithoutLocksSeesAllOrNothing"},
	},
	{
		clause: "a read without locks looks at the rows above each record's guard",
		file:   "unitofwork/unlocked_read_plan.go",
		old:    "append(append(rows, guard.Ancestors()...), guard)",
		new:    "append(rows, guard)",
		by:     check{in: "unitofwork", test: "TestAReaderWithoutLocksSeesAllOrNothing"},
	},
	{
		clause: "a record whose guard is known only when it is read is read once more, with its rows",
		file:   "unitofwork/unlocked_read_plan.go",
		old:    "p.guard == \"\" || p.guard.Covers(g.guards[i])",
		new:    "p.guard == \"\" || p.guard.Covers(g.guards[i]) || true",
		by:     check{in: "unitofwork", test: "TestAReaderOfRecordsGuardedByContent"},
	},
	{
		clause: "parts are read again if a row has changed hands since before the first",
		file:   "unitofwork/unlocked_read.go",
		old:    "ok && before != hand {",
		new:    "ok && before != hand && false {",
		by:     check{in: "unitofwork", test: "TestAReaderInPartsBesideSmallUnits"},
	},
	{
		clause: "a free row that was taken and left has changed hands",
		file:   "internal/lockrow/row.go",
		old:    `return "left by " + r.RVN`,
		new:    `return "left"`,
		by:     check{in: "unitofwork", test: "TestAReaderInPartsBesideSmallUnits"},
	},
	{
		clause: "a put's key is tried, too",
		file:   "unitofwork/verify.go",
		old:    "append(examples, keys...), apart",
		new:    "append(examples, keys[:0]...), apart",
		by:     check{in: "unitofwork", test: "TestATableWithAnotherKey"},
	},
}
