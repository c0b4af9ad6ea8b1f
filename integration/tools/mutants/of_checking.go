package main

// ofChecking: what a commit without locks only checks, because nothing is written there.
var ofChecking = []mutant{
	{
		clause: "a commit without locks checks the row of a key under which it writes nothing",
		file:   "internal/locks/pass.go",
		old:    `needs := r.on.Commit(written)`,
		new:    `needs := slices.DeleteFunc(r.on.Commit(written), func(n lockrow.Need) bool { return n.Checked && len(written) > 0 })`,
		by:     check{in: "unitofwork", test: "TestAWriterOfWhatAReaderHasRead"},
	},
	{
		clause: "a fence that has risen is not the one that a commit without locks has seen",
		file:   "internal/lockrow/pass.go",
		old:    `AND #fence = :seen"`,
		new:    `AND #fence >= :seen"`,
		by:     check{in: "unitofwork", test: "TestNoWriteSkewAtAnyRequest"},
	},
	{
		clause: "a commit without locks passes the row of a key under which it writes",
		file:   "internal/footprint/footprint.go",
		old:    `!slices.ContainsFunc(written, need.Key.Covers)`,
		new:    `!slices.Contains(written[:0], need.Key)`,
		by:     check{in: "internal/footprint", test: "TestWhatIsOnlyChecked"},
	},
	{
		clause: "a commit without locks passes the row of a key that a member of its group has named",
		file:   "unitofwork/optimistic.go",
		old:    `return append(keys, u.group.insideKeys()...)`,
		new:    `return append(keys, u.group.insideKeys()[:0]...)`,
		by:     check{in: "unitofwork", test: "TestAGroupPassesWhatItsMembersHaveNamed"},
	},
	{
		clause: "a commit without locks makes its token unusable on a row that it passes",
		file:   "internal/locks/pass.go",
		old:    `need.Checked == checked && `,
		new:    `(need.Checked == checked || !checked) && `,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommitWithoutLocks"},
	},
	{
		clause: "only rows that a commit without locks passes say what became of it",
		file:   "internal/locks/pass.go",
		old:    `if need.Mode == lockrow.Exclusive && !need.Checked {`,
		new:    `if need.Mode == lockrow.Exclusive {`,
		by:     check{in: "unitofwork", test: "TestARowThatWasOnlyCheckedProvesNothing"},
	},
	{
		clause: "a commit that passes no row is made impossible before the record of its id is looked for",
		file:   "internal/locks/pass.go",
		old:    `if _, err := p.burn(ctx, key); err != nil {`,
		new:    `if err := ctx.Err(); err != nil {`,
		by:     check{in: "unitofwork", test: "TestARefusedCommitIsNotCarriedOutLater"},
	},
	{
		clause: "that a commit of an id alone was stopped does not say that it was not carried out before",
		file:   "internal/locks/pass.go",
		old:    `return lockrow.FateStopped, nil`,
		new:    `return lockrow.FateNever, nil`,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommitWithoutLocks"},
	},
}
