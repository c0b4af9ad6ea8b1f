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
	{
		clause: "a fence below its own says nothing of a unit: the row was made anew",
		file:   "lockset/fate.go",
		old:    `case r.exists && r.fence == token:`,
		new:    `case r.exists && r.fence <= token:`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "the absence of a record says nothing when a wrong clock may have deleted it",
		file:   "unitofwork/outcome.go",
		old:    `c.cfg.IDRetention-c.lock.Retention`,
		new:    `c.cfg.IDRetention`,
		by:     check{in: "unitofwork", test: "TestInDoubt"},
	},
	{
		clause: "a unit that is done has committed, whatever its rows say since",
		file:   "unitofwork/outcome.go",
		old:    `case decided.state != undecided:`,
		new:    `case decided.state == committed:`,
		by:     check{in: "unitofwork", test: "TestALargeUnitInDoubt"},
	},
	{
		clause: "what was never sent is in nobody's doubt",
		file:   "unitofwork/commit.go",
		old:    `sent.Sendings > 0`,
		new:    `sent.Sendings >= 0`,
		by:     check{in: "unitofwork", test: "TestACommitThatWasNeverSentIsNotInDoubt"},
	},
	{
		clause: "a record of an ID names a unit",
		file:   "unitofwork/record.go",
		old:    `unit.Value == "" || len`,
		new:    `len`,
		by:     check{in: "unitofwork", test: "TestARecordOfAnIDThatIsNone"},
	},
	{
		clause: "the digest of an ID tells keys apart that run into each other",
		file:   "unitofwork/record.go",
		old:    "\t\th.Write(length[:])\n",
		new:    "\t\t_ = length\n",
		by:     check{in: "unitofwork", test: "TestTheDigestTellsUsesOfAnIDApart"},
	},
	{
		clause: "a Ref has an ID that can be one",
		file:   "unitofwork/record.go",
		old:    ` || checkID(id) != nil`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestOutcomeOfAnID"},
	},
}
