/*
 * A unit that is larger than one transaction, from its journal to its end, among
 * those who finish it and those who come after it.
 *
 * Modelled: unit U with a plan of two steps of one family, c/1 (with the intent on
 * c) and c/2. Its owner writes the journal (two rows; the first with the entry of
 * open units), prepares, decides, applies, notes that all is done, and removes the
 * journal, then the entry. Workers, again and again, wait for a prepared row,
 * or Recover. An heir, again and again, takes c/1, c/2, or c as a whole, as soon as it
 * is free, and frees it. Anybody buries U's rows before they are prepared, and cleans
 * U's intent when it is stale, at any time. Before U prepares, somebody may delete the
 * row of c by hand.
 *
 * Requests: what was sent may be carried out at any time, any number of times, or
 * never; any answer may be lost. A refused transaction names some of the rows that
 * refuse it, or all. An owner or a worker may be suspended anywhere, for as long as
 * anybody likes, and go on, or die. Anybody may count U as dead, and abort it, at any
 * time, so no clock is needed for what is claimed here. At most two are at work at a
 * time; a late copy of any request does what a third would.
 *
 * Left out: the ID, and a caller in doubt who asks (decide.pml); what is written under a step,
 * which is one transaction here (apply.pml); fences of rows (no row is deleted after
 * it was prepared, so whoever finds a step not U's finds it freed); the end of rows and
 * records (it is later than all copies).
 *
 * When the owner has ended or died and nobody is at work, at any time, the network
 * falls silent for good, one Recover runs without faults, then one waiter.
 *
 * Properties: U's writes happen once if it is committed, never if not; who takes a
 * lock finds what U wrote below it, if U is committed; the decision never changes,
 * and needs all of U's locks, prepared; the owner is told the truth, for ever; nobody
 * meets a journal that is missing; nobody frees what is the heir's, or prepares it; a
 * free row has no prepare. In the end nothing of U is prepared, U is applied to its end or
 * not at all, and neither the entry nor the row written with it is left (later rows
 * of a journal may be, from late copies). No deadlock.
 *
 * What is allowed ("leaked"; without LEAK_ALLOWED Spin shows a way there): prepared rows
 * that Recover does not find, but units that wait for them do. An owner that is suspended
 * before its journal is whole is aborted by Recover, which cannot read from such a
 * journal what to free; the owner goes on, prepares, and dies.
 */
/* pan: -DCOLLAPSE -DT_REVERSE */

