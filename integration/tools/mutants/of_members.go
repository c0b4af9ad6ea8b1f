package main

// ofMembers: what each unit of a group is shown, what is written of it, and what it is told.
var ofMembers = []mutant{
	{
		clause: "a function of a group is shown what those before it have staged",
		file:   "unitofwork/merge.go",
		old:    "i, written := m.at[identity]\n	if !written {",
		new:    "i, written := m.at[identity]\n	if !written || i >= 0 {",
		by:     check{in: "unitofwork", test: "TestWhoWaitsForTheSameIsCommittedTogether"},
	},
	{
		clause: "a member whose function failed writes nothing",
		file:   "unitofwork/group_runs.go",
		old:    `if !over || f.err != nil {`,
		new:    `if !over {`,
		by:     check{in: "unitofwork", test: "TestAMemberThatFails"},
	},
	{
		clause: "the error of a member is told when its group is committed, or its function is called again",
		file:   "unitofwork/following.go",
		old:    `case outcome == hooks.Committed && f.err != nil:`,
		new:    `case f.err != nil:`,
		by:     check{in: "unitofwork", test: "TestAnErrorAboutWhatNeverWasIsNotTold"},
	},
	{
		clause: "the members of a group that is in doubt are in doubt, and do not run again",
		file:   "unitofwork/following.go",
		old:    `case outcome == hooks.InDoubt && in &&`,
		new:    `case outcome == hooks.InDoubt && in && f.err != nil &&`,
		by:     check{in: "unitofwork", test: "TestAGroupInDoubt"},
	},
	{
		clause: "the record of each member's id is written in the group's commit",
		file:   "unitofwork/transaction.go",
		old:    `actions = append(actions, u.putID(f.u))`,
		new:    `_ = f`,
		by:     check{in: "unitofwork", test: "TestTheRecordOfAMembersID"},
	},
	{
		clause: "the record of a member's id has the group's nonce",
		file:   "unitofwork/transaction.go",
		old:    `member.work.ID, u.nonce,`,
		new:    `member.work.ID, member.nonce,`,
		by:     check{in: "unitofwork", test: "TestTheRecordOfAMembersID"},
	},
	{
		clause: "the record of a member's id has the digest of its own keys and payload",
		file:   "unitofwork/transaction.go",
		old:    `u.nonce, member.digest,`,
		new:    `u.nonce, u.digest,`,
		by:     check{in: "unitofwork", test: "TestTheRecordOfAMembersID"},
	},
	{
		clause: "nobody waits for a member's function that takes its time",
		file:   "unitofwork/group_runs.go",
		old:    `time.Now().Add(groupTime)`,
		new:    `time.Now().Add(3000 * groupTime)`,
		by:     check{in: "unitofwork", test: "TestAMemberThatBlocks"},
	},
	{
		clause: "what a later member writes instead takes no more room",
		file:   "unitofwork/group_runs.go",
		old:    `g.hasRoomFor(f, all.writes, `,
		new:    `g.hasRoomFor(f, slices.Concat(g.merged.writes, writes), `,
		by:     check{in: "unitofwork", test: "TestGroupsAreAsLargeAsCanBe"},
	},
}
