/*
 * A group: a leader and two followers run their functions one after another, each on what those before it have
 * staged, and are committed in one transaction.
 *
 * Modelled: one key and one record, which each member reads and makes one larger; a function may fail if what it reads
 * is odd. The group has looked at the row, or holds it. The leader, or a follower, or nobody has an ID; another process
 * commits with locks and without, under the same ID or none. The group's commit may be lost, be late beyond anything, or be
 * carried out again long after; its answer may be lost, and that of the burn or the release that follows. A group
 * without locks that gives way runs again, together, under locks; one that was refused for a member, or held
 * its locks before, is split: each that was not told runs again alone. A holder may be late, and buried.
 *
 * Left out: who comes along and who is put back (queue.pml and order.pml have lines of their own kind); several keys
 * and records, and merging what is written to them; members that need a key which the group has not, or are left out;
 * what is told later to those in doubt, and a commit that is sent once more (optimistic_told.pml); several requests of
 * a group, rows above keys, and stamps (optimistic.pml).
 *
 * Size: 1 row, 1 record, 1 ID, 3 members, 2 commits of the group.
 */
/* property still_true: what a group has read is true when it commits, and each member has read what those before it leave */
/* property once: a unit commits once */
/* property truth: a member that is told that it committed did, and one that is told that it did not never does */
/* property no_mirage: a function's error is told only if what the function has seen was so */
/* property id_once: of all units with one ID one commits */
/* clause overlay: a function is shown what those before it have staged | mutant: a function of a group is shown what those before it have staged | finds: still_true */
/* clause withheld: the error of a follower's function is told only when the group is committed | mutant: the error of a member is told when its group is committed, or its function is called again | finds: no_mirage */
/* clause anew: if the group is not committed, or is in doubt, that function is called again | mutant: the error of a member is told when its group is committed, or its function is called again | finds: no_mirage */
/* clause left_out: a member whose function failed writes nothing in the group's commit | mutant: a member whose function failed writes nothing | finds: truth */
/* clause all_again: a group that runs again calls every function again, on what is there then | mutant: - | finds: still_true */
/* clause burn: a group without locks runs again, or is split, when it has burned its token | mutant: a commit without locks that was not answered makes its token unusable before it looks at the rows | finds: truth */
/* clause release: a group under locks is split when it has released them | mutant: a refusal proves nothing about copies: only a release that lands does | finds: once */
/* clause doubt: the members of a group in doubt are in doubt, and do not run again | mutant: the members of a group that is in doubt are in doubt, and do not run again | finds: once */
/* clause same: a group without locks needs the row's fence to be as it was seen | mutant: a commit without locks needs each key's row to have the fence that it was seen with | finds: still_true */
/* clause mine: a group under locks needs the row to be its leader's | mutant: a commit needs every key to be the unit's | finds: still_true */
/* clause ids: the record of each member's ID is written in the group's commit | mutant: the record of each member's id is written in the group's commit | finds: id_once */
/* clause id_absent: it is written only if there is none | mutant: an id commits once: its record is written only if there is none | finds: id_once */
/* clause leaves_stamp: the commit leaves the leader's commit stamp on the row | mutant: a commit without locks leaves its commit stamp on each key's row ; a commit leaves its stamp on every key | finds: once */

#define NONCE (r + 1)      /* of the group's first commit, and of its second */
#define OTHER 3
#define ALONE(m) (3 + (m)) /* of a member that runs alone */

hidden byte still_true, once, truth, no_mirage, id_once; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit, fence = 1, stamp;
byte a;           /* the record */
byte id, under;   /* whose the record of the ID is; how many have committed under it */
byte with_id;     /* which member has the ID */
bit other_id;

/* The group's commits: the network has copies of what was sent, for ever. */
bit held[2], sent[2], done[2];
byte in[2];                   /* whose writes: bit m */
byte was, base[2], last[2], tok[2];
#define IN(r, m) (in[r] & (1 << (m)))

/* The members */
bit picky[4], landed[4];
bit staged[4]; /* something was staged before it ran */
byte saw[4], told[4];
#define YES 1
#define DOUBT 2
#define ERROR 3
#define BEFORE 4 /* its ID was committed */
#define FAILS(m) (picky[m] && saw[m] % 2 == 1)

