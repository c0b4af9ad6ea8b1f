/*
 * What is told of a unit that commits without locks: it never held its rows, so there is
 * nothing to release that would say.
 *
 * Modelled: a unit of two keys, each looked at or blind, with an ID or without. Its commit may
 * be lost, be late beyond anything, or be carried out again long after; its answer may be lost;
 * a staged condition may hold later than that. Others have each row, with locks or without, with lower
 * and higher tokens and with the same one, commit, release, and burn tokens of theirs; one of them
 * has the same ID. The unit burns its token, or has no answer to that either, looks at the rows,
 * sends the commit once more if all it heard was a refusal, asks at once and again later.
 *
 * Assumed: as in optimistic.pml, the answer to a request that was sent once is true of that request; and so is that
 * of the same request sent once more, for DynamoDB remembers its token.
 *
 * Left out: rows above keys, what is read, raising, and going on under locks (optimistic.pml); a unit without
 * keys, which only commits an ID; rows and records that have expired.
 *
 * Size: 2 rows, 1 ID; tokens up to 5.
 */
/* property truth: a unit that is told that it committed did, and one that is told that it did not never does */
/* property once: a commit is carried out once, however often it arrives */
/* property id_once: of all units with one ID one commits */
/* property never_lower: no fence falls */
/* clause burn: a unit that does not know what became of its commit burns its token | mutant: a commit without locks that was not answered makes its token unusable before it looks at the rows | finds: truth */
/* clause burn_first: it looks at the rows after it has burned its token | mutant: - | finds: truth */
/* clause never_fits: without a burn a refusal says only what never fits again | mutant: only a row that never fits again refuses a commit without locks for ever ; a staged condition that refuses a commit without locks does not refuse it for ever | finds: truth */
/* clause first_sending: a refusal after a sending without an answer says nothing of the first | mutant: a refusal of a commit without locks after a sending without an answer says nothing of the first | finds: truth */
/* clause leaves_stamp: a commit leaves its commit stamp on each key's row | mutant: a commit without locks leaves its commit stamp on each key's row | finds: truth */
/* clause leaves_token: a commit leaves its token on each key's row | mutant: a commit without locks leaves its token on each key's row | finds: truth */
/* clause not_ours: another's commit stamp is not ours | mutant: another's commit stamp is not that of a commit without locks | finds: truth */
/* clause overtaken: another's commit stamp over a higher fence proves nothing | mutant: another's commit stamp over a higher fence says nothing of a commit without locks | finds: truth */
/* clause one_moment: the rows are looked at as of one moment | mutant: - | finds: nothing: the commit is dead or done by then, so nothing of it can land between two looks */
/* clause ask_together: the record of an ID is read together with a lock row, as of one moment | mutant: - | finds: truth */
/* clause again_final: a commit that is sent once more is dead if a row that never fits again refuses it | mutant: - | finds: nothing: the row that was to be burned had a higher fence, so it never fits again */
/* clause undecided: a row with a lower fence says that the commit may land yet | mutant: a commit without locks may yet be carried out while the fence is lower than its token | finds: truth */
/* clause whatever_id: so it does whatever the record of the ID says | mutant: a commit without locks may yet be carried out, whatever the record of its id says | finds: truth */
/* clause their_record: another unit's record under the ID is not ours | mutant: another unit's record under the id is not ours | finds: truth */
/* clause id_written: the record of an ID is written with the commit | mutant: an id commits once: its record is written with the commit | finds: id_once */
/* clause id_absent: it is written only if there is none | mutant: an id commits once: its record is written only if there is none | finds: id_once */
/* clause never_lowers: a burn lowers no fence | mutant: a token is burned by raising a fence, never by lowering one | finds: never_lower */

#define ME 1
#define OTHER 2
#define SEEN 1
#define MINE 3
#define MOST 5

hidden byte truth, once, id_once, never_lower; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit[2];
byte fence[2] = SEEN;
byte stamp[2]; /* committedBy */
bit glanced[2];
bit met;      /* the staged condition holds */
bit with_id, other_id;
byte record;  /* of the ID: whose */
byte under;   /* how many have committed under it */
bit sent;     /* the network has copies, for ever */
bit landed;
byte told;
#define COMMITTED 1
#define NOT 2
#define DOUBT 3

