/*
 * Units without locks: nothing is held while the function runs, and one transaction commits
 * if nobody has had the rows since they were first looked at.
 *
 * Modelled: a family of two rows, c and c/f, and two records, a and b, that c/f guards. One or two
 * units run without locks, on either row; they read both records, one after the other, and write one,
 * each its own, or only write. Beside them, writing both: a unit with locks, fine or coarse, that is
 * late and buried; a lock set that writes twice by itself, with one token, or once, after it was buried; a unit with a journal that others apply in two transactions; copies of every commit without locks,
 * for ever; answers that are lost; a refusal that names some of the rows that refuse; a staged condition
 * that does not hold yet. A run that is void is followed by one under locks.
 *
 * Assumed: the answer to a request that was sent once is true of that request: DynamoDB
 * remembers request tokens for ten minutes. Later copies are judged by their conditions alone.
 *
 * Left out: plans of two keys and IDs, and what is told when rows do not tell (optimistic_told.pml);
 * keys that are found on the way (found.pml); steps (optimistic_steps.pml); how locks are taken and
 * waited for (acquire.pml); queues, which are empty here; how long a look is good, and what a process reserves and
 * remembers. A late write of a lock set is found out by the stamps of the records, when the unit writes
 * them; a second one with the same token leaves the same stamp, and is not. Units with locks are not safe from either.
 *
 * Size: 2 rows, 2 records, 2 units, 2 commits of each run without locks.
 */
/* property still_true: what a unit has read is true when it commits */
/* property one_state: what a function is told is one state, that of its last look */
/* property alone: nobody commits without locks, or takes a key, while a living unit holds a key of the line */
/* property in_order: of two units that conflict the later one has the higher token, and no fence falls */
/* property once: a unit commits once, however often its requests arrive, and with locks or without */
/* property truth: a unit that is told that it committed did, and one that is told that it did not never does */
/* clause fence_same: a commit needs the fence of each key's row to be as it was seen | mutant: a commit without locks needs each key's row to have the fence that it was seen with | finds: still_true */
/* clause rvn_same: a commit needs the RVN of each row above to be as it was seen | mutant: a commit without locks needs each row above its keys to have the RVN that it was seen with | finds: still_true */
/* clause stamp_same: a commit needs the stamp of a record that it writes to be as it was read | mutant: a commit without locks needs a record that was read to have the stamp that it was read with | finds: still_true */
/* clause seen_free: a row is free when it is first looked at | mutant: a row that a run without locks looks at first is in nobody's hands | finds: one_state */
/* clause seen_bare: a key's row is bare when it is first looked at | mutant: nothing is below a key's row that a run without locks looks at first | finds: one_state */
/* clause again: every further read looks at the rows once more | mutant: with every further read each key's row has the fence that it was seen with ; with every further read each row above keys has the RVN that it was seen with | finds: one_state */
/* clause key_free: a commit needs each key's row to be free: nobody has looked at that of a blind key | mutant: a commit without locks needs each key's row to be free | finds: alone */
/* clause bare: a commit needs each key's row to be bare | mutant: a commit without locks needs nothing to be below a key's row | finds: alone */
/* clause above_free: a commit needs each row above to be free | mutant: a commit without locks needs each row above its keys to be free | finds: alone */
/* clause newer: a commit needs a token above the fence of a blind key's row | mutant: a commit without locks needs a token above the fence of a key's row that it did not look at | finds: truth */
/* clause newer_above: a commit needs a token above the fence of each row above | mutant: a commit without locks needs a token above the fence of each row above its keys | finds: in_order */
/* clause leaves_token: a commit leaves its token on each key's row | mutant: a commit without locks leaves its token on each key's row | finds: truth */
/* clause leaves_token_above: a commit leaves its token on each row above | mutant: a commit without locks leaves its token on each row above its keys | finds: in_order */
/* clause leaves_rvn: a commit leaves a new RVN on each key's row, which may be above others' keys | mutant: a commit without locks leaves a new RVN on each key's row | finds: still_true */
/* clause leaves_stamp: a commit leaves its commit stamp on each key's row | mutant: a commit without locks leaves its commit stamp on each key's row | finds: truth */
/* clause burn: after a refusal that may pass, or no answer, the token is burned before anything follows | mutant: a commit without locks that was not answered makes its token unusable before it looks at the rows | finds: once */
/* clause burn_refused: a burn that is refused does not say that the commit was not carried out | mutant: a row that has the token of a commit without locks does not say that it was not carried out | finds: truth */
/* clause lasting: only a row that never fits again makes burning unnecessary | mutant: only a row that never fits again refuses a commit without locks for ever ; a staged condition that refuses a commit without locks does not refuse it for ever | finds: once */
/* clause first_sending: a refusal after a sending without an answer says nothing of the first | mutant: a refusal of a commit without locks after a sending without an answer says nothing of the first | finds: once */

