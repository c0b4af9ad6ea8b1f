/*
 * Units without locks that have read what they do not write: a row under whose key nothing is written
 * is checked, not passed, so that units that only read there do not refuse each other.
 *
 * Modelled: two rows, c/x and y, each with a record, and the row of c. Unit 1 reads both records and writes y's, or only commits
 * an ID; unit 2 reads both and writes that of c/x. Beside them a lock set, which takes a row, writes a record that it covers, and commits
 * or releases, twice.
 * Copies of every commit without locks, for ever; answers that are lost; a staged condition that does not hold yet. A unit whose
 * commit can never be carried out goes on under locks, or is told so; one that knows nothing asks later.
 *
 * Assumed: as in optimistic.pml, the answer to a request that was sent once is true of that request.
 *
 * Left out: blind keys, and keys that are found on the way (found.pml); the same request sent once more, which is asked when the rows do not tell (optimistic_told.pml).
 *
 * Size: 3 rows, 2 records, 1 ID, 2 units, 1 lock set; tokens up to 9.
 */
/* property still_true: what a unit has read is true when it commits */
/* property in_order: a unit that has read or overwritten what another wrote has the higher token, and no fence falls */
/* property once: a unit commits once, however often its requests arrive, and with locks or without */
/* property truth: a unit that is told that it committed did, and one that is told that it did not never does */
/* clause check: a commit needs a row that it does not pass to be as it was seen | mutant: a commit without locks checks the row of a key under which it writes nothing ; a fence that has risen is not the one that a commit without locks has seen | finds: still_true */
/* clause check_above: it needs the RVN of a row above that it does not pass to be as it was seen | mutant: a commit without locks needs each row above its keys to have the RVN that it was seen with | finds: still_true */
/* clause pass_same: a commit needs a row that it passes to be as it was seen | mutant: a commit without locks needs each key's row to have the fence that it was seen with | finds: still_true */
/* clause pass_written: a commit passes the row of the key under which it writes | mutant: a commit without locks passes the row of a key under which it writes | finds: still_true */
/* clause newer: its token is above the fences of all rows that it has seen, those that it only checks, too | mutant: - | finds: in_order */
/* clause burn_passed: the token is burned on a row that the commit passes | mutant: a commit without locks makes its token unusable on a row that it passes | finds: truth */
/* clause told_by_passed: only rows that the commit passes say that it was not carried out | mutant: only rows that a commit without locks passes say what became of it | finds: truth */
/* clause asked_by_passed: who asks later asks by a row that the commit passes | mutant: a commit without locks makes its token unusable on a row that it passes | finds: truth */
/* clause stop: a commit of an ID alone is stopped, at a row that it checks, before its record is looked for | mutant: a commit that passes no row is made impossible before the record of its id is looked for | finds: truth */
/* clause stop_tells_nothing: that it was stopped does not say that it was not carried out before | mutant: that a commit of an id alone was stopped does not say that it was not carried out before | finds: truth */
/* pan: -DCOLLAPSE */

#define X 0
#define Y 1
#define C 2 /* above X */
#define MOST 9

hidden byte still_true, in_order, once, truth; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
bit held[3];
byte fence[3], stamp[2];
byte rvn;           /* of c: counts those who had it as a key */
byte rec[2], by[2]; /* the records: how often each was written, and with which token last */
byte record;        /* of the ID: whose */
bit only_id;        /* unit 1 writes nothing else */
bit met;            /* the condition that unit 1 has staged holds */

bit sent[3], landed[3];
byte told[3], tok[3];
byte fx[3], fy[3], rc[3], vx[3], vy[3]; /* fences, the RVN and records as they were seen */
#define YES 1
#define NO 2
#define DOUBT 3

#define HIGHER(p, q) ((p) > (q) -> (p) : (q))
#define CHECKED(u) (u == 1 -> X : Y)
#define PASSED(u) (u == 1 -> Y : X)
#define ID_ONLY(u) (u == 1 && only_id)
#define SEEN(u, r) (r == X -> fx[u] : fy[u])