/* property settled: a decision is made once, with all the locks, prepared, and contradicts nothing that was told */
/* property noted: what is noted as done is done */
/* property own: everybody prepares and frees what is its own */
/* property undone: a row is freed without what was to be written below it only if the unit is not committed */
/* property once: what is written below a row is written once, when the unit is committed */
/* property below: whoever takes a lock finds what a committed unit wrote below it */
/* property unprepared: a free row is not prepared */
/* property there: nobody meets a journal that is missing */
/* property findable: Recover finds every unit with prepared rows, and leaves no entry and no first row */
/* property finished: in the end nothing is prepared, and the unit is applied to its end or not at all */
/* property truth: what the owner is told is true for ever */
/* clause MARK_MINE: only what is the unit's is prepared | mutant: only what is the unit's is prepared | finds: own */
/* clause PREPARE_INTENT: preparing needs the intents | mutant: preparing needs the intents | finds: settled */
/* clause PREPARE_ALL: a unit decides when all its steps are prepared | mutant: - | finds: settled */
/* clause BURY_UNMARKED: a bury needs a row without a journal | mutant: a bury needs a row without a journal | finds: settled */
/* clause JUDGE_SETTLE: a silent holder with a journal is settled, not buried | mutant: a silent holder with a journal is not buried for its silence | finds: finished */
/* clause FREE_UNPREPARES: a freed row is not prepared any more | mutant: a freed step is not prepared any more | finds: unprepared */
/* clause COMMIT_IF_ABSENT: a unit is committed only if nobody aborted it | mutant: a unit is committed only if nobody aborted it | finds: settled */
/* clause ABORT_IF_ABSENT: a unit is aborted only if it has not committed | mutant: a unit is aborted only if it has not committed | finds: settled */
/* clause RACE: a decision that is not known to be made is raced with an abort | mutant: a decision that is not known to be made is raced with an abort | finds: settled */
/* clause REFUSED_PROVES: an abort that was refused shows what was decided | mutant: an abort that was refused proves that the unit has committed | finds: truth */
/* clause FREE_PREPARED: a unit that was refused frees what it prepared | mutant: a unit that was refused by a record frees what it prepared | finds: findable */
/* clause REMOVE_DONE: a journal is removed only when its record says done | mutant: a journal is removed only when its record says done | finds: there */
/* clause ENTRY: a unit with a journal can be found | mutant: a unit with a journal can be found | finds: findable */
/* clause ENTRY_LAST: the entry by which a unit is found goes last | mutant: the entry by which a unit is found goes last | finds: findable */
/* clause ENTRY_AFTER: an entry goes after the row that was written with it | mutant: an entry goes after the row that was written with it | finds: findable */
/* clause PURGE: what is left of a journal is removed | mutant: what is left of a journal is removed | finds: findable */
/* clause GONE_DONE: a journal that is gone may be done | mutant: a journal that is gone may be done | finds: there */
/* clause SWEEP: Recover frees what an aborted unit has | mutant: Recover frees what an aborted unit has | finds: findable */
/* clause FREE_AT_ONCE: what an aborted unit had is freed at once | mutant: what an aborted unit had is freed at once | finds: finished */
/* clause FREE_MINE: a release, and the freeing of an aborted unit's row, need the row to be the unit's | mutant: a release needs the row to be the unit's ; of an aborted unit only what is still its own is freed | finds: own */
/* clause KEEP: the journal of a unit that may have prepared rows stays | mutant: the journal of a unit that may have prepared rows stays ; the journal of a unit whose decision was refused stays while its rows may be prepared | finds: findable */
/* clause LEAK_ALLOWED: Recover may miss the rows of a unit that it aborted before the journal was whole, and that prepared them then | mutant: - | finds: findable */
/* clause RECORD_STAYS: a record has no end while anything is left to be done | mutant: a record has no end while anything is left to be done | finds: finished */
/* clause MARK_STAYS: a prepared row does not expire | mutant: a prepared row does not expire | finds: settled */

hidden byte settled, noted, own, undone, once, below, unprepared, there, findable, finished, truth; /* never set: they name what was violated */

#define ABSENT    0
#define COMMITTED 1
#define ABORTED   2
#define DONE      3

#define U    1 /* as a holder, and as a stamp */
#define HEIR 2

/* Steps, in bits. */
#define S1 1
#define S2 2

/* Lock table. */
byte unitC, unit1 = U, unit2 = U;
bool entry = true; /* U's, on c; its witness is c/1 */
bool prepared1, prepared2;

/* Unit table. */
byte record;
bool row0, row1, open;

/* What U has written, with the steps that it freed. */
bool wrote1, wrote2;

/* What was sent. */
bool sentRow0, sentRow1, sentPrepares, sentDecision, sentRelease, sentDone, sentForget;

byte told; /* the owner: 0, COMMITTED or ABORTED */
bool leaked; /* see above */
byte stage; /* 0: anything may happen; 1: the last Recover; 2: the last waiter; 3: the end */
byte working;
bool ended; /* the owner has */

inline put(state) {
	assert(settled || (record == ABSENT || (record == COMMITTED && state == DONE)));
	assert(settled || (state != COMMITTED || (unit1 == U && unit2 == U && prepared1 && prepared2 && entry && told != ABORTED)));
	assert(noted || (state != DONE || (wrote1 && wrote2 && unit1 != U && unit2 != U)));
	assert(settled || (state != ABORTED || told != COMMITTED));
	record = state
}

