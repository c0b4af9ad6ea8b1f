/*
 * A commit, and what the caller is told of it.
 *
 * Modelled: a unit holds two keys and commits. The request may be lost, be late
 * beyond anything, or be carried out again long after, when DynamoDB has forgotten
 * its request token; its answer may be lost; it may be refused by a staged condition
 * that holds later. Then the unit races it with a release and looks at the rows, and,
 * if it has an ID, at its record; later it asks again. When its lease is over others
 * bury its rows one by one, take them, commit on them, also under the same ID. A
 * writer without the locks has written the record, with an older or a newer token.
 *
 * Left out: how the locks were taken (acquire.pml), that the unit is told of a loss
 * (hold.pml), journals (journal.pml).
 *
 * Size: 2 rows, 1 record, 1 ID; another unit on each row; a writer without.
 */
/* property truth: a unit that is told that it committed did, and one that is told that it did not never does */
/* property overtaken: no commit changes anything after a later holder was there */
/* property once: a commit is carried out once, however often it arrives */
/* property in_order: a record is written in the order of the tokens */
/* property id_once: of all units with one ID one commits */
/* clause commit_mine: a commit needs every key to be the unit's | mutant: a commit needs every key to be the unit's | finds: truth */
/* clause stamp: a commit leaves its stamp on every key | mutant: a commit leaves its stamp on every key | finds: truth */
/* clause stamp_stays: acquiring leaves the last commit stamp | mutant: acquiring leaves the last commit stamp | finds: nothing: a reader that finds no stamp is in doubt, not told wrongly. With it there is less doubt */
/* clause resolve: a refusal proves nothing about copies: only a release that lands does | mutant: a refusal proves nothing about copies: only a release that lands does | finds: truth */
/* clause first_sending: a refusal after a sending without an answer says nothing of the first | mutant: a refusal after a sending without an answer says nothing of the first | finds: truth */
/* clause in_doubt: a unit whose fate is unknown is in doubt | mutant: a unit whose fate is unknown is in doubt | finds: truth */
/* clause not_ours: another's commit stamp is not ours | mutant: another's commit stamp is not ours | finds: truth */
/* clause proves_nothing: another's commit stamp, or none, proves nothing | mutant: another's commit stamp, or none, proves nothing | finds: truth */
/* clause since: a row freed without the commit stamp tells only as long as nobody had it since | mutant: a row freed without the commit stamp tells only as long as nobody had it since | finds: truth */
/* clause one_moment: the rows are looked at as of one moment | mutant: - | finds: nothing: the release was refused, so one of the rows was not ours any more, and nothing can land between two reads. It counts when an intent is deleted by hand, and the rows are all ours */
/* clause ask_together: the record of an ID is read together with a lock row, as of one moment | mutant: - | finds: truth */
/* clause their_record: another unit's record under the id is not ours | mutant: another unit's record under the id is not ours | finds: truth */
/* clause id_written: an id commits once: its record is written with the commit | mutant: an id commits once: its record is written with the commit | finds: id_once */
/* clause id_absent: an id commits once: its record is written only if there is none | mutant: an id commits once: its record is written only if there is none | finds: id_once */
/* clause fence_checked: a staged write checks the fence | mutant: a staged write checks the fence | finds: in_order */
/* clause fence_stamped: a staged write stamps the fence | mutant: a staged put stamps the fence | finds: in_order */
/* clause deadline: a commit is not sent after the locks' deadline | mutant: a commit is not sent after the locks' deadline | finds: nothing: it needs every key to be the unit's, however late it is */

#define ME 1
#define OTHER 2
#define MINE 2   /* my token; the other's is higher */
#define THEIRS 3

hidden byte truth, overtaken, once, in_order, id_once; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit[2] = ME;
byte fence[2] = MINE;
byte stamp[2]; /* committedBy */
bit used[2];  /* the other has had it */

byte recorded; /* the stamp of the record */
byte last;    /* the token of the unit that wrote it last */
bit wrote;    /* the writer without locks has */
bit holds;    /* the staged condition holds */
byte record;  /* of the ID: whose */
byte under;   /* how many have committed under it */
bit with_id, other_id;

bit sent;     /* the commit: the network has copies, for ever */
bit landed;
bit slow;     /* the deadline has passed */
byte told;
#define COMMITTED 1
#define NOT 2
#define DOUBT 3

