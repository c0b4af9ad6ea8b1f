/*
 * A unit without locks above, or beside, units that take several keys below one ancestor in
 * steps: only their first step has the intent.
 *
 * Modelled: the rows c, c/f, c/g, and two records that c/f and c/g guard. A unit takes c/f with its intent
 * on c, then c/g in another transaction, with a higher token, and commits; or it prepares both for a journal,
 * in two transactions, decides, and is applied, last step first, by anybody. It may be late, buried row by row
 * and its intent cleaned, or aborted. A unit without locks has c, and reads both records, or has
 * c/g, and reads one. Its commit is late, and comes again.
 *
 * Left out: all else (optimistic.pml). Nobody takes c, so its RVN never changes.
 *
 * Size: 3 rows, 2 records, 3 units: two with steps, one without locks.
 */
/* property still_true: what a unit has read is true when it commits */
/* property alone: nobody commits without locks while a living unit holds a key of the line */
/* property one_state: no unit without locks sees a journal applied in part */
/* property once: a unit commits once */
/* property in_order: no fence falls */
/* clause seen_bare: a key's row is bare when it is first looked at | mutant: nothing is below a key's row that a run without locks looks at first | finds: still_true */
/* clause bare: a commit needs each key's row to be bare | mutant: a commit without locks needs nothing to be below a key's row | finds: nothing: its fence is as it was seen, and it was bare then. It counts for a blind key (optimistic.pml) */
/* clause fence_same: a commit needs the fence of each key's row to be as it was seen | mutant: a commit without locks needs each key's row to have the fence that it was seen with | finds: still_true */
/* clause commit_intents: under locks, a commit needs every intent to be there | mutant: a commit needs every intent to be there | finds: nothing: an intent is removed only when its witness is not the unit's any more, and the commit needs that too. It counts when somebody deletes the row of c by hand */
/* clause prepare_intents: preparing needs the intents | mutant: preparing needs the intents | finds: nothing: as with commit_intents */
/* clause reverse: a family is freed in reverse, so the step with the intent is the last | mutant: a family is freed in reverse | finds: one_state */

#define C 0
#define F 1
#define G 2

hidden byte still_true, alone, one_state, once, in_order; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit[3], fence[3];
byte below;       /* of c: bit u is an intent of unit u, whose witness is c/f */
bit prepared[3];  /* of c/f and c/g */
bit decided, freed_f, freed_g;

byte x, y;        /* the records below c/f and c/g: how often each was written */
bit holds[4], gone[4], landed;
byte vx[4], vy[4]; /* what a unit has read */
byte key;         /* of unit 3, which runs without locks: c, or c/g */
bit sent;
byte tok, seen;   /* its token; the fence as it was seen */

#define LIVES(u) (holds[u] && !gone[u])
#define HIGHER(x, y) ((x) > (y) -> (x) : (y))
#define CAN_BURY(r) (unit[r] != 0 && gone[unit[r]] && !prepared[r])
#define CAN_ABORT(r) (prepared[r] && !decided && gone[unit[r]])

/* lockrow.Table.Pass (pass.go) */
#ifdef WITHOUT_bare
#define BARE true
#else
#define BARE (key == G || below == 0)
#endif
#ifdef WITHOUT_fence_same
#define SAME (fence[key] < tok)
#else
#define SAME (fence[key] == seen)
#endif
#define ADMITTED (sent && unit[C] == 0 && unit[key] == 0 && BARE && SAME && (key == C || fence[C] < tok))

inline set_fence(row, n) {
	assert(in_order || n >= fence[row]);
	fence[row] = n
}

/* unitofwork.Unit.write (commit.go): one transaction, locks.Pass.Actions (pass.go) and the writes */
inline carry_out() {
	assert(once || !landed);
	assert(alone || key == G || !LIVES(1) && !LIVES(2));
	assert(still_true || y == vy[3] && (key == G || x == vx[3]));
	landed = 1; y++; x = (key == C -> x + 1 : x);
	set_fence(key, tok); set_fence(C, tok)
}

inline free_f() { below = below & ~(1 << unit[F]); holds[unit[F]] = 0; unit[F] = 0; prepared[F] = 0; freed_f = 1 }
inline free_g() { unit[G] = 0; prepared[G] = 0; freed_g = 1 }

