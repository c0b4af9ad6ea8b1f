package main

// ofCommitting: committed is whole, and only under the locks.
var ofCommitting = []mutant{
	{
		clause: "a commit needs every key to be the unit's",
		file:   "internal/locks/ending.go",
		old:    `lockrow.IsUnprepared, lockrow.Commit)`,
		new:    `"attribute_exists(#key)", lockrow.Commit)`,
		by:     check{in: "unitofwork", test: "TestAnOvertakenHoldersCommitIsRefused"},
	},
	{
		clause: "a commit needs every intent to be there",
		file:   "internal/lockrow/expressions.go",
		old:    `			updates[i] = t.Update(w.Key, hasMine, leave`,
		new:    `			updates[i] = t.Update(w.Key, "attribute_exists(#key)", leave`,
		by:     check{in: "unitofwork", test: "TestACommitNeedsItsIntents"},
	},
	{
		clause: "a commit leaves its stamp on every key",
		file:   "internal/lockrow/expressions.go",
		old:    `#turnAt = :turn, #committedBy = :unit REMOVE #unit`,
		new:    `#turnAt = :turn REMOVE #unit`,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommit"},
	},
	{
		clause: "a commit frees the keys that were only read, too",
		file:   "internal/locks/ending.go",
		old:    `wants: lockrow.Wants(s.unit.nonce, plan, 0), deadline: deadline`,
		new:    `wants: lockrow.Wants(s.unit.nonce, plan[:1], 0), deadline: deadline`,
		by:     check{in: "unitofwork", test: "TestAUnitIsTwoRequestsAndThreeWithARead"},
	},
	{
		clause: "a commit is not sent after the locks' deadline",
		file:   "unitofwork/commit.go",
		old:    `context.WithDeadlineCause(ctx, p.Deadline(),`,
		new:    `context.WithDeadlineCause(ctx, p.Deadline().Add(u.c.lockConfig.Lease),`,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommit"},
	},
	{
		clause: "a unit that does not fit into one transaction is refused before it writes",
		file:   "unitofwork/commit.go",
		old:    `u.work.fits(u.plan.Rows(), len(writes), u.c.cfg.TransactionSize)`,
		new:    `u.work.fits(u.plan.Rows(), 0, u.c.cfg.TransactionSize)`,
		by:     check{in: "unitofwork", test: "TestWithoutAUnitTableALargeUnitIsRefusedBeforeItLocksOrWrites"},
	},
	{
		clause: "a function's own error rolls back and is not started over",
		file:   "unitofwork/do.go",
		old:    `	next = lockset.Decide`,
		new:    `	next = lockset.NextOf(err)`,
		by:     check{in: "unitofwork", test: "TestFnsErrorIsNotTheUnits"},
	},
	{
		clause: "an id commits once: its record is written with the commit",
		file:   "unitofwork/transaction.go",
		old:    "	if u.work.ID != \"\" {\n		actions = append(",
		new:    "	if u.work.ID != \"\" && len(writes) == 0 {\n		actions = append(",
		by:     check{in: "unitofwork", test: "TestTheSameIDCommitsOnce"},
	},
	{
		clause: "an id commits once: its record is written only if there is none",
		file:   "internal/journal/idrecord.go",
		old:    `aws.String("attribute_not_exists(#unit)")`,
		new:    `aws.String("attribute_not_exists(#unit) OR attribute_exists(#unit)")`,
		by:     check{in: "unitofwork", test: "TestARaceForAnIDIsDecidedByTheCommit"},
	},
	{
		clause: "an id with other keys is refused",
		file:   "internal/journal/idrecord.go",
		old:    `		part([]byte(step.Key))`,
		new:    `		part([]byte(step.Key[:0]))`,
		by:     check{in: "unitofwork", test: "TestARaceForAnIDIsDecidedByTheCommit"},
	},
	{
		clause: "the function's context ends when the locks are lost",
		file:   "unitofwork/unit.go",
		old:    "	u.ctx, u.cancel, u.unlink = u.set.Under(",
		new:    "	u.unlink = func() {}\n	u.ctx, u.cancel = context.WithCancelCause(",
		by:     check{in: "unitofwork", test: "TestALostUnitIsToldAndWritesNothing"},
	},
}