/* journal.PutCommitted (decision.go) */
inline decision(ok) {
	ok = false;
	if
#ifdef WITHOUT_COMMIT_IF_ABSENT
	:: put(COMMITTED); ok = true
#else
	:: record == ABSENT -> put(COMMITTED); ok = true
	:: else
#endif
	fi
}

/* journal.PutAborted (decision.go) */
inline abort(found) {
	found = record;
	if
#ifdef WITHOUT_ABORT_IF_ABSENT
	:: put(ABORTED); found = ABORTED
#else
	:: record == ABSENT -> put(ABORTED); found = ABORTED
	:: else
#endif
	fi
}

/* journal.SetDone (decision.go) */
inline conclusion() {
	if
	:: record == COMMITTED -> put(DONE)
	:: else
	fi
}

/* lockrow.Table.Prepare (expressions.go): a transaction for each step */
inline prepare1(ok) {
	ok = false;
	if
#ifdef WITHOUT_MARK_MINE
	:: entry -> ok = true
#else
#ifdef WITHOUT_PREPARE_INTENT
	:: unit1 == U -> ok = true
#else
	:: unit1 == U && entry -> ok = true
#endif
#endif
	:: else
	fi;
	if
	:: ok -> assert(own || unit1 == U); prepared1 = true
	:: else
	fi
}

inline prepare2(ok) {
	ok = false;
	if
#ifdef WITHOUT_MARK_MINE
	:: ok = true
#else
	:: unit2 == U -> ok = true
	:: else
#endif
	fi;
	if
	:: ok -> assert(own || unit2 == U); prepared2 = true
	:: else
	fi
}

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

inline free1() { assert(own || unit1 == U); unit1 = 0; UNPREPARE(prepared1) }
inline free2() { assert(own || unit2 == U); unit2 = 0; UNPREPARE(prepared2) }

/*
 * lockrow.Table.Releases (expressions.go), locks.without (release.go): what is
 * not U's any more is left out of the next try, and never will be, so that what is
 * U's is freed in one step in the end.
 */
inline release2() {
	if
	:: MINE(unit2) -> assert(undone || (record == ABSENT || record == ABORTED)); free2()
	:: else
	fi
}

inline release1() {
	if
	:: MINE(unit1) -> assert(undone || (record == ABSENT || record == ABORTED)); free1()
	:: else
	fi
}

/* unitofwork.application.do (apply.go): a step's writes, and the step, if it is U's; else it is done */
inline apply2() {
	if
	:: MINE(unit2) -> assert(once || (record == COMMITTED && !wrote2)); free2(); wrote2 = true
	:: else
	fi
}

inline apply1() {
	if
	:: MINE(unit1) -> assert(once || (record == COMMITTED && !wrote1 && wrote2)); free1(); wrote1 = true; entry = false
	:: else
	fi
}

inline writeRow0() {
	row0 = true;
#ifndef WITHOUT_ENTRY
	open = true
#endif
}

/* journal.RemoveEntry (decision.go) */
inline closing(ok) {
#ifdef WITHOUT_ENTRY_AFTER
	ok = true;
#else
	ok = !row0;
#endif
	if
	:: ok -> open = false
	:: else
	fi
}