#define C 0
#define F 1

hidden byte still_true, one_state, alone, in_order, once, truth; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit[2];
byte fence[2];
byte rvn;       /* of c: counts those who had it as a key, with locks or without */
byte stamp[2];  /* committedBy */
byte below;     /* of c: bit u is an intent of unit u, whose witness is c/f */
bit pending;    /* of c/f: it waits for a journal */
bit applied;    /* the first half of that */

byte a, b;      /* the records: how often each was written */
byte sa, sb;    /* their stamps */
byte top;       /* the last token that had the line */
bit met;        /* the condition that unit 1 has staged holds */
bit late;       /* a lock set has written after it was buried */

byte key[3];    /* of a unit: c, or c/f */
bit blind[3];   /* it only writes */
bit holds[3], gone[3], landed[3];
byte token[3];  /* under locks */
byte va[3], vb[3]; /* what it has read */
byte q[3];      /* the stamp with which it has read the record that it writes without locks */
byte told[3];
#define YES 1
#define NO 2
#define DOUBT 3

/* The commits without locks of units 1 and 2: each may send two, the second with a raised token. */
bit sent[5];
byte tok[5], sf[5], sr[5]; /* the token; fence and RVN as they were seen */
#define R(u, n) ((u) * 2 + (n) - 2)
#define U(r) (((r) + 1) / 2)
#define K(r) key[U(r)]
#define BLIND(r) blind[U(r)]

#define LIVES(u) (holds[u] && !gone[u])
#define NOBODY (!LIVES(1) && !LIVES(2))
#define HIGHER(x, y) ((x) > (y) -> (x) : (y))

#ifdef WITHOUT_fence_same
#define SAME(r) (fence[K(r)] < tok[r])
#else
#define SAME(r) (fence[K(r)] == sf[r])
#endif
#ifdef WITHOUT_rvn_same
#define RVN_SAME(r) true
#else
#define RVN_SAME(r) (BLIND(r) || rvn == sr[r])
#endif
#ifdef WITHOUT_key_free
#define KEY_FREE(r) true
#else
#define KEY_FREE(r) (unit[K(r)] == 0)
#endif
#ifdef WITHOUT_bare
#define BARE(r) true
#else
#define BARE(r) (K(r) == F || below == 0)
#endif
#ifdef WITHOUT_above_free
#define ABOVE_FREE true
#else
#define ABOVE_FREE (unit[C] == 0)
#endif
#ifdef WITHOUT_newer
#define NEWER(r) true
#else
#define NEWER(r) (fence[K(r)] < tok[r])
#endif
#ifdef WITHOUT_newer_above
#define NEWER_ABOVE(r) true
#else
#define NEWER_ABOVE(r) (fence[C] < tok[r])
#endif
/* lockrow.Table.Pass (pass.go) */
#define KEY_OK(r) (KEY_FREE(r) && BARE(r) && (BLIND(r) -> NEWER(r) : SAME(r)))
#define ABOVE_OK(r) (K(r) == C || ABOVE_FREE && NEWER_ABOVE(r) && RVN_SAME(r))
/* unitofwork.Unit.stamped (optimistic.go). That the stamp is older than the token as well always holds here: see in_order. */
#ifdef WITHOUT_stamp_same
#define STAMPS_OK(r) true
#else
#define STAMPS_OK(r) (BLIND(r) || q[U(r)] == (U(r) == 1 -> sa : sb))
#endif
#define WRITES_OK(r) ((U(r) != 1 || met) && STAMPS_OK(r))
#define ADMITTED(r) (sent[r] && KEY_OK(r) && ABOVE_OK(r) && WRITES_OK(r))

