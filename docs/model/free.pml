/*
 * Operators take a key from the unit that has it, alive or not.
 *
 * Modelled: a unit has a key, with its intent on the row above. It renews the key once, and
 * commits in one transaction, or prepares a journal and decides, or lets go, or stops
 * at any point. Two operators look, and take the key from whoever has it, at first the unit,
 * then each other; each with --now or without. Another unit waits, for the key or for the row above as a whole: it watches,
 * buries, cleans, settles, takes, and commits. Every request may come at any time, again and
 * again, or never; answers are lost. Others burn a token on the key, and pass the row above.
 *
 * Time: as in hold.pml. An RVN becomes old at any time after it was sent: the lease of the
 * unit has passed since then, less the margin. Whoever has watched an RVN for a lease knows
 * all that were sent before the watch began to be old.
 *
 * Left out: a unit of several keys, of which another is the witness of the intent; how many
 * intents fit; the queue; silence in the row (silence.pml); what becomes of a journal
 * (journal.pml); that an operator looks again and sends another request, under the same name.
 *
 * Tokens have no numbers: an operator's is above all fences that its look has shown, and
 * `outrun` says that one has risen since.
 *
 * Size: 1 key, 1 row above, 1 unit, 2 operators with 1 request each, 1 waiter.
 */
/* property alone: nobody commits beside another who has the key or the row above, or after */
/* property refused: a unit from which the key was taken does not commit from then on */
/* property knows: the unit knows before another has the key or the row above, unless that was let in at once */
/* property truth: a unit that is told that it committed did, and one that is told that it did not never does */
/* property certain: a unit from which the key was taken is told that it did not commit, as long as the row names it */
/* property rises: no fence falls, and who takes a row has a token that nobody had there */
/* property only_named: an operator takes the key from the unit that it has named, and from no other */
/* property free_told: an operator is told that the key was taken from the unit only if it was, and that it was not only if its request never does that */
/* clause named: the write needs the row to be the named unit's | mutant: a key is taken from nobody but the unit that was looked at | finds: only_named */
/* clause named_now: so it does with --now | mutant: with --now a key is taken from nobody but the unit that was looked at | finds: only_named */
/* clause unprepared: the key of a unit that is prepared is not taken | mutant: the key of a unit that is prepared is not taken | finds: refused */
/* clause unprepared_now: so it is with --now | mutant: the key of a unit that is prepared is not taken with --now | finds: refused */
/* clause newer: the operator's token is above the key's fence | mutant: an operator's token is above the key's fence | finds: rises */
/* clause newer_above: it is above that of the row above | mutant: an operator's token is above the fence of the row above | finds: rises */
/* clause in_place: a holder of the operator's takes the unit's place, and does not free the row | mutant: a holder of the operator's takes the unit's place, and does not free the row | finds: knows */
/* clause own_rvn: that holder has an RVN of its own | mutant: others have the key a lease after an operator has taken it | finds: nothing: what the row shows was sent no earlier than what the unit has had confirmed, so who has watched that for a lease knows the unit to be lost. With it others have the key a lease after the call */
/* clause their_lease: the lease in the row stays the unit's | mutant: the lease in the row that an operator takes stays the unit's | finds: knows */
/* clause full_lease: that holder is dead after a full lease of silence | mutant: a holder is dead after a full lease of silence, not sooner | finds: knows */
/* clause bury_rvn: a bury needs the RVN that was watched | mutant: a bury needs the RVN that was watched | finds: knows */
/* clause own_intent: that holder leaves an intent of its own on the row above | mutant: an operator keeps out those who want a row above as a whole | finds: knows */
/* clause together: it does so in the transaction that takes the key | mutant: - | finds: knows */
/* clause has_theirs: it does so if the unit's intent is still there | mutant: - | finds: nothing: the unit's intent is there for as long as the row of the key is the unit's, and that is required in the same transaction */
/* clause cleaned: the intent of the operator's holder is removed like any other's | mutant: - | finds: invalid end state */
/* clause commit_mine: a commit needs the key to be the unit's | mutant: a commit needs every key to be the unit's | finds: alone */
/* clause prepare_mine: preparing needs the key to be the unit's | mutant: only what is the unit's is prepared | finds: refused */
/* clause taken_from: the row says from whom an operator took it, and whoever asks is told what follows | mutant: a unit from which an operator took a key never commits, and is told so | finds: certain */
/* clause from_us: that an operator took it from another says nothing of the unit | mutant: - | finds: truth */
/* clause unheard: an operator whose request was not answered asks the row from whom it was taken last | mutant: - | finds: nothing: without it the operator is told that this is not known */
/* clause unsure: if the row does not say, it is told that this is not known | mutant: an operator is not told that nothing was changed where the row does not tell | finds: free_told */