/* Copies of what was sent: late, or once more; and anybody's burials and cleanings. */
active proctype network() {
	bool ok; byte found;
end:
	do
	:: atomic { stage == 0 && sentRow0 && !(row0 && open) -> writeRow0() }
	:: atomic { stage == 0 && sentRow1 && !row1 -> row1 = true }
	:: atomic { stage == 0 && sentPrepares && !prepared1 -> prepare1(ok); ok = false }
	:: atomic { stage == 0 && sentPrepares && !prepared2 -> prepare2(ok); ok = false }
	:: atomic { stage == 0 && sentDecision -> decision(ok); ok = false }
	:: atomic { stage == 0 && record == ABSENT -> abort(found); found = 0 } /* somebody's, at any time */
	:: atomic { stage == 0 && sentDone -> conclusion() }
	:: atomic { stage == 0 && sentForget && row0 -> row0 = false }
	:: atomic { stage == 0 && sentForget && row1 -> row1 = false }
	:: atomic { stage == 0 && sentForget && open -> closing(ok); ok = false }
	/* of a release, as whole as its tries; of an application */
	:: atomic { stage == 0 && sentRelease -> release2() }
	:: atomic { stage == 0 && sentRelease && entry -> release1(); entry = false }
	:: atomic { stage == 0 && (record == COMMITTED || record == DONE) -> apply2() }
	:: atomic { stage == 0 && (record == COMMITTED || record == DONE) && wrote2 -> apply1() }

	/* locks.acquisition.bury (wait.go), lockrow.BuryIf (expressions.go) */
#ifdef WITHOUT_BURY_UNMARKED
	:: atomic { stage == 0 && unit1 == U -> unit1 = 0; prepared1 = false }
	:: atomic { stage == 0 && unit2 == U -> unit2 = 0; prepared2 = false }
#else
	:: atomic { stage == 0 && unit1 == U && !prepared1 -> unit1 = 0 }
	:: atomic { stage == 0 && unit2 == U && !prepared2 -> unit2 = 0 }
#endif
	/* lockrow.Table.Clean (expressions.go) */
	:: atomic { stage == 0 && entry && unit1 != U -> entry = false }

	/* Somebody deletes the row of c by hand. */
	:: atomic { stage == 0 && entry && !sentPrepares && unitC == 0 -> entry = false }
#ifdef WITHOUT_RECORD_STAYS
	:: atomic { stage == 0 && record == COMMITTED -> record = ABSENT }
#endif
#ifdef WITHOUT_MARK_STAYS
	:: atomic { stage == 0 && prepared1 -> unit1 = 0; prepared1 = false }
#endif
	od
}

/* unitofwork.application.doAll (apply.go): in reverse; to out if there is no answer, or its process dies */
#define APPLY(out) \
	atomic { \
		if \
		:: apply2() \
		:: stage == 0 -> goto out \
		fi }; \
	atomic { \
		if \
		:: apply1() \
		:: stage == 0 -> goto out \
		fi }

/* locks.Client.release, locks.Client.releaseChunk (release.go) */
#define RELEASE(out) \
	atomic { sentRelease = true; \
		if \
		:: release2(); release1(); entry = false \
		:: stage == 0 -> goto out \
		fi }

/* unitofwork.Client.forget, unitofwork.Client.remove, unitofwork.Client.removeEntry (rollforward.go) */
#ifdef WITHOUT_ENTRY_LAST
#define ENTRY_FIRST open = false
#else
#define ENTRY_FIRST skip
#endif
#define FORGET(ok, out) \
	ENTRY_FIRST; \
	atomic { sentForget = true; \
		if \
		:: row0 = false \
		:: stage == 0 -> goto out \
		fi }; \
	atomic { \
		if \
		:: row1 = false \
		:: stage == 0 -> goto out \
		fi }; \
	do \
	:: atomic { \
		if \
		:: closing(ok); \
			if \
			:: ok -> ok = false; break \
			:: else -> row0 = false \
			fi \
		:: stage == 0 -> goto out \
		fi } \
	od

