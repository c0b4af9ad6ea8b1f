/*
 * Deciding about units that have a journal: two units of one ID, whoever may
 * decide about them, and callers who ask afterwards.
 *
 * Modelled: the record of each unit, the record of their ID, whether each has its
 * prepared lock row; the decision, the abort that is raced with it, the freeing of
 * an aborted unit's row, the conclusion; what an owner is told, and what Outcome
 * answers to callers in doubt. Every request that was sent may be carried out at any
 * time, any number of times, or never; every answer may be lost. An owner may be
 * suspended or die anywhere. Anybody may count a living owner as dead at any time:
 * no time is needed for safety.
 *
 * Left out: the journal and what it says (journal.pml); a payload that differs
 * under one ID; the end of records, which is later than all copies.
 *
 * Size: 2 units, 2 that settle, 1 caller that asks.
 *
 * Properties: a decision is made once, and stays; of two units with one ID one
 * commits at most, and the record of the ID names it; a caller that is told committed, not
 * committed, or committed before, is told the truth, for ever; one that asks about a
 * unit of which a decision stands is told; a row is freed of a
 * unit that is not committed only if it never will be; no deadlock.
 */

/* property decided: a decision is made once, with the keys held, and contradicts nothing that was told */
/* property once: one unit commits under an ID */
/* property decided_first: the rows of a dead unit are freed when it is decided, not before */
/* property truth: what is told of a unit is true for ever */
/* clause COMMIT_IF_ABSENT: a unit is committed only if nobody aborted it | mutant: a unit is committed only if nobody aborted it | finds: decided */
/* clause ABORT_IF_ABSENT: a unit is aborted only if it has not committed | mutant: a unit is aborted only if it has not committed | finds: decided */
/* clause ID_IN_DECISION: an ID is committed with the decision | mutant: an ID is committed with the decision | finds: once */
/* clause ID_IF_ABSENT: the record of an ID is written only if there is none | mutant: an id commits once: its record is written only if there is none | finds: decided */
/* clause RACE: a decision that is not known to be made is raced with an abort | mutant: a decision that is not known to be made is raced with an abort | finds: decided_first */
/* clause REFUSED_PROVES: an abort that was refused shows what was decided | mutant: an abort that was refused proves that the unit has committed | finds: truth */
/* clause ANSWERS: a decision answers for its unit before all is done | mutant: a decision answers for its unit before all is done | finds: truth */
/* clause ABORTED_ANSWERS: an aborted unit is not committed | mutant: an aborted unit is not committed | finds: truth */
/* clause ABORT_FIRST: a dead unit's rows are freed when its abort stands, not before | mutant: - | finds: decided_first */
/* clause NAMED: another unit's record under the ID is not ours | mutant: another unit's record under the id is not ours | finds: truth */
/* clause HELD_UNDECIDED: without a record, a unit that has its keys is undecided | mutant: without a record, a unit that has its keys is undecided | finds: decided */
/* clause RECORD_STAYS: a record has no end while anything is left to be done | mutant: a record has no end while anything is left to be done | finds: decided */

hidden byte decided, once, decided_first, truth; /* never set: they name what was violated */

#define ABSENT    0
#define COMMITTED 1
#define ABORTED   2
#define DONE      3

#define NOTHING 0
#define YES     1 /* committed */
#define NO      2 /* not committed, and never will be */
#define BEFORE  3 /* the ID was committed before */
#define DOUBT   4

byte record[3]; /* of unit 1 and of unit 2 */
bool named;     /* both have the same ID; else they have none */
byte id;        /* whose name the record of the ID has */
bool held[3];   /* the unit has its row, prepared */
byte told[3];
bool sentDecision[3], sentAbort[3], sentFree[3], sentDone[3];

/* A decision is made once, and stays. */
inline put(u, state) {
	assert(decided || (record[u] == ABSENT || (record[u] == COMMITTED && state == DONE)));
	assert(decided || (state != COMMITTED || (told[u] != NO && told[u] != BEFORE && held[u])));
	assert(decided || (state != ABORTED || told[u] != YES));
	record[u] = state
}

/* journal.PutCommitted (decision.go), journal.PutIDRecord (idrecord.go): one transaction */
inline decision(u, ok) {
	ok = true;
#ifndef WITHOUT_COMMIT_IF_ABSENT
	ok = ok && record[u] == ABSENT;
#endif
#ifndef WITHOUT_ID_IF_ABSENT
#ifndef WITHOUT_ID_IN_DECISION
	ok = ok && (!named || id == 0);
#endif
#endif
	if
	:: ok -> put(u, COMMITTED);
		assert(once || (!named || (record[3 - u] != COMMITTED && record[3 - u] != DONE))); /* once for an ID */
#ifndef WITHOUT_ID_IN_DECISION
		if
		:: named -> id = u
		:: else
		fi
#endif
	:: else
	fi
}

/* journal.PutAborted (decision.go) */
inline abort(u, found) {
	found = record[u];
#ifdef WITHOUT_ABORT_IF_ABSENT
	put(u, ABORTED); found = ABORTED;
#else
	if
	:: record[u] == ABSENT -> put(u, ABORTED); found = ABORTED
	:: else
	fi
#endif
}

/* lockrow.Table.Releases (expressions.go), of a unit that is aborted, or is applied */
inline free(u) {
	assert(decided_first || (record[u] != ABSENT || !held[u]));
	held[u] = false
}

/* journal.SetDone (decision.go) */
inline conclusion(u) {
	if
	:: record[u] == COMMITTED -> put(u, DONE)
	:: else
	fi
}