#ifdef WITHOUT_commit_mine
#define KEYS_MINE true
#else
#define KEYS_MINE (unit[0] == ME && unit[1] == ME)
#endif
#ifdef WITHOUT_fence_checked
#define NEWER(t) true
#else
#define NEWER(t) (recorded < t)
#endif
#ifdef WITHOUT_id_absent
#define ID_FREE(id) true
#else
#define ID_FREE(id) (!id || record == 0)
#endif
#define ADMITTED (KEYS_MINE && holds && NEWER(MINE) && ID_FREE(with_id))

/* actions.Stamper.Stamp (stamp.go) */
inline write(t) {
	assert(in_order || t > last);
	last = t;
#ifndef WITHOUT_fence_stamped
	recorded = t;
#endif
}

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

/* A row is freed by the commit, if it is still ours. */
inline free_marked(r) { /* lockrow.Commit (expressions.go) */
	if
	:: unit[r] == ME -> unit[r] = 0;
#ifndef WITHOUT_stamp
		stamp[r] = ME;
#endif
	:: else
	fi
}

/* unitofwork.Unit.write (commit.go): one transaction, locks.Ending.Actions (ending.go) and the writes */
inline carry_out() {
	assert(overtaken || (!used[0] && !used[1]));
	assert(once || !landed);
	assert(truth || told != NOT);
	free_marked(0); free_marked(1);
	write(MINE);
	put(ME, with_id);
	landed = 1
}

/* Others, on one row. */
inline other(r) {
	/* locks.acquisition.bury (wait.go) */
	atomic { slow && unit[r] == ME -> unit[r] = 0 }
}
inline take(r) { /* lockrow.take (expressions.go) */
	atomic { unit[r] == 0 && fence[r] < THEIRS ->
		unit[r] = OTHER; fence[r] = THEIRS; used[r] = 1;
#ifdef WITHOUT_stamp_stays
		stamp[r] = 0;
#endif
		skip }
}
inline commit_theirs(r) { /* lockrow.Commit (expressions.go) */
	atomic { unit[r] == OTHER && ID_FREE(other_id) && (r == 1 || NEWER(THEIRS)) ->
		unit[r] = 0; stamp[r] = OTHER;
		if
		:: r == 0 -> write(THEIRS)
		:: else
		fi;
		put(OTHER, other_id); other_id = 0 }
}

proctype world() {
end:
	do
	:: atomic { sent && ADMITTED -> carry_out() }
	:: atomic { !slow -> slow = 1 }
	:: atomic { !holds -> holds = 1 }
	:: other(0)
	:: other(1)
	:: take(0)
	:: take(1)
	:: commit_theirs(0)
	:: commit_theirs(1)
	:: atomic { unit[0] == OTHER -> unit[0] = 0 } /* lockrow.Free (expressions.go) */
	:: atomic { unit[1] == OTHER -> unit[1] = 0 }
	/* A writer without the locks, with a token of its own: the condition of package fencing. */
	:: atomic { !wrote && recorded < 1 -> wrote = 1; write(1) }
	:: atomic { !wrote && recorded < 4 -> wrote = 1; write(4) }
	od
}

#define FATE_UNKNOWN 0
#define FATE_HELD 1
#define FATE_COMMITTED 2
#define FATE_NEVER 3

/* lockrow.FateOf (outcome.go), row by row */
inline weigh(r) {
	if
	:: fate != FATE_UNKNOWN
	:: fate == FATE_UNKNOWN && (stamp[r] == ME
#ifdef WITHOUT_not_ours
		|| stamp[r] != 0
#endif
		) -> fate = FATE_COMMITTED
#ifdef WITHOUT_proves_nothing
	:: fate == FATE_UNKNOWN && stamp[r] != ME && stamp[r] != 0 -> fate = FATE_NEVER
#endif
	:: fate == FATE_UNKNOWN && stamp[r] != ME && unit[r] == ME -> count++
	:: fate == FATE_UNKNOWN && stamp[r] != ME && unit[r] != ME && (fence[r] == MINE
#ifdef WITHOUT_since
		|| fence[r] > MINE
#endif
		) -> fate = FATE_NEVER
	:: fate == FATE_UNKNOWN && stamp[r] != ME && unit[r] != ME && fence[r] != MINE
	fi
}

inline tell(what) {
	told = what;
	assert(truth || told != COMMITTED || landed);
	assert(truth || told != NOT || !landed)
}