/* unitofwork.Unit.commitByJournal (journaled.go) */
active proctype owner() {
	bool ok; byte found;

	/* Unit.writeJournal: the first row with the entry, then the other */
	atomic { sentRow0 = true;
		if
		:: writeRow0()
		:: goto abandon
		:: goto over /* it dies */
		fi };
	atomic { sentRow1 = true;
		if
		:: row1 = true
		:: goto abandon
		:: goto over
		fi };
	/* locks.Set.Prepare, locks.Prepared.prepare (prepared.go): both at a time */
	atomic { sentPrepares = true };
	atomic {
		if
		:: prepare1(ok)
		:: ok = false
		:: goto over
		fi;
		if
#ifdef WITHOUT_PREPARE_ALL
		:: skip
#else
		:: ok
		:: !ok -> goto abandon
#endif
		fi };
	atomic {
		if
		:: prepare2(ok)
		:: ok = false
		:: goto over
		fi;
		if
		:: ok -> ok = false
		:: !ok -> goto abandon
		fi };
	/* Unit.decide */
	atomic { sentDecision = true;
		if
		:: decision(ok)
		:: skip
		:: goto over
		fi;
		if
		:: ok -> ok = false; found = COMMITTED; goto decided
		:: else
		fi };
#ifdef WITHOUT_RACE
	found = ABORTED;
#else
	/* unitofwork.Client.abort (rollforward.go) */
	atomic {
		if
		:: abort(found)
		:: goto over /* in doubt, or it dies */
		fi };
#endif
decided:
	if
#ifdef WITHOUT_REFUSED_PROVES
	:: atomic { found == DONE -> told = COMMITTED }
	:: atomic { found == ABORTED || found == COMMITTED -> told = ABORTED; found = 0; goto free }
#else
	:: atomic { found == COMMITTED || found == DONE -> told = COMMITTED; found = 0 }
	:: atomic { found == ABORTED -> told = ABORTED; found = 0; goto free }
#endif
	fi;
	assert(truth || (record == COMMITTED || record == DONE));
	/* Unit.carryOut */
	APPLY(over);
#ifdef WITHOUT_REMOVE_DONE
	FORGET(ok, over);
#endif
	/* unitofwork.Client.finish (rollforward.go) */
	atomic { sentDone = true;
		if
		:: conclusion()
		:: goto over
		fi };
	FORGET(ok, over);
	goto over;

abandon: /* Unit.abandon: nothing was decided, and the decision was not sent */
	atomic { ok = false; told = ABORTED };
free:
	assert(truth || (record == ABSENT || record == ABORTED));
#ifndef WITHOUT_FREE_PREPARED
	/* unitofwork.Unit.release (end.go), locks.Prepared.Release (prepared.go) */
	RELEASE(unreleased);
	if
	:: true
	:: false ->
unreleased: /* no answer: by the journal Recover finds what may still be prepared */
#ifndef WITHOUT_KEEP
		goto over
#else
		skip
#endif
	fi;
#endif
	FORGET(ok, over);
over:
	atomic { ok = false; found = 0; ended = true }
}