#define U 1  /* the unit */
#define O1 2 /* the operators' holders */
#define O2 3
#define W 4  /* who waits */
#define OTHER 5

hidden byte alone, refused, knows, truth, certain, rises, only_named, free_told; /* never set: they name what was violated */

/* The row of the key: lockrow.Row (row.go). RVNs: the unit's are 1 and 2, those of the operators' holders 3 and 4. */
byte unit = U;
byte rvn = 1;
bit raised;      /* the fence is not the unit's token any more */
byte stamp;      /* committedBy */
byte from = OTHER; /* takenFrom: an operator took it from an earlier unit */
bit pending;
bit short_lease; /* only without their_lease */

/* The row above. */
bit below[5];    /* intents, with the key as their witness */
bit above;       /* who waits has it */

byte seen, since; /* who waits: the RVN that it has seen, and what the unit had sent by then */

/* The unit. */
byte sent = 1, old, conf = 1; /* RVNs: the last that was sent, that is old, that was confirmed */
bit holds = 1;
#define BELIEVES (holds && conf > old)
/* what it believed once does not matter any more */
inline ends_belief() { holds = 0; old = 0; conf = 0; since = 0 }
bit committing, preparing, deciding, releasing; /* what the network has, for ever */
bit decided, aborted, committed;
byte told;
#define COMMITTED 1
#define NOT 2
#define DOUBT 3

/* The operators, with one request each. */
bit now[2];
bit req[2], landed[2];
byte named[2];
bit outrun[2], outrun_above[2];
bit carries[2];  /* the look has shown the named unit's intent */
bit told_no[2];  /* it was told that the key was not taken */
#define ME(o) ((o) + O1)

/* What has been. */
bit taken;       /* the key, from the unit */
bit again;       /* and after that from another */
bit let_in;      /* by --now */
bit had;         /* who waits has had the key, or the row above */

bit coarse;      /* it wants the row above */
byte burying;    /* the RVN of the last bury that was sent: an earlier one is not carried out any more */

/* locks.Operator.Revoke (operator.go): what is known once it has been carried out */
inline robs(s) {
	assert(only_named || unit == named[s]);
	assert(refused || !decided);
	assert(free_told || !told_no[s]);
	if
	:: unit == U -> taken = 1
	:: else -> again = 1
	fi;
	landed[s] = 1
}

/* No request that names the unit has any use for these now. */
inline forget() { outrun[0] = 0; outrun[1] = 0; outrun_above[0] = 0; outrun_above[1] = 0 }

inline takes_from(s) {
#ifndef WITHOUT_taken_from
	from = named[s];
#endif
	skip
}

/* lockrow.revokeNow, lockrow.IsUnprepared (revoke.go, expressions.go) */
inline carry_now(s) {
	atomic { (req[s] && now[s] && unit != 0
#ifndef WITHOUT_named_now
		&& unit == named[s]
#endif
#ifndef WITHOUT_unprepared_now
		&& !pending
#endif
		) ->
		robs(s); takes_from(s);
		let_in = 1;
		unit = 0;
		forget() }
}

/* lockrow.Table.Revoke (revoke.go) */
inline carry(s) {
	atomic { (req[s] && !now[s] && unit != 0
#ifndef WITHOUT_named
		&& unit == named[s]
#endif
#ifndef WITHOUT_unprepared
		&& !pending
#endif
#ifndef WITHOUT_newer
		&& !outrun[s]
#endif
#ifndef WITHOUT_has_theirs
		&& (!carries[s] || below[named[s]])
#endif
#ifndef WITHOUT_newer_above
		&& !(carries[s] && outrun_above[s])
#endif
		) ->
		robs(s); takes_from(s);
#ifdef WITHOUT_in_place
		unit = 0;
#else
		assert(rises || !outrun[s]);
		unit = ME(s);
		raised = 1;
#ifndef WITHOUT_own_rvn
		rvn = 3 + s;
#endif
#ifdef WITHOUT_their_lease
		short_lease = 1;
#endif
#ifndef WITHOUT_own_intent
		if
		:: carries[s] ->
#ifdef WITHOUT_together
			later[s] = 1
#else
			assert(rises || !outrun_above[s]);
			assert(alone || !above);
			below[ME(s)] = 1
#endif
		:: else
		fi;
#endif
#endif
		forget() }
}

