/*
 * Giving up: there are no ghost locks.
 *
 * Modelled: a unit takes two keys, both in one attempt or one after the other. Every
 * attempt may be lost, be late beyond anything, or be carried out again long after;
 * its answer may be lost. The unit gives up at any time: it burns, then releases,
 * and says that nothing is left of it. Meanwhile the rows are absent, or another
 * unit has them, or has had them, and raises their fences; and others bury what has
 * been silent for a lease.
 *
 * A unit that asked for no place, and each of whose sendings was refused, burns nothing. What a
 * copy takes then is what a dead holder has: others bury it a lease later.
 *
 * Left out: intents (acquire.pml), which are taken and freed with the key of their
 * step; the queue (queue.pml), but that asking for a place takes a token of its own.
 * A giving-up that does not get through either: then the rows are those of any dead
 * holder, and others bury them.
 *
 * Size: 2 keys, 3 attempts (4 without goes_on), tokens up to 6; another unit that has each row once.
 */
/* property ghost: nothing shows a unit that has said that nothing is left of it, unless all that it asked for was refused, without a place: then a copy may take rows, until others bury them */
/* property sound: a row that is another's is not changed by giving up, and no fence falls */
/* property stands: what the unit has secured no release of its own frees */
/* clause goes_on: a unit frees nothing while it goes on | mutant: a unit frees nothing while it goes on | finds: stands */
/* clause burn: giving up burns the token of every attempt that may yet land | mutant: giving up burns the token of every attempt that may yet land | finds: ghost */
/* clause burn_refused: attempts that were refused are burned, too: the network may have copies | mutant: attempts that were refused are burned, too: the network may have copies | finds: ghost */
/* clause spared_answered: a token is left unburned only if every sending was answered | mutant: a unit leaves tokens unburned only if every sending was answered | finds: ghost */
/* clause spared_placeless: a token is left unburned only if the unit asked for no place | mutant: a unit leaves tokens unburned only if it asked for no place | finds: ghost */
/* clause above_landed: an attempt that landed says nothing of one with a higher token: that is burned, too | mutant: an attempt that landed says nothing of one with a higher token: that is burned, too | finds: ghost */
/* clause burn_first: burning comes before releasing | mutant: burning comes before releasing | finds: ghost */
/* clause never_lower: a token is burned by raising a fence, never by lowering one | mutant: a token is burned by raising a fence, never by lowering one | finds: sound */
/* clause burn_absent: where there is no row, a token is burned by writing a free one | mutant: where there is no row, a token is burned by writing a free one | finds: ghost */
/* clause absent_only: a burn writes an absent row only where there is none | mutant: a burn writes an absent row only where there is none | finds: sound */
/* clause landed: a burn refused by a row that shows our unit means that the attempt landed | mutant: a burn refused by a row that shows our unit means that the attempt landed | finds: ghost */
/* clause unhidden: a burn does not hide what a copy of another attempt took | mutant: a burn does not hide what a copy of another attempt took | finds: ghost */
/* clause burn_mine: a token is burned on a row that the unit has, too | mutant: a token is burned on a row that the unit has, too | finds: ghost */
/* clause all_of_it: giving up releases all that may be ours, not only what was secured | mutant: giving up releases all that may be ours, not only what was secured | finds: ghost */
/* clause look_behind: what landed a lease ago is looked for row by row, whatever its first row says by now | mutant: what landed a lease ago is looked for row by row, whatever its first row says by now | finds: ghost */
/* clause last_step: the last step that shows the unit is released, and all before it | mutant: the last step that shows the unit is released, and all before it | finds: ghost */
/* clause elsewhere: what is taken says nothing of what is under way for other rows | mutant: what is taken says nothing of what is under way for other rows | finds: ghost */
/* clause fence_stays: the fence stays when a row is freed | mutant: the fence stays when a row is freed | finds: ghost */
/* clause strictly: newer is newer, not as new | mutant: newer is newer, not as new | finds: ghost */

