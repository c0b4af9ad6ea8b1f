package main

// ofOutcomes: unknown is never reported as success or failure.
var ofOutcomes = []mutant{
	{
		clause: "released is said of a commit only when it is known to be",
		file:   "lockset/ending.go",
		old:    "	defer func() { // whatever is left is for others to take over\n",
		new:    "	defer func() { // whatever is left is for others to take over\n		e.set.traceReleased()\n",
		by:     check{in: "unitofwork", test: "TestReleasedIsSaidOfWhatIsReleased"},
	},
	{
		clause: "a commit takes its intents away, and needs them",
		file:   "lockset/ending.go",
		old:    `wants: wants(s.unit.nonce, plan, 0), deadline`,
		new: `wants: func() (keys []want) {
			for _, w := range wants(s.unit.nonce, plan, 0) {
				if !w.intent {
					keys = append(keys, w)
				}
			}
			return keys
		}(), deadline`,
		by: check{in: "unitofwork", test: "TestACommitNeedsItsIntents"},
	},
	{
		clause: "a commit without an answer is resolved before it is told to be in doubt",
		file:   "unitofwork/commit.go",
		old:    `	case outcome != NotCommitted:`,
		new:    `	case outcome != NotCommitted, sent.Unanswered > 0:`,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommit"},
	},
	{
		clause: "a commit that was sent and not answered is not told as not committed",
		file:   "unitofwork/commit.go",
		old:    `u.race(detached, ending, sent.Sendings > 0)`,
		new:    `u.race(detached, ending, sent.Sendings > 0 && sent.Unanswered == 0)`,
		by:     check{in: "unitofwork", test: "TestLostAnswersOfACommit"},
	},
	{
		clause: "a refusal proves nothing about copies: only a release that lands does",
		file:   "unitofwork/commit.go",
		old:    `u.race(detached, ending, sent.Sendings > 0)`,
		new:    `u.race(detached, ending, sent.Unanswered > 0)`,
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
		clause: "another's mark is not ours",
		file:   "lockset/fate.go",
		old:    `		case r.committedBy == unit:`,
		new:    `		case r.committedBy != "":`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "another's mark, or none, proves nothing",
		file:   "lockset/fate.go",
		old:    "	case 0:\n		return FateUnknown",
		new:    "	case 0:\n		return FateNever",
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a row freed without the mark and untouched since was not committed",
		file:   "lockset/fate.go",
		old:    `		case r.exists && r.fence == token:`,
		new:    `		case r.exists && r.fence == token && r.unit != "":`,
		by:     check{in: "lockset", test: "TestFateOf"},
	},
	{
		clause: "a row freed without the mark tells only as long as nobody had it since",
		file:   "lockset/fate.go",
		old:    `		case r.exists && r.fence == token:`,
		new:    `		case r.exists && r.fence >= token:`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a unit that has its keys may yet commit",
		file:   "lockset/fate.go",
		old:    "	case len(rows):\n		return FateHeld",
		new:    "	case len(rows):\n		return FateNever",
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "another unit's record under the id is not ours",
		file:   "unitofwork/record.go",
		old:    `	case found != nil && found.unit == r.unit, fate`,
		new:    `	case found != nil, fate`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "without a record, a unit that has its keys is undecided",
		file:   "unitofwork/record.go",
		old:    `	case fate == lockset.FateHeld:`,
		new:    `	case fate == lockset.FateHeld && r.id == "":`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "the absence of a record tells only as long as records are kept",
		file:   "unitofwork/outcome.go",
		old:    `	expired := c.lock.Now().Sub(r.at) > c.cfg.IDRetention-c.lock.Retention`,
		new:    `	expired := c.lock.Now().Sub(r.at) > 100*c.cfg.IDRetention`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a set that has an Ending is let go of by that alone",
		file:   "lockset/ending.go",
		old:    "	s.turn <- stake{plan, byEnding}\n",
		new:    "	s.turn <- stake{left: plan}\n",
		by:     check{in: "lockset", test: "TestASetIsEndedOnce"},
	},
	{
		clause: "a set that is marked is let go of by its Pending alone",
		file:   "lockset/pending.go",
		old:    `			s.turn <- stake{plan, byPending}`,
		new:    `			s.turn <- stake{left: plan}`,
		by:     check{in: "lockset", test: "TestASetThatWasGivenBackIsEndedOnce"},
	},
	{
		clause: "an Ending ends its set once",
		file:   "lockset/ending.go",
		old:    `e.over.do(call); !ok {`,
		new:    `e.over.do(call); !ok && before == "" {`,
		by:     check{in: "lockset", test: "TestASetIsEndedOnce"},
	},
	{
		clause: "a Pending ends its set once",
		file:   "lockset/pending.go",
		old:    `p.over.do(call); !ok {`,
		new:    `p.over.do(call); !ok && before == "" {`,
		by:     check{in: "lockset", test: "TestASetThatWasGivenBackIsEndedOnce"},
	},
	{
		clause: "whose token was overtaken may start over",
		file:   "unitofwork/errors.go",
		old:    `errors.Is(err, fencing.ErrStale), errors.Is(err, ErrSuperseded):`,
		new:    `errors.Is(err, fencing.ErrStale) && commit != nil, errors.Is(err, ErrSuperseded):`,
		by:     check{in: "unitofwork", test: "TestNextOfIsAsREADMESays"},
	},
	{
		clause: "a committed unit that cannot be applied is to be mended, whatever its reason",
		file:   "unitofwork/errors.go",
		old:    "	case isOneOf[*UnappliedError](err), isOneOf[*JournalError](err):",
		new:    "	case isOneOf[*JournalError](err):",
		by:     check{in: "unitofwork", test: "TestNextOfIsAsREADMESays"},
	},
	{
		clause: "an error of the caller's function is not tried again, whatever it is",
		file:   "unitofwork/do.go",
		old:    "	next = Decide\n",
		new:    "	next = NextOf(err)\n",
		by:     check{in: "unitofwork", test: "TestFnsErrorIsNotTheUnits"},
	},
	{
		clause: "a unit in doubt is not started over",
		file:   "unitofwork/errors.go",
		old:    "	case errors.Is(err, ErrInDoubt):\n		return AskLater",
		new:    "	case errors.Is(err, ErrInDoubt):\n		return StartOver",
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a commit under way is resolved, whatever becomes of the caller",
		file:   "unitofwork/unit.go",
		old:    `context.WithTimeout(context.WithoutCancel(ctx), u.c.lock.Lease)`,
		new:    `context.WithTimeout(ctx, u.c.lock.Lease)`,
		by:     check{in: "unitofwork", test: "TestACallersEndReleasesWithoutWriting"},
	},
	{
		clause: "rows of which some are ours and some are not cannot be committed any more",
		file:   "lockset/fate.go",
		old:    "	case len(rows):\n		return FateHeld\n	default:",
		new:    "	case len(rows) + 1:\n		return FateNever\n	default:\n		return FateHeld",
		by:     check{in: "lockset", test: "TestFateOf"},
	},
	{
		clause: "with an id, the record is asked before there is doubt",
		file:   "unitofwork/commit.go",
		old:    `outcome == NotCommitted, u.options.ID == "":`,
		new:    `outcome == NotCommitted, true:`,
		by:     check{in: "unitofwork", test: "TestACommitHeldUpBeyondTheLeaseChangesNothing"},
	},
	{
		clause: "a refusal after a sending without an answer says nothing of the first",
		file:   "unitofwork/commit.go",
		old:    `	case sent.Unanswered > 0:`,
		new:    `	case sent.Unanswered > sent.Sendings:`,
		by:     check{in: "unitofwork", test: "TestARefusalOfARepetitionSaysNothingOfTheFirst"},
	},
}
