/*
 * Applying a journal that was decided: among the owner, those who finish it for
 * him, and those who come after it.
 *
 * Modelled: unit U is committed, its rows are prepared. Its plan has two steps of one
 * family, c/1 (with the intent on c) and c/2, and three records: A under c/1, B1 and
 * B2 under c/2. The owner applies in reverse, in transactions of its own size; so do
 * workers, again and again, as waiting for a prepared row or as Recover; one cuts
 * transactions as the owner does, the other takes larger ones. An heir, again and
 * again, takes c/1, c/2, or c as a whole, as soon as it is free, may prepare it for a
 * journal of its own, writes or deletes what is below, and frees it. U's intent is
 * cleaned by anybody when it is stale.
 *
 * Requests: what was sent may be carried out at any time, any number of times, or
 * never; any answer may be lost. A refused transaction names some of the rows that
 * refuse it, or all. A worker may be suspended anywhere, for as long as anybody
 * likes, and go on, or die. At most two are at it at a time; a late copy of any
 * transaction does what a third would.
 *
 * Left out: what comes before the decision, and the journal's rows (journal.pml);
 * fences of lock rows (none is deleted, so whoever finds a step not U's finds it freed);
 * several families (each is a chain of its own); writers without locks, which make a
 * step stuck.
 *
 * When the owner has ended or died and nobody is at work, at any time, the network
 * falls silent for good, and one worker goes on without faults.
 *
 * Properties: each record is written once by U, and by nobody while another has its
 * lock; whoever takes a lock finds what U wrote below it, and U writes nothing there
 * later; nobody finds a record that cannot be written; nobody frees what is the
 * heir's; a free row is not prepared; what is noted as done is done. In the end
 * everything is written and free. No deadlock.
 */

/* pan: -DCOLLAPSE -DP_REVERSE */

/* property noted: what is noted as done is done */
/* property written: each record is written once by the unit, and never while another has its lock */
/* property own: everybody frees what is its own */
/* property complete: a step is freed when all is written below it */
/* property left_out: what is left out as done is done, and nobody finds a record that cannot be written */
/* property readable: whoever takes a lock finds what the unit wrote below it */
/* property unprepared: a free row is not prepared */
/* property whole: in the end everything is written and free */
/* clause NEWER: a write of a journal needs the record to have an older stamp | mutant: a write of a journal needs the record to have an older stamp | finds: written */
/* clause OWN_STAMP: a record with the unit's own stamp is done | mutant: a record with the unit's own stamp is done | finds: left_out */
/* clause GUARD: what is written before a step is freed needs the step | mutant: what is written before a step is freed needs the step | finds: written */
/* clause GUARD_MINE: what is written under a step needs the step to be the unit's | mutant: what is written under a step needs the step to be the unit's | finds: written */
/* clause STEP_OVER: a step that is not the unit's any more is done | mutant: a step that is not the unit's any more is done | finds: written */
/* clause REVERSE: a family is freed in reverse | mutant: a family is freed in reverse | finds: written */
/* clause IN_TURN: a family is freed one step after the other | mutant: a family is freed one step after the other | finds: written */
/* clause FREED_LAST: a step is freed with the last of its writes | mutant: a step is freed with the last of its writes ; the first half of a step does not free it | finds: complete */
/* clause FREED: the last writes of a step free it | mutant: the second half of a step frees it | finds: noted */
/* clause FREE_MINE: a step is freed only if it is the unit's | mutant: a release needs the row to be the unit's | finds: written */
/* clause FREE_UNPREPARES: a freed step is not prepared any more | mutant: a freed step is not prepared any more | finds: unprepared */

hidden byte noted, written, own, complete, left_out, readable, unprepared, whole; /* never set: they name what was violated */

#define ABSENT    0
#define COMMITTED 1
#define ABORTED   2
#define DONE      3

#define U    1 /* as a holder, and as a stamp */
#define HEIR 2

/* The actions of a transaction that applies, in bits. */
#define G2 1  /* check that c/2 is U's, and prepared: locks.Prepared.CheckHeld (prepared.go) */
#define B1 2
#define B2 4
#define F2 8  /* free c/2: locks.Prepared.Free (prepared.go), lockrow.Table.Releases (expressions.go) */
#define I  16 /* take U's intent off c */
#define F1 32 /* free c/1 */
#define A  64
#define OF2 15  /* all that is of c/2 */
#define OF1 112 /* all that is of c/1 */