#ifdef WITHOUT_goes_on
#define TRIES 4
bit released[2]; /* the network has a copy of that release, for ever */
#else
#define TRIES 3
#endif
#define ME 1
#define OTHER 2

hidden byte ghost, sound, stands; /* never set: they name what was violated */
hidden byte i, high;      /* scratch */

/* The rows of two keys, in order: lockrow.Row (row.go). */
byte unit[2];
byte fence[2]; /* 0: there is no row */
byte rvn[2];   /* the attempt that took it */
bit had[2];    /* the other unit has had it */
bit slow;      /* a lease has passed since the acquisition began */
bit left;      /* it has said that nothing is left of it */
bit placed;    /* it asks for a place in a queue: such an attempt is in locks.ledger (ledger.go) */
bit refused;   /* each sending of all that it asked for was refused, and no place was */
bit spared;    /* so it burns nothing */

/* locks.attempt (ledger.go) */
byte tok[TRIES + 1]; /* 0: none yet */
byte first[TRIES + 1];
byte size[TRIES + 1];
bit kept[TRIES + 1]; /* the unit keeps it in mind: it was not seen to succeed */
bit doubts[TRIES + 1];
bit dead[TRIES + 1];

byte tries, token, secured, reach, held;

#ifdef WITHOUT_elsewhere
#define MEETS(i, k) true
#else
#define MEETS(i, k) (first[i] + size[i] > first[k] && first[i] < first[k] + size[k])
#endif

#ifdef WITHOUT_strictly
#define NEWER(r, k) (fence[r] <= tok[k])
#else
#define NEWER(r, k) (fence[r] < tok[k])
#endif
#define ADMITS(r, k) (unit[r] == 0 && NEWER(r, k))
#define IN(r, k) (first[k] <= r && r < first[k] + size[k])
#define ADMITTED(k) ((!IN(0, k) || ADMITS(0, k)) && (!IN(1, k) || ADMITS(1, k)))

/* lockrow.Table.Acquire (expressions.go): an attempt is carried out, as one */
inline take(k) {
	assert(ghost || !left || refused);
	if
	:: IN(0, k) -> unit[0] = ME; fence[0] = tok[k]; rvn[0] = k
	:: else
	fi;
	if
	:: IN(1, k) -> unit[1] = ME; fence[1] = tok[k]; rvn[1] = k
	:: else
	fi
}

inline set_free(r) { /* lockrow.Free (expressions.go) */
	unit[r] = 0; rvn[r] = 0;
#ifdef WITHOUT_fence_stays
	fence[r] = 1;
#endif
}

/* The network has a copy of every attempt, for ever; others come and go; time passes. */
active proctype world() {
end:
	do
	:: atomic { tok[1] && ADMITTED(1) -> take(1) }
	:: atomic { tok[2] && ADMITTED(2) -> take(2) }
	:: atomic { tok[3] && ADMITTED(3) -> take(3) }
#ifdef WITHOUT_goes_on
	:: atomic { tok[4] && ADMITTED(4) -> take(4) }
	:: atomic { released[0] && unit[0] == ME -> assert(stands || secured < 1); set_free(0) }
	:: atomic { released[1] && unit[1] == ME -> assert(stands || secured < 2); set_free(1) }
#endif
	:: atomic { unit[0] == 0 && !had[0] && fence[0] < 4 -> unit[0] = OTHER; had[0] = 1; fence[0]++ }
	:: atomic { unit[1] == 0 && !had[1] && fence[1] < 4 -> unit[1] = OTHER; had[1] = 1; fence[1]++ }
	:: atomic { unit[0] == OTHER -> set_free(0) }
	:: atomic { unit[1] == OTHER -> set_free(1) }
	:: atomic { !slow && (!left || refused) -> slow = 1 }
	/* locks.acquisition.bury (wait.go), by others */
	:: atomic { slow && unit[0] == ME -> set_free(0) }
	:: atomic { slow && unit[1] == ME -> set_free(1) }
	od
}

