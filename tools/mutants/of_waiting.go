package main

// ofWaiting: a wait is as long as was said, and nobody is overtaken for ever.
var ofWaiting = []mutant{
	{
		clause: "a waiter takes its place before it judges anybody",
		file:   "lockset/wait.go",
		old:    `		if a.wantsPlace(at, place) {`,
		new:    `		if a.wantsPlace(at, place) && look.n > 3 {`,
		by:     check{in: "lockset", test: "TestAWaiterHasItsPlaceBeforeItLooksAtThoseBelow"},
	},
	{
		clause: "a unit that waits no longer takes no place",
		file:   "lockset/wait.go",
		old:    ` && place < lockrow.MaxQueue && !a.over()`,
		new:    ` && place < lockrow.MaxQueue`,
		by:     check{in: "lockset", test: "TestWhoWaitsNoLongerTakesNoPlace"},
	},
	{
		clause: "a join that was outrun by newcomers has headroom",
		file:   "lockset/queue.go",
		old:    `	if a.outrun {`,
		new:    `	if a.outrun && a.token == 0 {`,
		by:     check{in: "lockset", test: "TestACoarseLockWhoseRequestsTakeLongerIsServed"},
	},
	{
		clause: "a unit whose token was too low again and again queues",
		file:   "lockset/acquire.go",
		old:    `a.raises > mostRaises {`,
		new:    `a.raises > 1000*mostRaises {`,
		by:     check{in: "lockset", test: "TestAUnitWhoseRequestsTakeLongerIsServed"},
	},
	{
		clause: "a waiter looks at the witnesses when the first of them may be dead",
		file:   "lockset/wait.go",
		old:    `			*holder, look.due = at, below.dueBy`,
		new:    `			*holder = at`,
		by:     check{in: "lockset", test: "TestTheDeadAmongTheLivingBelowAreBuriedInTime"},
	},
	{
		clause: "a look at the witnesses without an answer is not repeated at once",
		file:   "lockset/wait.go",
		old:    `		look.due = time.Time{} //`,
		new:    `		//`,
		by:     check{in: "lockset", test: "TestALookAtTheWitnessesWithoutAnAnswerIsNotRepeatedAtOnce"},
	},
	{
		clause: "a unit that waits no longer is told by the first refusal",
		file:   "lockset/acquire.go",
		old:    "		case a.over():\n",
		new:    "		case a.over() && before == 0:\n",
		by:     check{in: "lockset", test: "TestWhoWaitsForNobodyIsToldAtOnce"},
	},
	{
		clause: "a burn begins with the row as it was seen last",
		file:   "lockset/giveup.go",
		old:    `if seen, ok := a.places.last(b.row.Key); ok {`,
		new:    `if seen, ok := a.places.last(b.row.Key); ok && seen.Queues(a.unit.nonce) {`,
		by:     check{in: "lockset", test: "TestWhoWaitsForNobodyIsToldAtOnce"},
	},
	{
		clause: "a unit that waits no longer does not ask again while one of those below lives",
		file:   "lockset/wait.go",
		old:    `return below.freed && !(a.over() && below.living.Row.Exists), err`,
		new:    `return below.freed, err`,
		by:     check{in: "lockset", test: "TestWhoWaitsForNobodyRemovesTheDeadBesideTheLiving"},
	},
	{
		clause: "all the dead below a row are buried and cleaned at once",
		file:   "lockset/below.go",
		old:    `	remnants = lockrow.OneEach(remnants)`,
		new:    `	remnants = lockrow.OneEach(remnants)[:1]`,
		by:     check{in: "lockset", test: "TestAllTheDeadBelowAreBuriedAtOnce"},
	},
	{
		clause: "a unit whose wait is over does not wait until it has left a queue that many leave",
		file:   "lockset/queue.go",
		old: `	if !a.over() {
		return a.leaveQueues`,
		new: `	if a.ledger.reach > 0 {
		return a.leaveQueues`,
		by: check{in: "lockset", test: "TestManyWaitsThatEndAtOnce"},
	},
	{
		clause: "a unit that has told its caller that the wait is over still leaves the queue",
		file:   "lockset/queue.go",
		old:    `go a.c.leaveLater(context.WithoutCancel(ctx), a.unit, id, r)`,
		new:    `_ = a.c.leaveLater`,
		by:     check{in: "lockset", test: "TestManyWaitsThatEndAtOnce"},
	},
	{
		clause: "a unit that has waited in its process proposes a token above those that were there",
		file:   "lockset/queue.go",
		old:    `	case a.claim.Fence >= a.token:`,
		new:    `	case a.claim.Fence >= a.token && a.ledger.secured == 0:`,
		by:     check{in: "lockset", test: "TestAUnitThatHasWaitedSendsNoStaleToken"},
	},
	{
		clause: "a unit that was given its step is not told that somebody has it",
		file:   "lockset/queue.go",
		old:    `WhoBlocks(a.claim); now.Key != "" {`,
		new:    `WhoBlocks(a.claim); now.Key != "?" {`,
		by:     check{in: "lockset", test: "TestAUnitThatHasItsStepIsNotToldThatItIsHeld"},
	},
}