/* Copies of what was sent: late, or once more. */
active proctype network() {
	byte u, found; bool ok;
end:
	do
	:: atomic { sentDecision[1] -> decision(1, ok); ok = false }
	:: atomic { sentDecision[2] -> decision(2, ok); ok = false }
	:: atomic { sentAbort[1] -> abort(1, found); found = 0 }
	:: atomic { sentAbort[2] -> abort(2, found); found = 0 }
	:: atomic { sentFree[1] -> free(1) }
	:: atomic { sentFree[2] -> free(2) }
	:: atomic { sentDone[1] -> conclusion(1) }
	:: atomic { sentDone[2] -> conclusion(2) }
#ifdef WITHOUT_RECORD_STAYS
	:: atomic { record[1] == COMMITTED -> record[1] = ABSENT }
#endif
	od
}

inline tell(u, what) {
	assert(truth || (told[u] == NOTHING || told[u] == DOUBT));
	assert(truth || (what != YES || record[u] == COMMITTED || record[u] == DONE));
	assert(truth || (what != NO || (record[u] != COMMITTED && record[u] != DONE)));
	assert(truth || (what != BEFORE || record[3 - u] == COMMITTED || record[3 - u] == DONE));
	told[u] = what
}

/* unitofwork.Unit.decide, unitofwork.Unit.commitByJournal (journaled.go) */
proctype owner(byte u) {
	bool ok, answered, byID; byte found;

	/* unitofwork.Unit.lookUp (outcome.go), the set being held */
	if
	:: atomic { id != 0 -> tell(u, BEFORE); held[u] = false; goto over }
	:: atomic { id == 0 }
	fi;
	/* locks.Set.Prepare (prepared.go) has prepared the row */
	atomic {
		sentDecision[u] = true;
		if
		:: decision(u, ok); answered = true; byID = !ok && record[u] == ABSENT
		:: answered = false
		:: goto over /* it dies */
		fi
	}
	if
	:: atomic { answered && ok -> tell(u, YES); goto apply }
	:: atomic { !(answered && ok) }
	fi;
#ifdef WITHOUT_RACE
	found = ABORTED;
#else
	/* unitofwork.Client.abort (rollforward.go) */
	atomic {
		sentAbort[u] = true;
		if
		:: abort(u, found)
		:: tell(u, DOUBT); goto over
		:: goto over
		fi
	};
#endif
	if
#ifdef WITHOUT_REFUSED_PROVES
	:: atomic { found == DONE -> tell(u, YES) }
	:: atomic { found != DONE ->
#else
	:: atomic { found == COMMITTED || found == DONE -> tell(u, YES) }
	:: atomic { found == ABORTED ->
#endif
		/* unitofwork.Unit.sameID (outcome.go), if the record of the ID refused */
		if
		:: byID -> tell(u, BEFORE)
		:: !byID -> tell(u, NO)
		fi };
		/* locks.Prepared.Release (prepared.go) */
		atomic { sentFree[u] = true;
			if
			:: free(u)
			:: skip
			fi;
			goto over }
	fi;
apply:
	/* unitofwork.Unit.carryOut (journaled.go), unitofwork.Client.finish (rollforward.go) */
	atomic { sentFree[u] = true; sentDone[u] = true;
		if
		:: sentFree[u] = true; free(u); conclusion(u)
		:: skip
		fi };
over:
	skip
}

/* unitofwork.Client.recoverDead (rollforward.go), locks.Client.freeAborted (recovery.go): again and again */
active [2] proctype settler() {
	byte found, u;
end:
	do
	:: atomic {
		if
		:: held[1] -> u = 1
		:: held[2] -> u = 2
		fi;
#ifdef WITHOUT_ABORT_FIRST
		if
		:: record[u] == ABSENT -> sentFree[u] = true; free(u)
		:: else
		fi;
#endif
		sentAbort[u] = true;
		if
		:: abort(u, found)
		:: found = ABSENT
		fi }
		if
		:: atomic { found == ABORTED -> sentFree[u] = true; free(u) }
		:: atomic { found == COMMITTED || found == DONE -> sentFree[u] = true; free(u); sentDone[u] = true; conclusion(u) }
		:: atomic { found == ABSENT } /* no answer, or it dies */
		fi;
		atomic { found = 0; u = 0 }
	od
}

/* unitofwork.Client.ask (outcome.go), unitofwork.outcomeOf (ref.go): all is read as of one moment */
active proctype asker() {
	byte u;
end:
	do
	:: atomic {
		if
		:: told[1] == DOUBT -> u = 1
		:: told[2] == DOUBT -> u = 2
		fi;
		if
#ifdef WITHOUT_ABORTED_ANSWERS
		:: record[u] != ABSENT -> tell(u, YES)
#else
		:: record[u] == ABORTED -> tell(u, NO)
#ifdef WITHOUT_ANSWERS
		:: record[u] == DONE -> tell(u, YES)
#else
		:: record[u] == COMMITTED || record[u] == DONE -> tell(u, YES)
#endif
#endif
		:: else ->
			if
#ifdef WITHOUT_NAMED
			:: id != 0 -> tell(u, YES)
#else
			:: id == u -> tell(u, YES)
			:: id != 0 && id != u -> tell(u, NO)
#endif
#ifndef WITHOUT_HELD_UNDECIDED
			:: id == 0 && held[u] -> assert(truth || record[u] == ABSENT) /* undecided, or else it would have been told */
			:: id == 0 && !held[u] && named -> tell(u, NO)
			:: id == 0 && !held[u] && !named /* forgotten */
#else
			:: id == 0 -> tell(u, NO)
#endif
			fi
		fi;
		u = 0 }
	od
}

init {
	atomic {
		if
		:: named = true
		:: named = false
		fi;
		held[1] = true; held[2] = true;
		run owner(1); run owner(2)
	}
}
