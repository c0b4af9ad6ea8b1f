package main

// ofRecovering: what is known about a dead unit stays known until the last of it is
// done or undone, and what is broken about it harms nobody else.
var ofRecovering = []mutant{
	{
		clause: "that a unit is done stands for the retention",
		file:   "unitofwork/rollforward.go",
		old:    "journal.SetDone(c.cfg.Table, unit, c.lockConfig.Now().Add(c.cfg.IDRetention))",
		new:    "journal.SetDone(c.cfg.Table, unit, c.lockConfig.Now())",
		by:     check{in: "unitofwork", test: "TestALateRecoverBelievesWhatIsDone"},
	},
	{
		clause: "that a unit is aborted stands for the retention",
		file:   "unitofwork/rollforward.go",
		old:    "journal.PutAborted(c.cfg.Table, unit, now, now.Add(c.cfg.IDRetention))",
		new:    "journal.PutAborted(c.cfg.Table, unit, now, now)",
		by:     check{in: "unitofwork", test: "TestALateDecisionMeetsTheAbort"},
	},
	{
		clause: "a family that is stuck keeps no other",
		file:   "unitofwork/apply.go",
		old:    "p = p.Without(blocked)\n",
		new:    "if len(blocked) > 0 {\n\t\treturn nil\n\t}\n",
		by:     check{in: "unitofwork", test: "TestOneStuckFamilyKeepsNobodyElse"},
	},
	{
		clause: "a put's key is tried, too",
		file:   "unitofwork/verify.go",
		old:    "append(examples, keys...), apart",
		new:    "append(examples, keys[:0]...), apart",
		by:     check{in: "unitofwork", test: "TestATableWithAnotherKey"},
	},
}