/* Lock table. */
byte unitC, unit1 = U, unit2 = U;
bool entry = true; /* U's, on c; its witness is c/1 */
bool prepared1 = true, prepared2 = true;

/* Unit table. */
byte record = COMMITTED;

/* The caller's tables, and what has happened to them. */
byte stampA, stampB1, stampB2;
bool wroteA, wroteB1, wroteB2; /* by U */
bool heirA, heirB;     /* the heir was there */

/* What was sent. */
bool sentDone;
int sent0, sent1, sent2, sent3; /* transactions, a bit for each set of actions */

byte stage; /* 0: anything may happen; 1: the last worker; 2: the end */
byte working;
bool ended; /* the owner has */

/* journal.SetDone (decision.go) */
inline conclusion() {
	if
	:: record == COMMITTED -> assert(noted || (wroteA && wroteB1 && wroteB2 && unit1 != U && unit2 != U)); record = DONE
	:: else
	fi
}

/* actions.Stamper.OnlyNewer (stamp.go): the condition of a write of the journal */
#ifdef WITHOUT_NEWER
#define NEWER(stamp) true
#else
#define NEWER(stamp) (stamp < U)
#endif

#ifdef WITHOUT_GUARD
#define GUARDED true
#else
#ifdef WITHOUT_GUARD_MINE
#define GUARDED prepared2
#else
#define GUARDED (unit2 == U && prepared2)
#endif
#endif

#ifdef WITHOUT_FREE_MINE
#define MINE(unit) (unit != 0)
#else
#define MINE(unit) (unit == U)
#endif

#ifdef WITHOUT_FREE_UNPREPARES
#define UNPREPARE(row) skip
#else
#define UNPREPARE(row) row = false
#endif

inline write(stamp, wrote, heir, unit) {
	assert(written || (record == COMMITTED || record == DONE));
	assert(written || (!wrote && !heir && unit != HEIR && unitC != HEIR));
	stamp = U; wrote = true
}

/* One transaction: all of its actions, or none. FAILED are those whose condition does not hold. */
#define FAILED(actions) ((((actions & G2) && !GUARDED) -> G2 : 0) | \
	(((actions & B1) && !NEWER(stampB1)) -> B1 : 0) | \
	(((actions & B2) && !NEWER(stampB2)) -> B2 : 0) | \
	(((actions & F2) && !MINE(unit2)) -> F2 : 0) | \
	(((actions & I) && !entry) -> I : 0) | \
	(((actions & F1) && !MINE(unit1)) -> F1 : 0) | \
	(((actions & A) && !NEWER(stampA)) -> A : 0))

inline transact(actions, failed) {
	d_step {
	failed = FAILED(actions);
	if
	:: failed == 0 ->
		if
		:: actions & B1 -> write(stampB1, wroteB1, heirB, unit2)
		:: else
		fi;
		if
		:: actions & B2 -> write(stampB2, wroteB2, heirB, unit2)
		:: else
		fi;
		if
		:: actions & A -> write(stampA, wroteA, heirA, unit1)
		:: else
		fi;
		if
		:: actions & F2 -> assert(own || unit2 == U); unit2 = 0; UNPREPARE(prepared2);
			assert(complete || (record != COMMITTED || (wroteB1 && wroteB2)))
		:: else
		fi;
		if
		:: actions & F1 -> assert(own || unit1 == U); unit1 = 0; UNPREPARE(prepared1);
			assert(complete || (record != COMMITTED || wroteA))
		:: else
		fi;
		if
		:: actions & I -> entry = false
		:: else
		fi
	:: else
	fi }
}