/* lockrow.Table.Pass (pass.go) */
#ifdef WITHOUT_check
#define CHECK_SAME(u, r) true
#else
#define CHECK_SAME(u, r) (fence[r] == SEEN(u, r))
#endif
#ifdef WITHOUT_pass_same
#define PASS_SAME(u, r) (fence[r] < tok[u])
#else
#define PASS_SAME(u, r) (fence[r] == SEEN(u, r))
#endif
#ifdef WITHOUT_check_above
#define RVN_SAME(u) (u == 1 || rvn == rc[u])
#else
#define RVN_SAME(u) (rvn == rc[u])
#endif
#define FREE (!held[X] && !held[Y] && !held[C])
#define ABOVE_OK(u) (RVN_SAME(u) && (u == 1 || fence[C] < tok[u]))
#define SAME(u) (CHECK_SAME(u, CHECKED(u)) && (ID_ONLY(u) -> CHECK_SAME(u, Y) : PASS_SAME(u, PASSED(u))))
#define ADMITTED(u) (sent[u] && FREE && SAME(u) && ABOVE_OK(u) && (u != 1 || met) && (!ID_ONLY(u) || record == 0))

inline set_fence(r, n) { assert(in_order || n >= fence[r]); fence[r] = n }
inline write_record(r, n) { rec[r]++; by[r] = n }

/* unitofwork.Unit.write (commit.go): one transaction, locks.Pass.Actions (pass.go) and the writes */
inline carry_out(u) {
	assert(once || !landed[u]);
	assert(truth || told[u] != NO);
	assert(still_true || rec[X] == vx[u] && rec[Y] == vy[u]);
	assert(in_order || tok[u] > by[X] && tok[u] > by[Y]);
	landed[u] = 1;
	if
	:: ID_ONLY(u) -> record = u
	:: else ->
		write_record(PASSED(u), tok[u]);
#ifndef WITHOUT_pass_written
		set_fence(PASSED(u), tok[u]); stamp[PASSED(u)] = u;
#endif
		if
		:: PASSED(u) == X -> set_fence(C, tok[u])
		:: else
		fi
	fi
}

active proctype world() {
end:
	do
	:: atomic { ADMITTED(1) -> carry_out(1) }
	:: atomic { ADMITTED(2) -> carry_out(2) }
	:: atomic { !met -> met = 1 }
	od
}

/* locks.acquisition.take (acquire.go), and the commit or the release */
active proctype lock_set() {
	byte r, n, t;
	do
	:: n < 2 ->
		n++;
		if :: r = X :: r = Y :: r = C fi;
		if
		:: atomic { !held[r] && (r == Y || !held[X] && !held[C]) && fence[r] + 2 <= MOST -> /* bare, and nothing above is held */
			t = (r == X -> HIGHER(fence[X], fence[C]) : fence[r]) + 1;
			held[r] = 1; set_fence(r, t);
			if
			:: r == X -> set_fence(C, t)
			:: r == C -> rvn++
			:: r == Y
			fi };
			if
			:: atomic { write_record((r == C -> X : r), t); held[r] = 0; t = 0;
				if
				:: r != C -> stamp[r] = 3
				:: else
				fi }
			:: atomic { held[r] = 0; t = 0 }
			fi
		:: true
		fi
	:: break
	od;
	r = 0; n = 0
}

inline tell(u, what) {
	told[u] = what;
	assert(truth || what != YES || landed[u]);
	assert(truth || what != NO || !landed[u])
}

#ifdef WITHOUT_burn_passed
#define BURNED(u) CHECKED(u)
#else
#define BURNED(u) (ID_ONLY(u) -> X : PASSED(u))
#endif
#ifdef WITHOUT_asked_by_passed
#define ASKED(u) CHECKED(u)
#else
#define ASKED(u) PASSED(u)
#endif
#ifdef WITHOUT_told_by_passed
#define SAYS_NEVER(u) (fence[PASSED(u)] <= tok[u] || fence[CHECKED(u)] <= tok[u])
#else
#define SAYS_NEVER(u) (fence[PASSED(u)] <= tok[u])
#endif