/* lockrow.Need.Refuses (pass.go): what a row says that refused a commit */
#define PASSING 1
#define FINAL 2
#define TOO_LOW 3
#define KEY_OPEN(r) (unit[K(r)] == 0 && (K(r) == F || below == 0))
#define KEY_SAYS(r) (BLIND(r) -> (fence[K(r)] < tok[r] -> PASSING : (KEY_OPEN(r) -> TOO_LOW : FINAL)) : (SAME(r) -> PASSING : FINAL))
#define ABOVE_SAYS(r) (!RVN_SAME(r) -> FINAL : (fence[C] < tok[r] -> PASSING : (unit[C] == 0 -> TOO_LOW : FINAL)))

inline set_fence(row, n) {
	assert(in_order || n >= fence[row]);
	fence[row] = n
}
/* actions.Stamper.Stamp (stamp.go) */
inline write_a(n) { assert(in_order || n > sa); a++; sa = n }
inline write_b(n) { assert(in_order || n > sb); b++; sb = n }

/* unitofwork.Unit.write (commit.go): one transaction, locks.Pass.Actions (pass.go) and the writes */
inline carry_out(r) {
	assert(alone || NOBODY);
	assert(once || !landed[U(r)]);
	assert(truth || told[U(r)] != NO);
	assert(in_order || tok[r] > top);
	assert(still_true || BLIND(r) || a == va[U(r)] && b == vb[U(r)]);
	top = tok[r];
	landed[U(r)] = 1;
#ifndef WITHOUT_leaves_stamp
	stamp[K(r)] = U(r);
#endif
#ifndef WITHOUT_leaves_token
	set_fence(K(r), tok[r]);
#endif
	if
	:: K(r) == F ->
#ifndef WITHOUT_leaves_token_above
		set_fence(C, tok[r]);
#endif
		skip
	:: K(r) == C ->
#ifndef WITHOUT_leaves_rvn
		rvn++;
#endif
		skip
	fi;
	if
	:: U(r) == 1 -> write_a(tok[r])
	:: U(r) == 2 -> write_b(tok[r])
	fi
}

/* The network, the server, and others. */
active proctype world() {
end:
	do
	:: atomic { ADMITTED(1) -> carry_out(1) }
	:: atomic { ADMITTED(2) -> carry_out(2) }
	:: atomic { ADMITTED(3) -> carry_out(3) }
	:: atomic { ADMITTED(4) -> carry_out(4) }
	:: atomic { !met -> met = 1 }
	/* a deadline passes: the holder is suspended, or dead */
	:: atomic { holds[1] && !gone[1] -> gone[1] = 1 }
	:: atomic { holds[2] && !gone[2] -> gone[2] = 1 }
	/* locks.acquisition.bury (wait.go) */
	:: atomic { unit[F] != 0 && gone[unit[F]] && !pending -> unit[F] = 0 }
	:: atomic { unit[C] != 0 && gone[unit[C]] -> unit[C] = 0 }
	/* locks.Client.clean (below.go): the witness is in the same transaction */
	:: atomic { below & 2 && unit[F] != 1 -> below = below & ~2 }
	:: atomic { below & 4 && unit[F] != 2 -> below = below & ~4 }
	/* unitofwork.Client.apply (apply.go), by anybody */
	:: atomic { pending && !applied -> assert(still_true || late || a == va[unit[F]]); write_a(token[unit[F]]); applied = 1 }
	:: atomic { pending && applied ->
		assert(still_true || late || b == vb[unit[F]]); write_b(token[unit[F]]);
		stamp[F] = unit[F]; holds[unit[F]] = 0; below = below & ~(1 << unit[F]); pending = 0; applied = 0; unit[F] = 0 }
	od
}