/* lockrow.Table.Pass (pass.go) */
#define FITS(r) (unit[r] == 0 && (glanced[r] -> fence[r] == SEEN : fence[r] < MINE))
#ifdef WITHOUT_id_absent
#define ID_FREE(id) true
#else
#define ID_FREE(id) (!id || record == 0)
#endif
#define ADMITTED (FITS(0) && FITS(1) && met && ID_FREE(with_id))
/* lockrow.Need.Refuses (pass.go) */
#define DEAD(r) (glanced[r] -> fence[r] != SEEN : fence[r] >= MINE)
#ifdef WITHOUT_never_fits
#define NEVER_FITS true
#else
#define NEVER_FITS (DEAD(0) || DEAD(1))
#endif

/* journal.PutIDRecord (idrecord.go) */
inline put(u, id) {
	if
	:: id ->
		assert(id_once || under == 0);
		under++;
#ifndef WITHOUT_id_written
		record = u;
#endif
	:: else
	fi
}

/* unitofwork.Unit.write (commit.go): one transaction, locks.Pass.Actions (pass.go) and the writes */
inline carry_out() {
	assert(once || !landed);
	assert(truth || told != NOT);
#ifndef WITHOUT_leaves_stamp
	stamp[0] = ME; stamp[1] = ME;
#endif
#ifndef WITHOUT_leaves_token
	fence[0] = MINE; fence[1] = MINE;
#endif
	put(ME, with_id);
	landed = 1
}

/* Others, on one row: lockrow.take (expressions.go), with any higher token */
inline take(r) {
	atomic { unit[r] == 0 && fence[r] < MOST -> unit[r] = OTHER; fence[r]++ }
}
inline commit_theirs(r) { /* lockrow.Commit (expressions.go) */
	atomic { unit[r] == OTHER && ID_FREE(other_id) -> unit[r] = 0; stamp[r] = OTHER; put(OTHER, other_id); other_id = 0 }
}

active proctype world() {
end:
	do
	:: atomic { sent && ADMITTED -> carry_out() }
	:: atomic { !met -> met = 1 }
	:: take(0)
	:: take(1)
	:: commit_theirs(0)
	:: commit_theirs(1)
	:: atomic { unit[0] == OTHER -> unit[0] = 0 } /* released, or buried: lockrow.Free (expressions.go) */
	:: atomic { unit[1] == OTHER -> unit[1] = 0 }
	:: atomic { fence[0] < MOST -> fence[0]++ } /* they burn: lockrow.Stamp (expressions.go) */
	:: atomic { fence[1] < MOST -> fence[1]++ }
	od
}

#define FATE_UNKNOWN 0
#define FATE_COMMITTED 1
#define FATE_NEVER 2
#define FATE_OPEN 3

/* lockrow.FateOfPass (outcome.go), row by row */
inline weigh(r) {
	if
	:: fate != FATE_UNKNOWN
	:: fate == FATE_UNKNOWN && (stamp[r] == ME
#ifdef WITHOUT_not_ours
		|| stamp[r] != 0
#endif
		) -> fate = FATE_COMMITTED
	:: fate == FATE_UNKNOWN && stamp[r] != ME && (fence[r] <= MINE
#ifdef WITHOUT_overtaken
		|| stamp[r] != 0
#endif
		) -> fate = FATE_NEVER
	:: else
	fi
}

inline tell(what) {
	told = what;
	assert(truth || told != COMMITTED || landed);
	assert(truth || told != NOT || !landed)
}

/* unitofwork.Client.ask (outcome.go): the row of one key, and the record of the ID; lockrow.FateOfOpen (outcome.go),
   unitofwork.outcomeOf (ref.go). DOUBT is both: undecided, and forgotten. */
inline ask() {
#ifdef WITHOUT_ask_together
	found = record;
#endif
	atomic {
#ifndef WITHOUT_ask_together
		found = record;
#endif
		fate = (stamp[0] == ME -> FATE_COMMITTED : (fence[0] < MINE -> FATE_OPEN : (fence[0] == MINE -> FATE_NEVER : FATE_UNKNOWN)));
#ifdef WITHOUT_undecided
		fate = (fate == FATE_OPEN -> FATE_UNKNOWN : fate);
#endif
#ifdef WITHOUT_whatever_id
		fate = (fate == FATE_OPEN && with_id -> FATE_UNKNOWN : fate);
#endif
		if
		:: fate == FATE_COMMITTED || with_id && (found == ME
#ifdef WITHOUT_their_record
			|| found != 0
#endif
			) -> tell(COMMITTED)
		:: else ->
			if
			:: fate == FATE_OPEN -> tell(DOUBT)
			:: fate == FATE_NEVER || fate == FATE_UNKNOWN && with_id -> tell(NOT)
			:: fate == FATE_UNKNOWN && !with_id -> tell(DOUBT)
			fi
		fi;
		fate = 0; found = 0
	}
}

