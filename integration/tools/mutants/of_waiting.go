package main

// ofWaiting: a wait is as long as was said, and nobody is overtaken for ever.
var ofWaiting = []mutant{
	{
		clause: "a join that was outrun by newcomers has headroom",
		file:   "internal/locks/queue.go",
		old:    `	if a.outrun {`,
		new:    `	if a.outrun && a.token == 0 {`,
		by:     check{in: "lockset", test: "TestAUnitWhoseRequestsTakeLongerIsServed"},
	},
	{
		clause: "a unit whose token was too low again and again queues",
		file:   "internal/locks/acquire.go",
		old:    `a.raises > mostRaises {`,
		new:    `a.raises > 1000*mostRaises {`,
		by:     check{in: "lockset", test: "TestAUnitWhoseRequestsTakeLongerIsServed"},
	},
	{
		clause: "all the dead below a row are buried and cleaned at once",
		file:   "internal/locks/below.go",
		old:    `	remnants = lockrow.OneEach(remnants)`,
		new:    `	remnants = lockrow.OneEach(remnants)[:1]`,
		by:     check{in: "lockset", test: "TestAllTheDeadBelowAreBuriedAtOnce"},
	},
	{
		clause: "a unit whose wait is over does not wait until it has left a queue that many leave",
		file:   "internal/locks/queue.go",
		old:    `const leavingTries = 2`,
		new:    `const leavingTries = 1000`,
		by:     check{in: "lockset", test: "TestManyWaitsThatEndAtOnce"},
	},
	{
		clause: "a dead unit's intent is cleaned",
		file:   "internal/locks/below.go",
		old:    "\tif len(remnants) > 0 {\n",
		new:    "\tif len(remnants) > 0 && !w.answered {\n",
		by:     check{in: "lockset", test: "TestADeadHeadOverADeadIntent"},
	},
	{
		clause: "a stale intent is cleaned",
		file:   "internal/locks/below.go",
		old:    "remnants = append(remnants, lockrow.Remnant{Entry: e, Row: r})\n",
		new:    "w.answered = true\n",
		by:     check{in: "lockset", test: "TestAUnitThatGoesPastOthersFindsTheRowAsItWasSeen"},
	},
	{
		clause: "a row whose stale intent is cleaned has been bare since the witness is free",
		file:   "internal/lockrow/tabletime.go",
		old:    "\t\tat = m.Row.TurnAt\n",
		new:    "\t\tat = now.High\n",
		by:     check{in: "lockset", test: "TestOneWhoLooksOnceSucceedsADeadSetAndItsDeadWaiters"},
	},
}