/* locks.acquisition.secure (acquire.go) */
inline secure(k) {
	secured = secured + size[k]; placed = 0;
	kept[k] = kept[k] && doubts[k]; dead[k] = 1;
	i = 1;
	do
	:: i <= TRIES ->
		if
		:: kept[i] && (tok[i] <= tok[k] && MEETS(i, k)
#ifdef WITHOUT_above_landed
			|| true
#endif
			) ->
			dead[i] = 1; kept[i] = doubts[i]
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* A row shows the unit: locks.acquisition.landed (acquire.go). */
inline landed_at(r) {
	if
	:: kept[rvn[r]] && first[rvn[r]] == secured -> k = rvn[r]; secure(k); k = tries
#ifdef WITHOUT_goes_on
	:: else -> set_free(r); released[r] = 1
#else
	:: else -> goto gives_up
#endif
	fi
}

/* locks.acquisition.raise (acquire.go) */
inline raise_above(r) {
	if
	:: IN(r, k) && unit[r] == 0 && fence[r] >= token -> token = fence[r] + 1
	:: else
	fi
}

/* What the rows show a refused attempt: lockrow.Decide (judge.go). */
inline look() {
	if
	:: IN(0, k) && unit[0] == ME -> landed_at(0)
	:: IN(1, k) && unit[1] == ME && !(IN(0, k) && unit[0] == ME) -> landed_at(1)
	:: else -> raise_above(0); raise_above(1)
	fi
}

#ifdef WITHOUT_unhidden
#define NOT_MINE(r) true
#else
#define NOT_MINE(r) (unit[r] != ME)
#endif

/* locks.ledger.toBurn (ledger.go) */
#define LATER(k, j) (j > k && kept[j] && first[j] == first[k] && tok[j] >= tok[k])
#ifdef WITHOUT_goes_on
#define COVERED(k) (LATER(k, 2) || LATER(k, 3) || LATER(k, 4))
#else
#define COVERED(k) (LATER(k, 2) || LATER(k, 3))
#endif
#ifdef WITHOUT_burn_refused
#define TO_BURN(k) (!spared && kept[k] && !dead[k] && doubts[k])
#else
#define TO_BURN(k) (!spared && kept[k] && !dead[k] && (doubts[k] || !COVERED(k)))
#endif
#ifdef WITHOUT_goes_on
#define DOUBTED (kept[1] && doubts[1] || kept[2] && doubts[2] || kept[3] && doubts[3] || kept[4] && doubts[4])
#else
#define DOUBTED (kept[1] && doubts[1] || kept[2] && doubts[2] || kept[3] && doubts[3])
#endif

/* locks.Client.release (release.go): what is still the unit's of the first held steps */
inline release() {
	atomic {
		if
		:: held > 0 && unit[0] == ME -> set_free(0)
		:: else
		fi;
		if
		:: held > 1 && unit[1] == ME -> set_free(1)
		:: else
		fi
	}
}

active proctype unit_of_work() {
	byte k;

	/* tokens.Clock.Next (clock.go) */
	if
	:: token = 1
	:: token = 2
	fi;
	do
	/* locks.acquisition.take (acquire.go) */
	:: atomic { tries < TRIES && secured < 2 ->
			if
			/* it has asked for a place in the queue meanwhile: locks.acquisition.join (queue.go) */
			:: tries > 0 && secured == 0 && token < 3 -> token++; placed = 1
			:: true
			fi;
			tries++; k = tries; first[k] = secured; tok[k] = token;
			if
			:: size[k] = 1
			:: secured == 0 -> size[k] = 2
			fi;
			high = secured + size[k]; reach = (high > reach -> high : reach); high = 0 };
		if
		/* answered: carried out, or refused */
		:: atomic { ADMITTED(k) -> take(k); secure(k) }
		:: atomic { !ADMITTED(k) -> kept[k] = 1; look() }
		/* no answer; repeated, it was refused */
		:: atomic { kept[k] = 1; doubts[k] = 1 };
			atomic { look() }
		fi
	:: break /* whatever the reason */
	od;
gives_up: /* locks.acquisition.giveUp (giveup.go) */
	atomic {
		held = secured;
		refused = !placed && !DOUBTED;
#ifdef WITHOUT_spared_answered
		spared = !placed
#else
#ifdef WITHOUT_spared_placeless
		spared = !DOUBTED
#else
		spared = refused
#endif
#endif
	};
#ifdef WITHOUT_burn_first
	release();
#endif
	k = 1;
next_burn:
	if
#ifndef WITHOUT_burn
	:: k <= TRIES && TO_BURN(k)
#endif
	:: k <= TRIES && !TO_BURN(k) -> k++; goto next_burn
	:: k > TRIES -> goto all_burned
#ifdef WITHOUT_burn
	:: k <= TRIES && TO_BURN(k) -> k++; goto next_burn
#endif
	fi;
	/* locks.acquisition.burn (giveup.go), lockrow.BurnIf, lockrow.BurnAbsentIf (expressions.go): each write is one step */
again:
	atomic {
		if
#ifdef WITHOUT_never_lower
		:: fence[first[k]] != 0 -> assert(sound || fence[first[k]] <= tok[k]); fence[first[k]] = tok[k]; goto burned
#else
		:: fence[first[k]] != 0 && fence[first[k]] < tok[k] && NOT_MINE(first[k]) -> fence[first[k]] = tok[k]; goto burned
		:: fence[first[k]] != 0 && !(fence[first[k]] < tok[k] && NOT_MINE(first[k])) ->
			if
#ifndef WITHOUT_landed
			:: unit[first[k]] == ME && kept[rvn[first[k]]] ->
#ifdef WITHOUT_all_of_it
				high = first[rvn[first[k]]];
#else
				high = first[rvn[first[k]]] + size[rvn[first[k]]];
#endif
				held = (high > held -> high : held); high = 0;
#ifdef WITHOUT_burn_mine
				goto burned
#endif
#endif
			:: else
			fi;
			if
			:: fence[first[k]] >= tok[k] -> goto burned
			:: else -> goto stamp
			fi
#endif
		:: fence[first[k]] == 0
		fi
	};
#ifdef WITHOUT_burn_absent
	goto burned;
#endif
	atomic {
		if
		:: fence[first[k]] == 0 -> fence[first[k]] = tok[k]
		:: else ->
#ifdef WITHOUT_absent_only
			assert(sound || (unit[first[k]] != OTHER && fence[first[k]] <= tok[k]));
			fence[first[k]] = tok[k]
#else
			goto again
#endif
		fi
	};
stamp: /* lockrow.RestampKeyIf (expressions.go): the row was the unit's when it was looked at */
	atomic {
		if
		:: fence[first[k]] < tok[k] && unit[first[k]] == ME -> fence[first[k]] = tok[k]; goto burned
		:: else -> goto again
		fi
	};
burned:
	k++;
	goto next_burn;
all_burned:
	k = 0;
#ifndef WITHOUT_burn_first
	/* locks.acquisition.leftBehind (giveup.go): one transactional read */
	atomic {
#ifndef WITHOUT_look_behind
		if
		:: slow ->
#ifdef WITHOUT_last_step
			if
			:: held < 1 && reach > 1 && unit[1] == ME -> held = 1
			:: else
			fi
#else
			if
			:: held < 2 && reach > 1 && unit[1] == ME -> held = 2
			:: held < 1 && reach > 0 && unit[0] == ME && unit[1] != ME -> held = 1
			:: else
			fi
#endif
		:: else
		fi;
#endif
		skip
	};
	release();
#endif
	atomic { left = 1; assert(ghost || refused || (unit[0] != ME && unit[1] != ME)) }
}