/* Units that wait for a prepared row, or Recover. */
proctype worker(byte self) {
	bool ok, recover; byte found, row, tries;
idle:
	/* also: it is suspended for ever, dies, and another begins */
	atomic { working = working - (tries > 0 && stage == 0); found = 0; row = 0; recover = false; ok = false };
	if
	:: atomic { stage == 0 && (self == 0 || ended) && open -> recover = true; tries = 1; working++ }
	/* lockrow.judgeHolder (judge.go), locks.Client.recoverDead (recovery.go): a prepared row is silent */
	:: atomic { stage == 0 && (self == 0 || ended) && unit1 == U && prepared1 -> row = S1; tries = 1; working++ }
	:: atomic { stage == 0 && (self == 0 || ended) && unit2 == U && prepared2 -> row = S2; tries = 1; working++ }
	/* the end: one Recover, then one that waits for each row */
	:: atomic { stage == 1 && self == 0 && open && tries < 2 -> recover = true; tries = 2 }
	:: atomic { stage == 1 && self == 0 && (!open || tries == 2) -> tries = 0; stage = 2;
		assert(findable || (!open && !row0 && record != COMMITTED));
#ifdef WITHOUT_LEAK_ALLOWED
		leaked = false;
#endif
		assert(findable || (leaked || !((unit1 == U && prepared1) || (unit2 == U && prepared2))));
		goto idle }
#ifndef WITHOUT_JUDGE_SETTLE
	:: atomic { stage == 2 && self == 0 && unit1 == U && prepared1 && tries < 3 -> row = S1; tries++ }
	:: atomic { stage == 2 && self == 0 && unit2 == U && prepared2 && tries < 3 -> row = S2; tries++ }
	:: atomic { stage == 2 && self == 0 && (tries == 3 || !((unit1 == U && prepared1) || (unit2 == U && prepared2))) -> stage = 3; goto out }
#else
	:: atomic { stage == 2 && self == 0 -> stage = 3; goto out }
#endif
	:: atomic { stage != 0 && self != 0 -> goto out }
	fi;

	/* unitofwork.Client.abort (rollforward.go) */
	atomic {
		if
		:: abort(found)
		:: stage == 0 -> goto idle
		fi };
	if
	:: atomic { found == ABORTED ->
		/* Client.rollBack: reads the journal as of one moment */
		if
		:: row0 && row1
		:: else -> leaked = leaked || !ended; goto rolled_back /* it was not written to its end, or is removed */
		fi };
#ifndef WITHOUT_SWEEP
		RELEASE(idle);
#endif
		FORGET(ok, idle);
rolled_back:
		/* locks.Client.freeAborted (recovery.go) */
#ifndef WITHOUT_FREE_AT_ONCE
		atomic {
			if
			:: row == S1 -> sentRelease = true;
				if
				:: release1()
				:: stage == 0
				fi
			:: row == S2 -> sentRelease = true;
				if
				:: release2()
				:: stage == 0
				fi
			:: else
			fi };
#endif
		skip
	:: atomic { found == COMMITTED ->
		/* Client.rollForward, Client.readBack */
		if
		:: row0 && row1
		:: else -> goto missing
		fi };
		APPLY(idle);
#ifdef WITHOUT_REMOVE_DONE
		FORGET(ok, idle);
#endif
		/* Client.finish */
		atomic { sentDone = true;
			if
			:: conclusion()
			:: stage == 0 -> goto idle
			fi };
		FORGET(ok, idle);
		if
		:: true
		:: false ->
missing: /* a worker that finds its rows missing asks the record again, after them: JournalError if it is still committed */
#ifdef WITHOUT_GONE_DONE
			assert(there || false);
#else
			assert(there || record != COMMITTED);
#endif
		fi
	:: atomic { found == DONE }
	fi;
	/* unitofwork.Client.recoverOne, unitofwork.Client.purge (recover.go) */
#ifndef WITHOUT_PURGE
	if
	:: recover -> FORGET(ok, idle)
	:: !recover
	fi;
#endif
	goto idle;
out:
	skip
}

/* The units that come after U: takes, and frees; again and again. */
active proctype heir() {
	byte what; /* S1: c/1, S2: c/2, both: c */
end:
	do
	/* locks.acquisition.take (acquire.go), lockrow.takeIf, lockrow.intendIf (expressions.go) */
	:: atomic { what == 0 && stage == 0 && unitC == 0 && unit1 == 0 -> assert(unprepared || !prepared1); unit1 = HEIR; what = S1 }
	:: atomic { what == 0 && stage == 0 && unitC == 0 && unit2 == 0 -> assert(unprepared || !prepared2); unit2 = HEIR; what = S2 }
	:: atomic { what == 0 && stage == 0 && unitC == 0 && !entry -> unitC = HEIR; what = S1 | S2 }
	/* what it reads, and frees */
	:: atomic { what != 0 ->
		assert(below || ((record != COMMITTED && record != DONE) || ((!(what & S1) || wrote1) && (!(what & S2) || wrote2))));
		if
		:: what == S1 -> assert(own || (unit1 == HEIR && !prepared1)); unit1 = 0
		:: what == S2 -> assert(own || (unit2 == HEIR && !prepared2)); unit2 = 0
		:: else -> assert(own || unitC == HEIR); unitC = 0
		fi;
		what = 0 }
	od
}

active proctype last() {
	atomic { ended && working == 0 -> stage = 1 };
	atomic { stage == 3 ->
		assert(finished || (!(unit1 == U && prepared1) && !(unit2 == U && prepared2)));
		assert(finished || record != COMMITTED);
		assert(finished || (record == DONE || (!wrote1 && !wrote2)));
		assert(truth || (told != COMMITTED || record == DONE));
		assert(truth || (told != ABORTED || record != DONE)) }
}

init {
	atomic { run worker(0); run worker(1) }
}