/* The network, the server, and others. */
active proctype world() {
end:
	do
	:: atomic { ADMITTED -> carry_out() }
	/* a deadline passes: the holder is suspended, or dead */
	:: atomic { holds[1] && !gone[1] -> gone[1] = 1 }
	:: atomic { holds[2] && !gone[2] -> gone[2] = 1 }
	/* locks.acquisition.bury (wait.go) */
	:: atomic { CAN_BURY(F) -> unit[F] = 0 }
	:: atomic { CAN_BURY(G) -> unit[G] = 0 }
	/* locks.Client.clean (below.go) */
	:: atomic { (below & 2) && unit[F] != 1 -> below = below & ~2 }
	:: atomic { (below & 4) && unit[F] != 2 -> below = below & ~4 }
	/* unitofwork.Client.abort (rollforward.go), and the rows are freed; a unit with an unprepared row never decides */
	:: atomic { CAN_ABORT(F) -> unit[F] = 0; prepared[F] = 0 }
	:: atomic { CAN_ABORT(G) -> unit[G] = 0; prepared[G] = 0 }
	/* unitofwork.Client.apply (apply.go), by anybody; journal.Journal.Batches (batches.go) */
	:: atomic { decided && !freed_g -> assert(still_true || y == vy[unit[G]]); y++; free_g() }
	:: atomic { (decided && !freed_f
#ifndef WITHOUT_reverse
		&& freed_g
#endif
		) -> assert(still_true || x == vx[unit[F]]); x++; free_f() }
	:: atomic { decided && freed_f && freed_g -> decided = 0; freed_f = 0; freed_g = 0 }
	od
}

#define INTENT (below & (1 << u))
#ifdef WITHOUT_commit_intents
#define COMMIT_INTENT true
#else
#define COMMIT_INTENT INTENT
#endif
#ifdef WITHOUT_prepare_intents
#define PREPARE_INTENT true
#else
#define PREPARE_INTENT INTENT
#endif

/* Units 1 and 2. */
proctype in_steps(byte u) {
	byte t; /* its token */
	bit ok;

	/* locks.acquisition.take (acquire.go): the first step */
	atomic {
		unit[C] == 0 && unit[F] == 0 ->
		unit[F] = u; below = below | (1 << u); holds[u] = 1; gone[u] = 0;
		t = HIGHER(fence[C], fence[F]) + 1; set_fence(C, t); set_fence(F, t)
	};
	/* the second; locks.acquisition.restamp (restamp.go) */
	if
	:: atomic { unit[G] == 0 ->
		t = (fence[G] < t -> t : fence[G] + 1);
		unit[G] = u; set_fence(G, t);
		if
		:: unit[F] == u && fence[F] < t -> set_fence(F, t)
		:: else
		fi;
		if
		:: INTENT && fence[C] < t -> set_fence(C, t)
		:: else
		fi;
		t = 0 }
	:: atomic { gone[u] -> goto over }
	fi;
	/* unitofwork.Unit.get (get.go) */
	atomic { vx[u] = x; vy[u] = y };
	if
	/* unitofwork.Unit.write (commit.go), locks.Ending.Actions (ending.go) */
	:: atomic { unit[F] == u && unit[G] == u && COMMIT_INTENT ->
		assert(still_true || x == vx[u] && y == vy[u]);
		x++; y++; unit[F] = 0; unit[G] = 0; below = below & ~(1 << u); holds[u] = 0; gone[u] = 0 }
	:: atomic { !(unit[F] == u && unit[G] == u && COMMIT_INTENT) }
	/* unitofwork.Unit.commitByJournal (journaled.go): lockrow.Table.Prepare (expressions.go), and it decides when all is prepared */
	:: atomic { true -> if :: unit[F] == u && PREPARE_INTENT -> prepared[F] = 1; ok = 1 :: else fi };
		atomic { if :: ok && unit[G] == u -> prepared[G] = 1 :: else -> ok = 0 fi };
		atomic { if :: ok && unit[F] == u && unit[G] == u && prepared[F] && prepared[G] -> decided = 1 :: else -> ok = 0 fi };
		if
		:: ok -> goto out
		:: else
		fi
	fi;
over:	/* locks.Client.release (release.go) */
	atomic {
		holds[u] = 0;
		if :: unit[G] == u -> unit[G] = 0; prepared[G] = 0 :: else fi;
		if :: unit[F] == u -> unit[F] = 0; prepared[F] = 0 :: else fi;
		below = below & ~(1 << u)
	};
out:
	skip
}

/* Unit 3: unitofwork.Unit.getWithoutLocks (optimistic.go), footprint.Glance.Saw (footprint.go) */
proctype without_locks() {
	if
	:: key = C
	:: key = G
	fi;
	if
	:: atomic { unit[C] == 0 && unit[key] == 0 && (key == G || below == 0
#ifdef WITHOUT_seen_bare
		|| true
#endif
		) -> seen = fence[key]; vx[3] = x; vy[3] = y; tok = HIGHER(fence[key], fence[C]) + 1;
		assert(one_state || key == G || freed_f == freed_g);
		if
		:: tok = tok + 3 /* its clock is ahead: tokens.Clock.Next (clock.go) */
		:: true
		fi;
		sent = 1 }
	:: goto out /* the run is void */
	fi;
	if
	:: atomic { ADMITTED -> carry_out() }
	:: true /* refused, or not answered */
	fi;
out:
	skip
}

init { atomic { run in_steps(1); run in_steps(2); run without_locks() } }