/* unitofwork.Unit.commitWithoutLocks (optimistic.go) and its run */
proctype run_of(byte u) {
	byte t;

	/* unitofwork.Unit.getWithoutLocks (optimistic.go) */
	if
	:: atomic { FREE -> fx[u] = fence[X]; fy[u] = fence[Y]; rc[u] = rvn; t = fence[C]; vx[u] = rec[X]; vy[u] = rec[Y] }
	:: goto fall_back
	fi;
	/* tokens.Clock.Next (clock.go) */
#ifdef WITHOUT_newer
	tok[u] = SEEN(u, PASSED(u)) + 1; /* not above c's: unit 2 passes that, and would be refused */
#else
	tok[u] = HIGHER(t, HIGHER(fx[u], fy[u])) + 1;
#endif
	if
	:: u == 1 -> tok[u] = tok[u] + 1
	:: true
	fi;
	t = 0;
	sent[u] = 1; /* unitofwork.Unit.send (commit.go) */
	if
	/* answered: carried out, now, or a moment ago */
	:: atomic { landed[u] -> tell(u, YES); goto over }
	:: atomic { !landed[u] && ADMITTED(u) -> carry_out(u); tell(u, YES); goto over }
	/* answered: refused for ever. locks.Pass.Refused (pass.go), lockrow.Need.Refuses (pass.go) */
	:: atomic { !landed[u] && (!SAME(u) || !RVN_SAME(u)) -> goto fall_back }
	:: atomic { !landed[u] && !ADMITTED(u) } /* refused by what may pass */
	/* not answered, and sent again: carried out, or not */
	:: atomic { ADMITTED(u) -> carry_out(u); tell(u, YES); goto over }
	:: skip
	fi;
	if
	:: goto unknown /* nothing is answered */
	:: true
	fi;
	if
	/* locks.Pass.stop (pass.go), unitofwork.Unit.raceForID (commit.go) */
	:: ID_ONLY(u) ->
#ifndef WITHOUT_stop
		atomic {
			if
			:: fence[BURNED(u)] < tok[u] -> set_fence(BURNED(u), tok[u]);
#ifdef WITHOUT_stop_tells_nothing
				goto not_done
#endif
			:: else
			fi
		};
#endif
		atomic {
			if
			:: record == u -> tell(u, YES); goto over
			:: else -> goto not_done
			fi
		}
	/* locks.Pass.Resolve, locks.Pass.burn (pass.go) */
	:: !ID_ONLY(u) ->
		atomic {
			if
			:: fence[BURNED(u)] < tok[u] -> set_fence(BURNED(u), tok[u]); goto not_done
			:: else
			fi
		};
		atomic { /* lockrow.FateOfPass (outcome.go) */
			if
			:: stamp[PASSED(u)] == u -> tell(u, YES); goto over
			:: stamp[PASSED(u)] != u && SAYS_NEVER(u) -> goto not_done
			:: else
			fi
		}
	fi;
unknown:
	tell(u, DOUBT);
	/* unitofwork.Client.Outcome (outcome.go), as often as it is asked: by an ID, or by a row; lockrow.FateOfOpen (outcome.go) */
	do
	:: atomic { told[u] == DOUBT ->
		if
		:: ID_ONLY(u) && record == u -> tell(u, YES)
		:: !ID_ONLY(u) && stamp[ASKED(u)] == u -> tell(u, YES)
		:: !ID_ONLY(u) && stamp[ASKED(u)] != u && fence[ASKED(u)] == tok[u] -> tell(u, NO)
		:: else
		fi }
	:: goto over
	od;
not_done: /* it was not carried out, and never will be: that is told, if a staged condition has refused it */
	if
	:: atomic { tell(u, NO); goto over }
	:: true
	fi;
fall_back: /* unitofwork.Unit.giveWay (runs.go): once more, under locks */
	if
	:: atomic { FREE && HIGHER(fence[C], HIGHER(fence[X], fence[Y])) < MOST && (!ID_ONLY(u) || record == 0) ->
		assert(once || !landed[u]);
		landed[u] = 1;
		t = HIGHER(fence[C], HIGHER(fence[X], fence[Y])) + 1;
		set_fence(C, t); set_fence(X, t); set_fence(Y, t); stamp[X] = u; stamp[Y] = u;
		if
		:: ID_ONLY(u) -> record = u
		:: else -> write_record(PASSED(u), t)
		fi;
		t = 0;
		tell(u, YES) }
	:: true /* it dies */
	fi;
over:
	skip
}

init {
	atomic {
		if :: only_id = 1 :: only_id = 0 fi;
		if :: met = 1 :: met = 0 fi;
		run run_of(1);
		run run_of(2)
	}
}