#ifdef WITHOUT_together
bit later[2];
inline intends(s) {
	atomic { later[s] && !above && below[named[s]] -> below[ME(s)] = 1; later[s] = 0 }
}
#endif

/* unitofwork.Unit.write (commit.go): one transaction with locks.Ending.Actions (ending.go) */
#define MAY_COMMIT (committing && !committed && !pending && UNITS && INTENT)
#ifdef WITHOUT_commit_mine
#define UNITS true
#define INTENT true
#else
#define UNITS (unit == U)
#define INTENT below[U]
#endif

inline commits() {
	assert(refused || !taken);
	assert(alone || !had);
	assert(truth || told != NOT);
	committed = 1
}

#ifdef WITHOUT_bury_rvn
#define BURIED (unit != 0 && !pending)
#else
#define BURIED (unit != 0 && !pending && rvn == burying)
#endif

active proctype world() {
end:
	do
	:: atomic { holds && old < sent -> old++ }
	/* locks.renewals (renewals.go) */
	:: atomic { sent == 2 && unit == U && rvn == 1 -> rvn = 2 }
	:: atomic { MAY_COMMIT -> commits(); stamp = U; below[U] = 0; unit = (unit == U -> 0 : unit) }
	/* lockrow.Table.Releases (expressions.go) */
	:: atomic { releasing && unit == U && below[U] -> unit = 0; pending = 0; below[U] = 0 }
	/* lockrow.Table.Prepare (expressions.go) */
	:: atomic { (preparing && !pending && unit != 0
#ifndef WITHOUT_prepare_mine
		&& unit == U && below[U]
#endif
		) -> pending = 1; preparing = 0 }
	/* unitofwork.Unit.decide (journaled.go) */
	:: atomic { deciding && !decided && !aborted -> decided = 1; commits() }
	:: carry(0) :: carry(1)
	:: carry_now(0) :: carry_now(1)
#ifdef WITHOUT_together
	:: intends(0) :: intends(1)
#endif
	/* lockrow.BuryIf, lockrow.Free (expressions.go) */
	:: atomic { burying != 0 && BURIED -> unit = 0 }
	/* lockrow.Stamp (expressions.go): a token that is burned, whoever has the row */
	:: atomic { unit == U && !pending && !(raised && outrun[0] == req[0] && outrun[1] == req[1]) ->
		raised = 1; outrun[0] = req[0]; outrun[1] = req[1] }
	/* lockrow.intend (expressions.go): another's intent comes and goes */
	:: atomic { !above && unit == U && !(outrun_above[0] == req[0] && outrun_above[1] == req[1]) ->
		outrun_above[0] = req[0]; outrun_above[1] = req[1] }
	od
}

inline tell(what) {
	told = what;
	assert(truth || told != COMMITTED || committed);
	assert(truth || told != NOT || !committed);
	assert(certain || !taken || again || told == NOT)
}

#ifdef WITHOUT_from_us
#define FROM_US (from != 0)
#else
#define FROM_US (from == U)
#endif

/* lockrow.FateOf (outcome.go) */
inline ask() {
	atomic {
		if
		:: stamp == U -> tell(COMMITTED)
		:: stamp != U && unit == U -> tell(DOUBT)
		:: stamp != U && unit != U && FROM_US -> tell(NOT)
		:: stamp != U && unit != U && !(FROM_US) && !raised -> tell(NOT)
		:: stamp != U && unit != U && !(FROM_US) && raised -> tell(DOUBT)
		fi }
}