/* unitofwork.Unit.sendAgain (commit.go): DynamoDB remembers the request token of what was carried out */
inline send_again() {
	atomic {
		if
		:: landed -> tell(COMMITTED)
		:: !landed && ADMITTED -> carry_out(); tell(COMMITTED)
		:: !landed && !ADMITTED ->
			if
#ifndef WITHOUT_again_final
			:: !(NEVER_FITS) -> tell(DOUBT)
#endif
			:: else -> tell(NOT)
			fi
		fi
	}
}

proctype unit_of_work() {
	byte fate, found;
	bit answered; /* every sending was */

	sent = 1; /* unitofwork.Unit.send (commit.go) */
	if
	/* answered: carried out, now, or a moment ago */
	:: atomic { landed -> tell(COMMITTED); goto over }
	:: atomic { !landed && ADMITTED -> carry_out(); tell(COMMITTED); goto over }
	/* answered: refused. locks.Pass.Refused (pass.go) */
	:: atomic { !landed && !ADMITTED ->
		if
		:: NEVER_FITS -> tell(NOT); goto over
		:: true -> answered = 1 /* only others are named of what has refused */
		fi }
	/* not answered, and sent again: carried out, or refused, for nothing is remembered */
	:: atomic { ADMITTED -> carry_out(); tell(COMMITTED); goto over }
	:: atomic { !ADMITTED ->
#ifdef WITHOUT_first_sending
		if
		:: DEAD(0) || DEAD(1) -> tell(NOT); goto over
		:: else
		fi;
#endif
		skip }
	:: skip /* never answered */
	fi;
#ifdef WITHOUT_burn_first
	atomic { weigh(0); weigh(1) };
#endif
	/* locks.Pass.Resolve, locks.Pass.burn (pass.go): on the row of one key */
	if
#ifdef WITHOUT_burn
	:: true
#endif
#ifdef WITHOUT_never_lowers
	:: atomic { assert(never_lower || fence[0] <= MINE); fence[0] = MINE }
#endif
#ifndef WITHOUT_burn
#ifndef WITHOUT_never_lowers
	:: atomic { fence[0] < MINE -> fence[0] = MINE; tell(NOT); goto over }
	:: atomic { fence[0] < MINE -> fence[0] = MINE } /* its answer is lost, and it is sent again: refused */
	:: atomic { fence[0] >= MINE } /* refused */
#endif
#endif
	:: answered = 0; goto unknown /* no answer */
	fi;
	/* locks.Client.snapshot (ending.go): the rows of all keys */
#ifdef WITHOUT_one_moment
	weigh(0);
	weigh(1);
#endif
	atomic {
#ifndef WITHOUT_burn_first
#ifndef WITHOUT_one_moment
		weigh(0);
		weigh(1);
#endif
#endif
		if
		:: fate == FATE_COMMITTED -> tell(COMMITTED); goto over
		:: fate == FATE_NEVER -> tell(NOT); goto over
		:: fate == FATE_UNKNOWN
		fi
	};
unknown: /* unitofwork.Unit.race (commit.go) */
	fate = 0;
	if
	:: with_id -> ask()
	:: !with_id && answered -> send_again()
	:: !with_id -> tell(DOUBT) /* or after longer than request tokens are remembered */
	fi;
over:
	fate = 0;
	/* unitofwork.Client.Outcome (outcome.go), later, as often as it is asked */
	do
	:: told == DOUBT -> ask()
	:: break
	od
}

init {
	atomic {
		if :: glanced[0] = 1 :: glanced[0] = 0 fi;
		if :: glanced[0] -> glanced[1] = 1 :: glanced[1] = 0 fi; /* whichever row it burns its token on is the first */
		if :: with_id = 1 :: with_id = 0 fi;
		if :: other_id = with_id :: other_id = 0 fi;
		if :: met = 1 :: met = 0 fi;
		run unit_of_work()
	}
}
