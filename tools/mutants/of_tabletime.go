package main

// What the table's own clock decides about the dead.
var ofTableTime = []mutant{
	{
		clause: "a holder is dead by the table's clock after two leases and what headers may be wrong",
		file:   "internal/lockrow/tabletime.go",
		old:    `min(r.Lease, maxRecorded) + headersDiffer`,
		new:    `min(r.Lease, maxRecorded)`,
		by:     check{in: "internal/lockrow", test: "TestJudgeByTheTablesClock"},
	},
	{
		clause: "that a time is past is known by the lower bound of the table's",
		file:   "internal/lockrow/tabletime.go",
		old:    `{ return t.Sub(n.Low) }`,
		new:    `{ return t.Sub(n.High) }`,
		by:     check{in: "internal/lockrow", test: "TestJudgeByTheTablesClock"},
	},
	{
		clause: "a renewal is dated by the upper bound of the table's time",
		file:   "internal/lockrow/tabletime.go",
		old:    `stampOf(n.High.Truncate`,
		new:    `stampOf(n.Low.Truncate`,
		by:     check{in: "internal/lockrow", test: "TestRowsAreDated"},
	},
	{
		clause: "a holder's lease begins before it reads the table's time",
		file:   "lockset/acquire.go",
		old:    `since: began, doubts`,
		new:    `since: began.Add(sent.First.Sub(began)), doubts`,
		by:     check{in: "lockset", test: "TestAProcessThatStandsStillBeforeItTakesAKey"},
	},
	{
		clause: "an operator's write does not say since when the lease runs",
		file:   "internal/lockrow/revoke.go",
		old:    `revokeForNothing = revoke + " REMOVE #purpose, #renewedAt"`,
		new:    `revokeForNothing = revoke + ", #renewedAt = :renewed REMOVE #purpose"`,
		by:     check{in: "lockset", test: "TestAnOperatorsRequestThatArrivesMinutesLater"},
	},
	{
		clause: "a holder that does not say when it was alive is dated by those who meet it",
		file:   "internal/lockrow/tabletime.go",
		old:    `case !r.Free() && !now.believes(r.RenewedAt):`,
		new:    `case false:`,
		by:     check{in: "lockset", test: "TestOneWhoLooksOnceSucceedsADeadHolder"},
	},
	{
		clause: "a renewal says when it was sent",
		file:   "lockset/set.go",
		old:    `renewedRVN(u.nonce, n), c.now().Stamp()`,
		new:    `renewedRVN(u.nonce, n), lockrow.Number(1)`,
		by:     check{in: "lockset", test: "TestOneWhoLooksOnceLeavesTheLivingAlone"},
	},
	{
		clause: "an evicted holder's row counts as free since anyone could have evicted it",
		file:   "internal/lockrow/tabletime.go",
		old:    `now.believes(r.RenewedAt) && r.deadAt().Before(now.High) {`,
		new:    `false {`,
		by:     check{in: "internal/lockrow", test: "TestSinceWhenADeadHoldersRowIsFree"},
	},
	{
		clause: "two turns at a row are told apart",
		file:   "internal/lockrow/tabletime.go",
		old:    `time.Duration(n.Mark)%time.Millisecond`,
		new:    `0`,
		by:     check{in: "lockset", test: "TestAHandOverBetweenProcesses"},
	},
	{
		clause: "a commit that passes those who wait removes them",
		file:   "internal/lockrow/pass.go",
		old:    `removing(update, ", #queue")`,
		new:    `update`,
		by:     check{in: "internal/lockrow", test: "TestPassingThoseWhoWait"},
	},
}