active proctype unit_of_work() {
	/* heartbeat.Group.beat (heartbeat.go) */
	do
	:: atomic { BELIEVES && sent == 1 -> sent = 2 }
	:: atomic { BELIEVES && conf == 1 && rvn == 2 && unit == U -> conf = 2 }
	/* heartbeat.Group.lose (heartbeat.go): it is told that the row is not its own */
	:: atomic { holds && sent == 2 && unit != U -> ends_belief(); releasing = 1; goto over }
	:: break
	od;
	if
	:: atomic { BELIEVES -> ends_belief(); committing = 1 } /* locks.Set.End (ending.go) */
	:: atomic { BELIEVES -> preparing = 1; goto journal }
	:: atomic { BELIEVES -> ends_belief(); releasing = 1; goto over }
	:: goto over /* it stops, and believes for as long as its clock lets it */
	fi;
	/* locks.Ending.Resolve (ending.go), and later unitofwork.Client.Outcome (outcome.go) */
	do
	:: atomic { unit == U && below[U] && told != COMMITTED -> unit = 0; below[U] = 0; tell(NOT); goto over }
	:: told == 0 || told == DOUBT -> ask()
	:: told == COMMITTED || told == NOT -> goto over
	:: goto over
	od;
journal:
	/* locks.Set.Prepare (prepared.go), then unitofwork.Unit.commitByJournal (journaled.go) */
	if
	:: atomic { pending && !preparing -> deciding = 1; ends_belief() }
	:: goto over
	fi;
	if
	:: atomic { decided && unit == U -> unit = 0; pending = 0; below[U] = 0; stamp = U }
	:: skip
	fi;
over:
	skip
}

/* inspect.Inspector.Free (free.go) */
proctype operator(byte o) {
	byte whom;
	bit unheard;
look:
	atomic {
		if
		:: (unit == ME(o)
#ifndef WITHOUT_unheard
			|| unheard && from == whom
#endif
			) ->
			assert(free_told || again || (whom == U -> taken : true));
			goto over
		:: else
		fi;
		if
		:: unit == 0 || unit == W || whom != 0 && unit != whom || pending ->
			/* inspect.whyNotFree (free.go) */
#ifndef WITHOUT_unsure
			if
			:: unheard && unit != whom -> goto over /* it asks again, or looks */
			:: else
			fi;
#endif
			told_no[o] = 1;
			assert(free_told || !landed[o]);
			goto over
		:: else -> whom = unit
		fi;
		if
		:: req[o] -> goto over /* it would send another */
		:: else
		fi;
		named[o] = whom; carries[o] = below[whom]; req[o] = 1
	};
	if
	:: landed[o] -> goto over
	:: unheard = 1 /* no answer; sent again it is refused */
	:: goto over /* it stops */
	fi;
	goto look;
over:
	unheard = 0; whom = 0
}

/* Who waits for the key, or for the row above. */
active proctype waiter() {
	do
	/* lockrow.Sightings.See (sightings.go) */
	:: atomic { unit != 0 && rvn != seen -> seen = rvn; since = (holds -> sent : 0) }
	/* locks.acquisition.bury (wait.go): a lease after it saw that */
	:: atomic { seen != 0 && burying != seen && unit != 0 && !pending ->
#ifdef WITHOUT_full_lease
		skip;
#else
		if
		:: short_lease
		:: else -> old = (old < since -> since : old)
		fi;
#endif
		burying = seen }
	/* unitofwork.Client.recoverDead (rollforward.go) */
	:: atomic { seen != 0 && unit != 0 && pending && rvn == seen ->
		old = (old < since -> since : old);
		if
		:: decided && unit == U -> stamp = U
		:: else -> aborted = (unit == U)
		fi;
		unit = 0; pending = 0 }
	/* locks.acquisition.judgeBelow (below.go) */
	:: atomic { coarse && below[U] && unit != U -> below[U] = 0 }
#ifndef WITHOUT_cleaned
	:: atomic { coarse && below[O1] && unit != O1 -> below[O1] = 0 }
	:: atomic { coarse && below[O2] && unit != O2 -> below[O2] = 0 }
#endif
	/* lockrow.takeIf (expressions.go) */
	:: atomic { !coarse && unit == 0 -> unit = W; rvn = 0; raised = 1; break }
	:: atomic { coarse && !below[U] && !below[O1] && !below[O2] -> above = 1; break }
	od;
	atomic {
		had = 1;
		assert(knows || let_in || !BELIEVES);
		assert(alone || coarse || unit == W);
		assert(alone || unit != U) };
	/* lockrow.Commit (expressions.go) */
	if
	:: atomic { unit == W -> unit = 0; stamp = W }
	:: above = 0
	fi
}

init {
	atomic {
		below[U] = 1;
		if
		:: coarse = 1
		:: coarse = 0
		fi;
		if
		:: now[0] = 1
		:: now[0] = 0
		fi;
		if
		:: now[1] = 1
		:: now[1] = 0
		fi;
		run operator(0); run operator(1)
	}
}