/* Every set of actions that anybody sends has its copies; see the network. */
inline send(actions) {
	d_step {
	assert(actions == 1 || actions == 2 || actions == 3 || actions == 4 || actions == 5 || actions == 6 || actions == 8 ||
		actions == 10 || actions == 12 || actions == 14 || actions == 16 || actions == 24 || actions == 32 || actions == 40 ||
		actions == 48 || actions == 56 || actions == 64 || actions == 80 || actions == 96 || actions == 112);
	if
	:: actions < 32 -> sent0 = sent0 | (1 << actions)
	:: actions >= 32 && actions < 64 -> sent1 = sent1 | (1 << (actions - 32))
	:: actions >= 64 && actions < 96 -> sent2 = sent2 | (1 << (actions - 64))
	:: actions >= 96 -> sent3 = sent3 | (1 << (actions - 96))
	fi }
}

#define SENT(actions) ((actions < 32 -> sent0 >> actions : (actions < 64 -> sent1 >> (actions - 32) : \
	(actions < 96 -> sent2 >> (actions - 64) : sent3 >> (actions - 96)))) & 1)

/* A copy that is refused changes nothing. */
#define COPY(actions) :: atomic { stage == 0 && SENT(actions) && FAILED(actions) == 0 -> transact(actions, failed) }

/* Copies of what was sent: late, or once more; and anybody's cleaning. */
active proctype network() {
	byte failed;
end:
	do
	:: atomic { stage == 0 && sentDone -> conclusion() }
	COPY(2)
	COPY(3)
	COPY(4)
	COPY(5)
	COPY(6)
	COPY(8)
	COPY(10)
	COPY(12)
	COPY(14)
	COPY(16)
	COPY(32)
	COPY(48)
	COPY(64)
	COPY(80)
	COPY(96)
	COPY(112)
	/* lockrow.Table.Clean (expressions.go) */
	:: atomic { stage == 0 && entry && unit1 != U -> entry = false }
	od
}

/* The parts of an application by journal.Journal.Batches (batches.go): large or as the owner's. */
inline cut(large, part, actions) {
#ifdef WITHOUT_REVERSE
	if
	:: part == 0 -> actions = I | F1 | A
	:: part == 1 && large -> actions = B1 | B2 | F2
	:: part == 1 && !large -> actions = G2 | B1
	:: part == 2 && !large -> actions = B2 | F2
	:: else -> actions = 0
	fi
#else
	if
	:: part == 0 && large -> actions = B1 | B2 | F2
#ifdef WITHOUT_FREED_LAST
	:: part == 0 && !large -> actions = B1 | F2
#else
	:: part == 0 && !large -> actions = G2 | B1
#endif
#ifdef WITHOUT_FREED
	:: part == 1 && !large -> actions = G2 | B2
#else
	:: part == 1 && !large -> actions = B2 | F2
#endif
	:: part == (large -> 1 : 2) -> actions = I | F1 | A
	:: else -> actions = 0
	fi
#endif
}

/*
 * unitofwork.application.rest (apply.go): what is left after a refusal that named
 * some of those that failed. A worker that finds U's step not U's any more finds it freed
 * by locks.Prepared.HoldOf (prepared.go).
 */
inline rest(actions, failed) {
	/* DynamoDB names all that refused, or some */
	if
	:: failed = failed & (-failed)
	:: skip
	fi;
	actions = actions & ~failed;
	if
	:: failed & (G2 | F2) -> assert(left_out || unit2 != U);
#ifndef WITHOUT_STEP_OVER
		actions = actions & ~OF2
#endif
	:: else
	fi;
	if
	:: failed & F1 -> assert(left_out || unit1 != U);
#ifndef WITHOUT_STEP_OVER
		actions = actions & ~OF1
#endif
	:: else
	fi;
	/* unitofwork.application.meets (apply.go) */
#ifdef WITHOUT_OWN_STAMP
#define OWN(stamp) false
#else
#define OWN(stamp) (stamp == U)
#endif
	if
	:: ((failed & B1) && !OWN(stampB1)) || ((failed & B2) && !OWN(stampB2)) ->
		assert(left_out || unit2 != U); /* or it is stuck: UnappliedError */
		actions = actions & ~OF2
	:: else
	fi;
	if
	:: (failed & A) && !OWN(stampA) -> assert(left_out || unit1 != U); actions = actions & ~OF1
	:: else
	fi;
	failed = 0
}

