package main

// ofRecovering: what is known about a dead unit stays known until the last of it is
// done or undone.
var ofRecovering = []mutant{
	{
		clause: "a journal that cannot be read says nothing",
		file:   "unitofwork/settle.go",
		old:    "errors.Is(err, errNoRow) {\n\t\treturn nil, err",
		new:    "errors.Is(err, errNoRow) {\n\t\treturn nil, nil",
		by:     check{in: "unitofwork", test: "TestRecoverKeepsWhatItCannotFinish"},
	},
	{
		clause: "a journal is kept until it is noted that it is done",
		file:   "unitofwork/settle.go",
		old:    "new(*types.ConditionalCheckFailedException)) {\n\t\treturn err",
		new:    "new(*types.ConditionalCheckFailedException)) && err == nil {\n\t\treturn err",
		by:     check{in: "unitofwork", test: "TestRecoverKeepsWhatItCannotFinish"},
	},
	{
		clause: "the journal of an aborted unit is kept until its rows are free",
		file:   "unitofwork/settle.go",
		old:    "Release(ctx); err != nil {",
		new:    "Release(ctx); err != nil && j == nil {",
		by:     check{in: "unitofwork", test: "TestRecoverKeepsWhatItCannotFinish"},
	},
	{
		clause: "Recover removes nothing of an aborted unit that is not swept",
		file:   "unitofwork/recover.go",
		old:    "err != nil && !errors.Is(err, errNoRow) {",
		new:    "err != nil && errors.Is(err, context.Canceled) {",
		by:     check{in: "unitofwork", test: "TestRecoverKeepsWhatItCannotFinish"},
	},
	{
		clause: "a unit that writes nothing has a journal, too",
		file:   "unitofwork/journal.go",
		old:    "h.Writes < 0",
		new:    "h.Writes <= 0",
		by:     check{in: "unitofwork", test: "TestRecoverFinishesAUnitThatWritesNothing"},
	},
	{
		clause: "that a unit is done stands for the retention",
		file:   "unitofwork/settle.go",
		old:    "conclusion(c.cfg.Table, unit, c.lock.Now().Add(c.cfg.IDRetention))",
		new:    "conclusion(c.cfg.Table, unit, c.lock.Now())",
		by:     check{in: "unitofwork", test: "TestALateRecoverBelievesWhatIsDone"},
	},
	{
		clause: "that a unit is aborted stands for the retention",
		file:   "unitofwork/settle.go",
		old:    "abortion(c.cfg.Table, unit, now, now.Add(c.cfg.IDRetention))",
		new:    "abortion(c.cfg.Table, unit, now, now)",
		by:     check{in: "unitofwork", test: "TestALateDecisionMeetsTheAbort"},
	},
}
