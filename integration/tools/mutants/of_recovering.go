package main

// ofRecovering: what is known about a dead unit stays known until the last of it is
// done or undone.
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
}