#ifdef WITHOUT_id_absent
#define ID_FREE(r) true
#else
#define ID_FREE(r) (!(with_id && IN(r, with_id)) || id == 0)
#endif
#ifdef WITHOUT_same
#define SAME(r) (fence < tok[r])
#else
#define SAME(r) (fence == was)
#endif
#ifdef WITHOUT_mine
#define MINE(r) (unit == 0 || unit == r + 1)
#else
#define MINE(r) (unit == r + 1)
#endif
#define ADMITTED(r) (sent[r] && (held[r] -> MINE(r) : unit == 0 && SAME(r)) && ID_FREE(r))
/* lockrow.Need.Refuses (pass.go) */
#define NEVER_FITS(r) (!held[r] && fence != was)

/* journal.PutIDRecord (idrecord.go) */
inline put(u) {
	assert(id_once || under == 0);
	under++;
	id = u
}

inline land(r, m) {
	if
	:: IN(r, m) ->
		assert(once || !landed[m]);
		assert(truth || told[m] != ERROR && told[m] != BEFORE);
		landed[m] = 1
	:: else
	fi
}

/* unitofwork.Unit.write (commit.go): the leader's transaction, with the writes of all */
inline carry_out(r) {
	assert(still_true || a == base[r]);
	land(r, 1); land(r, 2); land(r, 3);
	assert(still_true || last[r] == a + IN(r, 1) / 2 + IN(r, 2) / 4 + IN(r, 3) / 8);
	a = last[r];
	if
	:: with_id && IN(r, with_id) ->
#ifndef WITHOUT_ids
		put(r + 1)
#else
		assert(id_once || under == 0); under++
#endif
	:: else
	fi;
	unit = 0; fence = tok[r]; done[r] = 1;
#ifndef WITHOUT_leaves_stamp
	stamp = r + 1
#else
	skip
#endif
}

active proctype world() {
end:
	do
	:: atomic { ADMITTED(0) -> carry_out(0) }
	:: atomic { ADMITTED(1) -> carry_out(1) }
	:: atomic { unit == 1 || unit == 2 -> unit = 0 } /* it was late, and is buried */
	od
}

/* Another process, with locks or without: twice at most. */
proctype other() {
	byte n;
	do
	:: atomic { n < 2 && unit == 0 -> n++; fence++; unit = OTHER };
		if
		:: atomic { !other_id || id == 0 -> a++; unit = 0; stamp = OTHER;
			if
			:: other_id -> put(OTHER); other_id = 0
			:: else
			fi }
		:: atomic { unit = 0 }
		fi
	:: atomic { n < 2 && unit == 0 && (!other_id || id == 0) -> n++; fence++; a++; stamp = OTHER;
		if
		:: other_id -> put(OTHER); other_id = 0
		:: else
		fi }
	:: atomic { other_id && id == 0 -> put(OTHER); other_id = 0 } /* with other keys */
	:: break
	od
}

/* A member's function: unitofwork.follower.start (following.go), unitofwork.Unit.inGroupItems (in_group.go), unitofwork.merged.add (merge.go) */
inline run_fn(m) {
	if
	:: told[m]
	:: !told[m] ->
#ifdef WITHOUT_all_again
		saw[m] = (r == 0 -> last[r] : saw[m]);
#else
#ifdef WITHOUT_overlay
		saw[m] = base[r];
#else
		saw[m] = last[r];
#endif
#endif
		staged[m] = (in[r] != 0);
		if
#ifndef WITHOUT_left_out
		:: FAILS(m) ->
#ifdef WITHOUT_withheld
			told[m] = ERROR;
			assert(no_mirage || !staged[m])
#else
			skip
#endif
		:: !FAILS(m) -> in[r] = in[r] | (1 << (m)); last[r] = saw[m] + 1
#else
		:: in[r] = in[r] | (1 << (m)); last[r] = saw[m] + 1
#endif
		fi
	fi
}

/* unitofwork.follower.settle (following.go): the group is committed */
inline tell(m) {
	if
	:: told[m]
	:: !told[m] && FAILS(m) -> assert(truth || !landed[m]); told[m] = ERROR
	:: !told[m] && !FAILS(m) -> assert(truth || landed[m]); told[m] = YES
	fi
}

/* The same: it is not, and never will be; or that is not known. What the leader was told was so before anybody had staged anything: unitofwork.Unit.leadsOn (group_runs.go) */
inline settle(m, in_doubt) {
	if
	:: told[m]
	:: !told[m] && FAILS(m) ->
#ifdef WITHOUT_anew
		told[m] = ERROR; assert(no_mirage || !staged[m])
#else
		told[m] = (m == 1 -> ERROR : 0)
#endif
	:: !told[m] && !FAILS(m) -> told[m] = (in_doubt -> DOUBT : 0)
	fi
}

#ifdef WITHOUT_doubt
#define AGAIN(m) (told[m] == 0 || told[m] == DOUBT)
#else
#define AGAIN(m) (told[m] == 0)
#endif

