package main

// ofOutcomes: unknown is never reported as success or failure.
var ofOutcomes = []mutant{
	{
		clause: "released is said of a commit only when it is known to be",
		file:   "internal/locks/ending.go",
		old:    "	defer func() { // whatever is left is for others to take over\n",
		new:    "	defer func() { // whatever is left is for others to take over\n		e.set.traceReleased()\n",
		by:     check{in: "unitofwork", test: "TestReleasedIsSaidOfWhatIsReleased"},
	},
	{
		clause: "a commit takes its intents away, and needs them",
		file:   "internal/locks/ending.go",
		old:    `wants: lockrow.Wants(s.unit.nonce, plan, 0), deadline`,
		new: `wants: func() (keys []lockrow.Want) {
			for _, w := range lockrow.Wants(s.unit.nonce, plan, 0) {
				if w.Mode == lockrow.Exclusive {
					keys = append(keys, w)
				}
			}
			return keys
		}(), deadline`,
		by: check{in: "unitofwork", test: "TestACommitNeedsItsIntents"},
	},
	{
		clause: "a refusal proves nothing about copies: only a release that lands does",
		file:   "unitofwork/commit.go",
		old:    `	case sent.Sendings > 0:`,
		new:    `	case sent.Unanswered > 0:`,
		by:     check{in: "unitofwork", test: "TestACopyOfARefusedCommit"},
	},
	{
		clause: "a unit whose fate is unknown is in doubt",
		file:   "unitofwork/commit.go",
		old:    `	case outcome != NotCommitted:`,
		new:    `	case outcome != NotCommitted && outcome != Forgotten:`,
		by:     check{in: "unitofwork", test: "TestACopyOfACommitThatWasBusy"},
	},
	{
		clause: "another's commit stamp is not ours",
		file:   "internal/lockrow/outcome.go",
		old:    "		case r.committedBy == unit:\n			return FateCommitted\n		case r.Unit == unit:",
		new:    "		case r.committedBy != \"\":\n			return FateCommitted\n		case r.Unit == unit:",
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "another's commit stamp, or none, proves nothing",
		file:   "internal/lockrow/outcome.go",
		old:    "	case 0:\n		return FateUnknown",
		new:    "	case 0:\n		return FateNever",
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a row freed without the commit stamp tells only as long as nobody had it since",
		file:   "internal/lockrow/outcome.go",
		old:    `		case r.Exists && r.Fence == token:`,
		new:    `		case r.Exists && r.Fence >= token:`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "another unit's record under the id is not ours",
		file:   "unitofwork/ref.go",
		old:    `	case found != nil && found.Unit == r.unit, fate`,
		new:    `	case found != nil, fate`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "without a record, a unit that has its keys is undecided",
		file:   "unitofwork/ref.go",
		old:    `	case fate == lockrow.FateHeld:`,
		new:    `	case fate == lockrow.FateHeld && r.id == "":`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "whose token was overtaken may start over",
		file:   "fencing/stale.go",
		old:    `WhatNext() next.Next { return next.StartOver }`,
		new:    `WhatNext() next.Next { return next.Decide }`,
		by:     check{in: "unitofwork", test: "TestNextOfIsAsREADMESays"},
	},
	{
		clause: "a committed unit that cannot be applied is to be mended, whatever its reason",
		file:   "unitofwork/apply.go",
		old:    `WhatNext() next.Next { return next.FixCall }`,
		new:    `WhatNext() next.Next { return next.Of(e.Err) }`,
		by:     check{in: "unitofwork", test: "TestNextOfIsAsREADMESays"},
	},
	{
		clause: "a unit in doubt is not started over",
		file:   "unitofwork/errors.go",
		old:    `return next.AskLater`,
		new:    `return next.StartOver`,
		by:     check{in: "unitofwork", test: "TestNextOfIsAsREADMESays"},
	},
	{
		clause: "of errors that are joined, one in doubt is not started over",
		file:   "internal/next/next.go",
		old:    `TryLater, StartOver, AskLater}, n)`,
		new:    `TryLater, AskLater, StartOver}, n)`,
		by:     check{in: "internal/next", test: "TestOf"},
	},
	{
		clause: "a commit under way is resolved, whatever becomes of the caller",
		file:   "unitofwork/end.go",
		old:    `context.WithTimeout(context.WithoutCancel(ctx), u.c.lockConfig.Lease)`,
		new:    `context.WithTimeout(ctx, u.c.lockConfig.Lease)`,
		by:     check{in: "unitofwork", test: "TestACallersEndReleasesWithoutWriting"},
	},
	{
		clause: "a refusal after a sending without an answer says nothing of the first",
		file:   "unitofwork/commit.go",
		old:    `	case sent.Unanswered > 0:`,
		new:    `	case sent.Unanswered > sent.Sendings:`,
		by:     check{in: "unitofwork", test: "TestARefusalOfARepetitionSaysNothingOfTheFirst"},
	},
}