/* unitofwork.outcomeOf (ref.go) */
inline outcome_of(found) {
	if
	:: with_id && (found == ME
#ifdef WITHOUT_their_record
		|| found != 0
#endif
		) || fate == FATE_COMMITTED -> tell(COMMITTED)
	:: !(with_id && found == ME || fate == FATE_COMMITTED) && fate == FATE_NEVER -> tell(NOT)
	:: !(with_id && found == ME || fate == FATE_COMMITTED) && fate != FATE_NEVER && with_id && found != 0 -> tell(NOT)
	:: !(with_id && found == ME || fate == FATE_COMMITTED) && fate != FATE_NEVER && !(with_id && found != 0) && fate == FATE_HELD -> tell(DOUBT)
	:: !(with_id && found == ME || fate == FATE_COMMITTED) && fate != FATE_NEVER && !(with_id && found != 0) && fate != FATE_HELD && with_id -> tell(NOT)
	:: !(with_id && found == ME || fate == FATE_COMMITTED) && fate != FATE_NEVER && !with_id && fate != FATE_HELD ->
#ifdef WITHOUT_in_doubt
		tell(NOT)
#else
		tell(DOUBT)
#endif
	fi
}

/* unitofwork.Client.ask (outcome.go): the row of the first key, and the record of the ID */
inline ask() {
#ifdef WITHOUT_ask_together
	found = record;
#endif
	atomic {
#ifndef WITHOUT_ask_together
		found = record;
#endif
		count = 0; fate = FATE_UNKNOWN;
		weigh(0);
		fate = (fate == FATE_UNKNOWN && count == 1 -> FATE_HELD : fate);
		outcome_of(found);
		found = 0; fate = 0; count = 0
	}
}

proctype unit_of_work() {
	byte fate, count, found;
	bit unanswered;

	/* unitofwork.Unit.send (commit.go) */
	if
	:: atomic { slow -> tell(NOT) } /* never sent */;
#ifdef WITHOUT_deadline
		told = 0; sent = 1
#else
		goto over
#endif
	:: sent = 1
	fi;
sending:
	if
	:: atomic { ADMITTED -> carry_out(); tell(COMMITTED); goto over }
	:: atomic { !ADMITTED ->
#ifdef WITHOUT_resolve
		if
		:: !unanswered -> tell(NOT); goto over
		:: else
		fi;
#endif
#ifdef WITHOUT_first_sending
		if
		:: unanswered -> tell(NOT); goto over
		:: else
		fi;
#endif
		skip }
	:: atomic { !unanswered -> unanswered = 1; goto sending } /* no answer: once more */
	:: skip /* no answer, or busy, until the deadline */
	fi;
resolve: /* locks.Ending.Resolve (ending.go): a release of all, or nothing */
	if
	:: atomic { unit[0] == ME && unit[1] == ME -> unit[0] = 0; unit[1] = 0; tell(NOT); goto over }
	:: atomic { unit[0] == ME && unit[1] == ME -> unit[0] = 0; unit[1] = 0; goto resolve } /* its answer is lost */
	:: atomic { !(unit[0] == ME && unit[1] == ME) }
	:: goto unknown /* no answer */
	fi;
	/* locks.Client.snapshot (ending.go) */
#ifdef WITHOUT_one_moment
	weigh(0);
	weigh(1);
#endif
	atomic {
#ifndef WITHOUT_one_moment
		weigh(0);
		weigh(1);
#endif
		if
		:: fate == FATE_UNKNOWN && count == 1 -> fate = FATE_NEVER
		:: fate == FATE_UNKNOWN && count == 2 -> fate = FATE_HELD
		:: else
		fi;
		if
		:: fate == FATE_COMMITTED -> tell(COMMITTED)
		:: fate == FATE_NEVER -> tell(NOT)
		:: fate == FATE_HELD -> fate = 0; count = 0; goto resolve
		:: fate == FATE_UNKNOWN -> goto unknown
		fi;
		fate = 0; count = 0
	};
	/* locks.Client.release (release.go) */
	atomic { unit[0] = (unit[0] == ME -> 0 : unit[0]); unit[1] = (unit[1] == ME -> 0 : unit[1]) };
	goto over;
unknown:
	count = 0;
	if
	:: with_id -> ask()
	:: else ->
#ifdef WITHOUT_in_doubt
		tell(NOT)
#else
		tell(DOUBT)
#endif
	fi;
over:
	/* unitofwork.Client.Outcome (outcome.go), later, as often as it is asked */
	fate = 0; count = 0; unanswered = 0;
	do
	:: told == DOUBT -> ask()
	:: break
	od
}

init {
	atomic {
		if
		:: with_id = 1
		:: with_id = 0
		fi;
		if
		:: other_id = with_id
		:: other_id = 0
		fi;
		if
		:: holds = 1
		:: holds = 0
		fi;
		run world(); run unit_of_work()
	}
}