/* unitofwork.application.doAll, unitofwork.application.do (apply.go); to out if there is no answer, or its process dies */
#ifdef WITHOUT_IN_TURN
#define NEXT(part, large) part = part + 1; send(I | F1 | A)
#else
#define NEXT(part, large) part = part + 1
#endif
#define APPLY(large, part, actions, failed, out) \
	part = 0; \
	do \
	:: atomic { cut(large, part, actions); \
		if \
		:: actions == 0 -> break \
		:: else \
		fi } \
		do \
		:: atomic { actions != 0 -> send(actions); \
			if \
			:: transact(actions, failed); \
				if \
				:: failed == 0 -> actions = 0 \
				:: else -> rest(actions, failed) \
				fi \
			:: stage == 0 -> goto out \
			fi } \
		:: atomic { actions == 0 -> NEXT(part, large); break } \
		od \
	od

/* unitofwork.Unit.carryOut (journaled.go), unitofwork.Client.finish (rollforward.go) */
active proctype owner() {
	byte part, actions, failed;

	APPLY(false, part, actions, failed, over);
	atomic { sentDone = true;
		if
		:: conclusion()
		:: skip
		fi };
over: /* done, without an answer, or dead */
	atomic { part = 0; actions = 0; failed = 0; ended = true }
}

/* unitofwork.Client.rollForward (rollforward.go): again and again; suspended for ever is dead, and another begins */
proctype worker(byte self) {
	byte part, actions, failed; bool busy;
idle:
	atomic { working = working - busy; busy = false; part = 0; actions = 0; failed = 0 };
	if
	:: atomic { stage == 0 && (self == 0 || ended) && record == COMMITTED -> working++; busy = true }
	:: atomic { stage == 1 && self == 0 && record == COMMITTED }
	:: atomic { stage == 1 && self == 0 && record == DONE -> stage = 2; goto out }
	:: atomic { stage != 0 && self != 0 -> goto out }
	fi;
	APPLY(self == 0, part, actions, failed, idle);
	atomic { sentDone = true;
		if
		:: conclusion()
		:: stage == 0
		fi };
	goto idle;
out:
	skip
}

/* The units that come after U: takes, may prepare, writes, frees; again and again. */
active proctype heir() {
	byte what; /* OF1: c/1, OF2: c/2, both: c */
end:
	do
	/* locks.acquisition.take (acquire.go), lockrow.takeIf, lockrow.intendIf (expressions.go) */
	:: atomic { stage == 0 && unitC == 0 && unit1 == 0 -> unit1 = HEIR; what = OF1 }
	:: atomic { stage == 0 && unitC == 0 && unit2 == 0 -> unit2 = HEIR; what = OF2 }
	:: atomic { stage == 0 && unitC == 0 && !entry -> unitC = HEIR; what = OF1 | OF2 }
	:: atomic { what != 0 ->
		/* what it reads */
		assert(readable || (!(what & A) || wroteA));
		assert(readable || (!(what & B1) || (wroteB1 && wroteB2)));
		/* a journal of its own */
		if
		:: what == OF1 -> assert(unprepared || !prepared1); prepared1 = true
		:: what == OF2 -> assert(unprepared || !prepared2); prepared2 = true
		:: skip
		fi;
		/* it writes, or deletes: then there is no stamp */
		if
		:: what & A -> heirA = true;
			if
			:: stampA = HEIR
			:: stampA = 0
			fi
		:: else
		fi;
		if
		:: what & B1 -> heirB = true;
			if
			:: stampB1 = HEIR; stampB2 = HEIR
			:: stampB1 = 0; stampB2 = 0
			fi
		:: else
		fi }
		/* and frees */
		atomic {
			if
			:: what == OF1 -> assert(own || unit1 == HEIR); unit1 = 0; prepared1 = false
			:: what == OF2 -> assert(own || unit2 == HEIR); unit2 = 0; prepared2 = false
			:: else -> assert(own || unitC == HEIR); unitC = 0
			fi;
			what = 0 }
	od
}

active proctype last() {
	atomic { ended && working == 0 -> stage = 1 };
	atomic { stage == 2 -> assert(whole || (wroteA && wroteB1 && wroteB2 && unit1 != U && unit2 != U)) }
}

init {
	atomic { run worker(0); run worker(1) }
}