/* unitofwork.Client.once (do.go), with locks: it waits for them, reads, and commits, or is told why not */
inline alone(m) {
	if
	:: atomic { AGAIN(m) };
		atomic { unit == 0 -> fence++; unit = ALONE(m) };
		atomic {
			unit = 0;
			if
			:: m == with_id && id -> told[m] = BEFORE
			:: (m != with_id || !id) && picky[m] && a % 2 == 1 -> told[m] = ERROR
			:: (m != with_id || !id) && !(picky[m] && a % 2 == 1) ->
				assert(once || !landed[m]);
				landed[m] = 1; a++; stamp = ALONE(m); told[m] = YES;
				if
				:: m == with_id -> put(ALONE(m))
				:: else
				fi
			fi
		}
	:: atomic { !AGAIN(m) }
	fi
}

proctype group() {
	byte r;
	if
	:: atomic { unit == 0 -> was = fence; base[0] = a } /* unitofwork.Unit.lookTogether (group_reads.go) */
	:: goto take
	fi;
again:
	atomic {
		last[r] = base[r];
		if
		:: with_id && !told[with_id] && id -> told[with_id] = BEFORE /* unitofwork.Unit.lookUpIn (group_reads.go) */
		:: else
		fi;
		run_fn(1);
		if /* it leads nobody */
		:: with_id == 1 && (told[1] || FAILS(1)) -> settle(1, 0); unit = (unit == NONCE -> 0 : unit); goto split
		:: else
		fi
	};
	/* unitofwork.Unit.runFollowers (group_runs.go) */
	atomic { run_fn(2) };
	atomic { run_fn(3) };
	/* unitofwork.Unit.commit (commit.go) */
	if
	:: atomic { in[r] == 0 -> tell(1); tell(2); tell(3); unit = (unit == NONCE -> 0 : unit); goto split }
	:: atomic { in[r] -> tok[r] = (held[r] -> tok[r] : was + 1); sent[r] = 1 }
	:: atomic { in[r] && !held[r] -> tok[r] = was + 2; sent[r] = 1 } /* its clock is ahead */
	fi;
	if
	:: atomic { done[r] -> goto yes }
	:: atomic { !done[r] && ADMITTED(r) -> carry_out(r); goto yes }
	:: atomic { !done[r] && !ADMITTED(r) ->
		if
		:: NEVER_FITS(r) -> goto no
		:: else
		fi }
	:: skip /* no answer */
	fi;
	if
	/* locks.Pass.Resolve (pass.go) */
	:: atomic { !held[r] ->
		if
#ifndef WITHOUT_burn
		:: fence < tok[r] -> fence = tok[r]; goto no
#else
		:: fence < tok[r] -> goto no
#endif
		:: fence >= tok[r] && stamp == NONCE -> goto yes
		:: fence == tok[r] && stamp != NONCE -> goto no
		:: fence > tok[r] && stamp != NONCE -> goto doubt
		fi }
	/* locks.Ending.Resolve (ending.go) */
	:: atomic { held[r] ->
		if
#ifndef WITHOUT_release
		:: unit == NONCE -> unit = 0; goto no
#else
		:: unit == NONCE -> goto no
#endif
		:: unit != NONCE && stamp == NONCE -> goto yes
		:: unit != NONCE && stamp != NONCE && fence == tok[r] -> goto no
		:: unit != NONCE && stamp != NONCE && fence != tok[r] -> goto doubt
		fi }
	:: goto doubt /* no answer */
	fi;
yes:
	atomic { assert(truth || done[r]); tell(1); tell(2); tell(3); goto split };
doubt:
	atomic { settle(1, 1); settle(2, 1); settle(3, 1); goto split };
no:
	atomic { settle(1, 0); settle(2, 0); settle(3, 0) };
	if
	:: atomic { r == 0 && !held[0] -> r = 1 } /* unitofwork.Unit.giveWay (runs.go) */
	:: goto split
	fi;
take:
	atomic { unit == 0 -> held[r] = 1; fence++; unit = NONCE; tok[r] = fence };
	atomic { base[r] = a; goto again };
split:
	alone(1);
	alone(2);
	alone(3)
}

init {
	atomic {
		select(with_id : 0..2);
		if
		:: with_id -> other_id = 1
		:: true
		fi;
		if
		:: picky[1] = 1
		:: true
		fi;
		if
		:: picky[2] = 1
		:: true
		fi;
		if
		:: picky[3] = 1
		:: true
		fi;
		if
		:: a = 1
		:: true
		fi;
		run other(); run group()
	}
}