/* locks.acquisition.take (acquire.go): a key with its intent, in one transaction; the token is raised as far as it has to be */
inline take_locks() {
	atomic {
		unit[C] == 0 && (key[u] == C && below == 0 || key[u] == F && unit[F] == 0) ->
		assert(alone || NOBODY);
		token[u] = HIGHER(fence[C], fence[key[u]]) + 1;
		assert(in_order || token[u] > top);
		top = token[u];
		unit[key[u]] = u; set_fence(key[u], token[u]);
		if
		:: key[u] == F -> set_fence(C, token[u]); below = below | (1 << u)
		:: key[u] == C -> rvn++
		fi;
		holds[u] = 1; gone[u] = 0
	}
}
#define STILL(u) (unit[key[u]] == u && (key[u] == C || (below & (1 << u))))
inline set_free() { below = below & ~(1 << u); unit[key[u]] = 0; holds[u] = 0; gone[u] = 0 }

/* unitofwork.Client.begin (unit.go), and the commit */
inline with_locks() {
	take_locks();
	/* unitofwork.Unit.get (get.go) */
	atomic { va[u] = a; vb[u] = b; assert(one_state || gone[u] || !applied) }
	if
	:: atomic { STILL(u) -> /* unitofwork.Unit.write (commit.go), locks.Ending.Actions (ending.go) */
		assert(once || !landed[u]);
		assert(truth || told[u] != NO);
		assert(still_true || late || a == va[u] && b == vb[u]);
		landed[u] = 1; write_a(token[u]); write_b(token[u]); stamp[key[u]] = u; set_free();
		told[u] = YES }
	:: atomic { !STILL(u) -> holds[u] = 0; gone[u] = 0; told[u] = NO; assert(truth || !landed[u]) }
	:: atomic { holds[u] = 0; gone[u] = 1 } /* it dies */
	fi
}

proctype locker(byte u) {
	if
	:: with_locks()
	:: true -> /* a lock set writes by itself, by fencing.Fence.Put (dynamodb.go) */
		take_locks();
		if
		:: atomic { !gone[u] -> write_a(token[u]); write_b(token[u]) };
			if
			:: atomic { STILL(u) && !gone[u] -> a++; b++; set_free() } /* again, with the same token */
			:: atomic { gone[u] -> holds[u] = 0 }
			fi
		:: atomic { gone[u] -> holds[u] = 0 }
		:: atomic { gone[u] && sa <= token[u] && sb <= token[u] -> holds[u] = 0; a++; b++; sa = token[u]; sb = token[u]; late = 1 }
		fi
	:: key[u] == F -> /* unitofwork.Unit.commitByJournal (journaled.go): prepared and decided at once, applied by the world */
		take_locks();
		if
		:: atomic { STILL(u) -> va[u] = a; vb[u] = b; pending = 1 }
		:: atomic { !STILL(u) -> holds[u] = 0 }
		fi
	fi
}

#ifdef WITHOUT_seen_free
#define SEEN_FREE true
#else
#define SEEN_FREE (unit[C] == 0 && unit[key[u]] == 0)
#endif
#ifdef WITHOUT_seen_bare
#define SEEN_BARE true
#else
#define SEEN_BARE (key[u] == F || below == 0)
#endif
#ifdef WITHOUT_again
#define SEEN_SAME true
#else
#define SEEN_SAME (fence[key[u]] == f && (key[u] == C || rvn == v))
#endif

/* locks.Pass.Refused (pass.go), unitofwork.refusalBy (commit.go): by the rows that are named, which may be some of
   those that refuse. If none refuses, the writes do. */
inline refused() {
	if
	:: !KEY_OK(r) -> says = KEY_SAYS(r); t = HIGHER(t, fence[K(r)])
	:: !ABOVE_OK(r) -> says = ABOVE_SAYS(r); t = HIGHER(t, fence[C])
	:: !KEY_OK(r) && !ABOVE_OK(r) -> says = (KEY_SAYS(r) == ABOVE_SAYS(r) -> KEY_SAYS(r) : FINAL); t = HIGHER(t, HIGHER(fence[K(r)], fence[C]))
	:: KEY_OK(r) && ABOVE_OK(r) -> says = PASSING
	fi;
	if
	:: says == TOO_LOW && r == R(u, 1) -> says = 0; t++; r++; goto send /* raised, once */
	:: says == TOO_LOW && r != R(u, 1) || says == FINAL -> goto fall_back
	:: says == PASSING ->
#ifdef WITHOUT_lasting
		goto fall_back
#else
		says = 0
#endif
	fi
}

