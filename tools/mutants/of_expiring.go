package main

// ofExpiring: rows above keys expire when nobody uses them, and not before.
var ofExpiring = []mutant{
	{
		clause: "a row with the intent of a unit with a journal does not expire, whoever writes it",
		file:   "internal/lockrow/expiry.go",
		old:    `if_not_exists(#pendingBelow, :outlives)`,
		new:    `:outlives`,
		by:     check{in: "lockset", test: "TestARowAboveAJournalDoesNotExpire"},
	},
	{
		clause: "preparing takes the expiry of the rows above away",
		file:   "internal/lockrow/expiry.go",
		old:    `"ADD #pendingBelow :entries REMOVE #expiresAt"`,
		new:    `"ADD #pendingBelow :entries"`,
		by:     check{in: "lockset", test: "TestARowAboveAJournalDoesNotExpire"},
	},
	{
		clause: "the intents of a unit with a journal are known",
		file:   "internal/lockrow/expiry.go",
		old:    `"ADD #pendingBelow :entries REMOVE #expiresAt"`,
		new:    `"REMOVE #expiresAt"`,
		by:     check{in: "lockset", test: "TestARowAboveAJournalDoesNotExpire"},
	},
	{
		clause: "an intent that is removed is no longer that of a unit with a journal",
		file:   "internal/lockrow/expressions.go",
		old:    `"DELETE #below :entries, #pendingBelow :entries SET`,
		new:    `"DELETE #below :entries SET`,
		by:     check{in: "lockset", test: "TestRowsAboveExpire"},
	},
	{
		clause: "a row gets its expiry back only when no unit with a journal has a key below",
		file:   "internal/lockrow/expiry.go",
		old:    `"#isReleased = :one AND attribute_not_exists(#pendingBelow)"`,
		new:    `"#isReleased = :one"`,
		by:     check{in: "lockset", test: "TestARowAboveAJournalDoesNotExpire"},
	},
	{
		clause: "a row above keys stays for as long as any unit may have one of them",
		file:   "lockset/client.go",
		old:    `latest.Add(2*c.cfg.Retention)`,
		new:    `latest.Add(c.cfg.Retention)`,
		by:     check{in: "lockset", test: "TestARowAboveOutlivesItsIntents"},
	},
	{
		clause: "a unit with a journal gives the rows above its keys their expiry back",
		file:   "unitofwork/apply.go",
		old:    `		c.rows.LetExpire(ctx, j.Plan)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestEveryRowExpires"},
	},
	{
		clause: "a unit that was not decided gives the rows above its keys their expiry back",
		file:   "unitofwork/journaled.go",
		old:    `				u.c.rows.LetExpire(ctx, u.plan)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestEveryRowExpires"},
	},
	{
		clause: "a unit that was not prepared to its end gives the rows above its keys their expiry back",
		file:   "unitofwork/journaled.go",
		old:    "(*lockset.TableError)) {\n\t\tu.c.rows.LetExpire(ctx, u.plan)",
		new:    "(*lockset.TableError)) {",
		by:     check{in: "unitofwork", test: "TestEveryRowExpires"},
	},
	{
		clause: "the rows above the keys of a unit that was aborted for it get their expiry back",
		file:   "unitofwork/rollforward.go",
		old:    `	c.rows.LetExpire(ctx, j.Plan)`,
		new:    ``,
		by:     check{in: "unitofwork", test: "TestEveryRowExpires"},
	},
	{
		clause: "a sweep gives rows an expiry that have none",
		file:   "lockset/sweep_run.go",
		old:    `		return s.limit(ctx, k)`,
		new:    `		return nil`,
		by:     check{in: "lockset", test: "TestASweepGivesRowsAnExpiry"},
	},
	{
		clause: "a sweep gives no expiry to a row that was used since it looked",
		file:   "internal/lockrow/expiry.go",
		old:    `"#isReleased = :one AND #fence = :seen AND attribute_not_exists(#below)"`,
		new:    `"#isReleased = :one AND attribute_not_exists(#below)"`,
		by:     check{in: "lockset", test: "TestASweepIsTooLateForAnExpiry"},
	},
}