/* unitofwork.Unit.commitWithoutLocks (optimistic.go) and its run */
proctype run_of(byte u) {
	byte t, r = R(u, 1), f, v, says;

	if
	/* unitofwork.Unit.getWithoutLocks (optimistic.go): records and rows, as of one moment; footprint.Glance.Saw (footprint.go) */
	:: atomic { !blind[u] ->
		if
		:: SEEN_FREE && SEEN_BARE -> f = fence[key[u]]; v = rvn; va[u] = a; q[u] = sa
		:: else -> goto fall_back
		fi;
		t = HIGHER(fence[C], f) };
		atomic { /* the other record */
			if
			:: SEEN_SAME -> vb[u] = b; q[u] = (u == 1 -> q[u] : sb); assert(one_state || late || va[u] == a && !applied)
			:: else -> goto fall_back
			fi
		};
		if
		:: goto over /* it writes nothing: what it was told was one state */
		:: true
		fi
	:: blind[u]
	fi;
	/* tokens.Clock.Next (clock.go) */
	if
	:: t++
	:: u == 1 -> t = t + 2
	fi;
send:	/* unitofwork.Unit.send (commit.go) */
	atomic { sent[r] = 1; tok[r] = t; sf[r] = f; sr[r] = v };
	if
	/* answered: carried out, now, or a moment ago */
	:: atomic { landed[u] -> told[u] = YES; goto over }
	:: atomic { !landed[u] && ADMITTED(r) -> carry_out(r); told[u] = YES; goto over }
	/* answered: refused */
	:: atomic { !landed[u] && !ADMITTED(r) -> refused() }
	/* not answered, and sent again: carried out, or refused, for nothing is remembered */
	:: atomic { ADMITTED(r) -> carry_out(r); told[u] = YES; goto over }
	:: atomic { !ADMITTED(r) ->
#ifdef WITHOUT_first_sending
		refused();
#endif
		skip }
	:: skip /* never answered */
	fi;
#ifdef WITHOUT_burn
	goto fall_back;
#endif
	/* locks.Pass.Resolve, locks.Pass.burn (pass.go): on its key's row, whoever has that; then lockrow.FateOfPass (outcome.go) */
	atomic {
		if
		:: fence[key[u]] < tok[r] -> set_fence(key[u], tok[r])
		:: fence[key[u]] >= tok[r] ->
#ifndef WITHOUT_burn_refused
			if
			:: stamp[key[u]] == u -> told[u] = YES; assert(truth || landed[u]); goto over
			:: stamp[key[u]] != u && fence[key[u]] <= tok[r] /* it would have left its stamp */
			:: stamp[key[u]] != u && fence[key[u]] > tok[r] -> told[u] = DOUBT; goto over
			fi;
#endif
			skip
		:: told[u] = DOUBT; goto over /* no answer */
		fi
	};
	/* it was not carried out, and never will be. If a staged condition has refused it, that is told */
	if
	:: atomic { told[u] = NO; assert(truth || !landed[u]); goto over }
	:: true
	fi;
fall_back: /* unitofwork.Unit.fallBack (runs.go), unitofwork.runs.again (runs.go): once more, under locks */
	atomic { assert(once || !landed[u]); t = 0; f = 0; v = 0; r = 0; says = 0; va[u] = 0; vb[u] = 0 };
	with_locks();
over:
	atomic { t = 0; f = 0; v = 0; r = 0; says = 0 }
}

init {
	atomic {
		if :: met = 1 :: met = 0 fi;
		if :: key[1] = F :: key[1] = C fi;
		if :: key[2] = F :: key[2] = C fi;
		if :: blind[1] = 1 :: blind[1] = 0 fi;
		run run_of(1);
		if
		:: blind[2] = 1; run run_of(2)
		:: blind[2] = 0; run run_of(2)
		:: run locker(2)
		fi
	}
}
