/*
 * Units without locks that find their keys as they read.
 *
 * Modelled: the rows c, c/f, c/g; a record a that c/f guards, and b that c/g guards, or c, which is above.
 * A unit without locks reads one, then the other, and writes both, under keys that it finds: c/f then c/g,
 * c/g then c/f, c/f then c (which covers what was looked at), c then c/f (covered), c/f and then b, which it only
 * writes, under c or under c/g. Beside it another such unit, or one with locks: coarse, fine, on both
 * keys, one that writes a or b alone, one with a journal that others apply by halves, c/g and b first. What has locks
 * may be late, buried row by row, and cleaned. A copy of a commit without locks is carried out at any later time. A void run is
 * followed by one under the locks of what it has found, which starts over with more if that does not do.
 *
 * Left out: raising a token, and what is told (optimistic.pml, optimistic_told.pml; here a unit whose rows do
 * not fit any more learns of it); the stamps of records (optimistic.pml); three levels; several keys and rows above them
 * beside blind ones of another family; queues, which are empty here; a look of several requests; a key that guards
 * nothing of what was read, and is forgotten; how often a unit starts over.
 *
 * Size: 3 rows, 2 records, 2 units.
 */
/* property still_true: what a unit has read is true when it commits */
/* property one_state: after every read, all that was read is one state, that of this moment */
/* property alone: nobody commits without locks while a living unit holds a key of the line */
/* property in_order: of units that conflict the later one has the higher token, and no fence falls */
/* property once: a unit commits once */
/* clause fence_same: a commit needs the fence of each key's row to be as it was seen | mutant: a commit without locks needs each key's row to have the fence that it was seen with | finds: still_true */
/* clause rvn_same: a commit needs the RVN of each row above to be as it was seen | mutant: a commit without locks needs each row above its keys to have the RVN that it was seen with | finds: still_true */
/* clause again_fence: every further read needs the fences of the keys that were looked at before to be as they were seen | mutant: with every further read each key's row has the fence that it was seen with | finds: one_state */
/* clause again_rvn: it needs the RVNs of the rows above them to be as they were seen | mutant: with every further read each row above keys has the RVN that it was seen with | finds: one_state */
/* clause new_free: a key's row is free when it is first looked at | mutant: a row that a run without locks looks at first is in nobody's hands | finds: one_state */
/* clause new_bare: a key's row is bare when it is first looked at | mutant: nothing is below a key's row that a run without locks looks at first | finds: still_true */
/* clause above_free: a row above is free when it is first looked at | mutant: a row that a run without locks looks at first is in nobody's hands | finds: one_state */
/* clause cover_again: a key that a coarser one covers is looked at once more, with it | mutant: a key that a new one covers is looked at once more, with that | finds: one_state */
/* clause cover_rvn: the coarser key's row has the RVN that it had as a row above | mutant: a new key that was above others has the RVN that it had then | finds: one_state */
/* clause keep_covered: a blind key does not stand for what it covers | mutant: a key under which a run without locks only writes does not stand for what it covers | finds: still_true */
/* clause blind_rvn: a blind key's row has the RVN that it had as a row above | mutant: a key under which a run without locks only writes has the RVN that it had above others | finds: still_true */
/* clause blind_newer: a commit needs a token above the fence of a blind key's row | mutant: a commit without locks needs a token above the fence of a key's row that it did not look at | finds: in_order */
/* clause blind_free: a commit needs a blind key's row to be free | mutant: a commit without locks needs each key's row to be free | finds: alone */
/* clause blind_bare: a commit needs a blind key's row to be bare | mutant: a commit without locks needs nothing to be below a key's row | finds: alone */
/* clause burn: after a refusal that may pass, or no answer, the token is burned before anything follows | mutant: a commit without locks that was not answered makes its token unusable before it looks at the rows | finds: once */
/* clause reread: a record whose guard was not known before it was read is read again, with its row | mutant: a record whose guard was not looked at with it is read again, with that | finds: one_state */
/* clause held: under locks a unit reads and writes only what its keys guard, and starts over with more | mutant: under locks a record whose guard is not held is not shown | finds: still_true */

#define C 0
#define F 1
#define G 2

hidden byte still_true, one_state, alone, in_order, once; /* never set: they name what was violated */

/* lockrow.Row (row.go) */
byte unit[3], fence[3];
byte rvn;        /* of c: counts those who had it as a key, with locks or without */
byte below;      /* of c: bit u is an intent of unit u */
byte wit[3];     /* its witness: c/f or c/g */
bit prepared[3];
bit half;        /* a journal is applied by half: c/g and b are done, c/f and a are not */

byte a, b;       /* the records: how often each was written */
byte sa, sb;     /* their stamps */
bit holds[3], gone[3], landed[3];
bit read_a[3], read_b[3];
byte va[3], vb[3]; /* what a unit has read */
byte tok[3];       /* the token of its commit without locks, or else of its locks */

/* What a unit without locks reads and writes, in the order in which it finds it. */
byte script[3];
#define FG 0
#define GF 1
#define FC 2
#define CF 3
#define FbC 4  /* b blind, under c */
#define FbG 5  /* b blind, under c/g */
#define S(u) script[u]
#define FIRST_F(u) (S(u) == FG || S(u) == FC || S(u) >= FbC)
#define ALL(u) (S(u) == FG || S(u) == GF || S(u) == FbG -> 6 : 1) /* its keys, in bits, 1 << row */

/* Its commit: fences and RVN as they were seen. */
bit sent[3];
byte sF[3], sG[3], sC[3], sV[3];

/* How the rows are in the commit: footprint.Footprint.Needs (footprint.go) */
#ifdef WITHOUT_keep_covered
#define KEPT_F(u) false
#else
#define KEPT_F(u) (S(u) == FbC)
#endif
#define KEY_F(u) (S(u) == FG || S(u) == GF || S(u) == FbG || KEPT_F(u))
#define KEY_G(u) (S(u) == FG || S(u) == GF)
#define KEY_C(u) (S(u) == FC || S(u) == CF)
#define BLIND_G(u) (S(u) == FbG)
#define BLIND_C(u) (S(u) == FbC)
#define ABOVE_C(u) (S(u) == FG || S(u) == GF || S(u) == FbG)

/* What it needs of them: lockrow.Table.Pass (pass.go) */
#ifdef WITHOUT_fence_same
#define SAME(r, seen, u) (fence[r] < tok[u])
#else
#define SAME(r, seen, u) (fence[r] == seen)
#endif
#ifdef WITHOUT_rvn_same
#define RVN_SAME(u) true
#else
#define RVN_SAME(u) (rvn == sV[u])
#endif
#ifdef WITHOUT_blind_rvn
#define BLIND_RVN(u) true
#else
#define BLIND_RVN(u) (rvn == sV[u])
#endif
#ifdef WITHOUT_blind_newer
#define BLIND_NEWER(r, u) true
#else
#define BLIND_NEWER(r, u) (fence[r] < tok[u])
#endif
#ifdef WITHOUT_blind_free
#define BLIND_FREE(r) true
#else
#define BLIND_FREE(r) (unit[r] == 0)
#endif
#ifdef WITHOUT_blind_bare
#define BLIND_BARE true
#else
#define BLIND_BARE (below == 0)
#endif
#define F_OK(u) (!KEY_F(u) || unit[F] == 0 && SAME(F, sF[u], u))
#define G_OK(u) ((!KEY_G(u) || unit[G] == 0 && SAME(G, sG[u], u)) && (!BLIND_G(u) || BLIND_FREE(G) && BLIND_NEWER(G, u)))
#define C_OK(u) ((!KEY_C(u) || unit[C] == 0 && below == 0 && SAME(C, sC[u], u)) && \
	(!BLIND_C(u) || BLIND_FREE(C) && BLIND_BARE && BLIND_NEWER(C, u) && BLIND_RVN(u)) && \
	(!ABOVE_C(u) || unit[C] == 0 && fence[C] < tok[u] && RVN_SAME(u)))
#define ADMITTED(u) (sent[u] && F_OK(u) && G_OK(u) && C_OK(u))
/* lockrow.Need.Refuses (pass.go) */
#define NEVER_FITS(u) (KEY_F(u) && fence[F] != sF[u] || KEY_G(u) && fence[G] != sG[u] || BLIND_G(u) && fence[G] >= tok[u] || \
	KEY_C(u) && fence[C] != sC[u] || (BLIND_C(u) || ABOVE_C(u)) && (fence[C] >= tok[u] || rvn != sV[u]))

/* It writes a and b, so all keys are on its line. */
#define LIVES(r) (unit[r] != 0 && holds[unit[r]] && !gone[unit[r]])
#define NOBODY (!LIVES(C) && !LIVES(F) && !LIVES(G))

inline set_fence(r_, n_) { assert(in_order || n_ >= fence[r_]); fence[r_] = n_ }
inline write_a(u_, n_) { assert(in_order || n_ > sa); assert(still_true || !read_a[u_] || a == va[u_]); a++; sa = n_ }
inline write_b(u_, n_) { assert(in_order || n_ > sb); assert(still_true || !read_b[u_] || b == vb[u_]); b++; sb = n_ }
#define TRUE_NOW(u) ((!read_a[u] || a == va[u]) && (!read_b[u] || b == vb[u]))

/* unitofwork.Unit.write (commit.go): one transaction, locks.Pass.Actions (pass.go) and the writes */
inline carry_out(u) {
	assert(alone || NOBODY);
	assert(once || !landed[u]);
	landed[u] = 1;
	assert(still_true || TRUE_NOW(u));
	write_a(u, tok[u]); write_b(u, tok[u]);
	if
	:: KEY_F(u) -> set_fence(F, tok[u])
	:: else
	fi;
	if
	:: KEY_G(u) || BLIND_G(u) -> set_fence(G, tok[u])
	:: else
	fi;
	set_fence(C, tok[u]);
	if
	:: KEY_C(u) || BLIND_C(u) -> rvn++
	:: else
	fi
}

inline bury(r) { /* locks.acquisition.bury (wait.go) */
	atomic { unit[r] != 0 && gone[unit[r]] && !prepared[r] -> unit[r] = 0 }
}
inline clean(u) { /* locks.Client.clean (below.go) */
	atomic { (below & (1 << u)) && unit[wit[u]] != u -> below = below & ~(1 << u) }
}

/* The network, the server, and others. */
active proctype world() {
end:
	do
	:: atomic { ADMITTED(1) -> carry_out(1) }
	:: atomic { ADMITTED(2) -> carry_out(2) }
	:: atomic { holds[1] && !gone[1] -> gone[1] = 1 } /* a deadline passes */
	:: atomic { holds[2] && !gone[2] -> gone[2] = 1 }
	:: bury(C) :: bury(F) :: bury(G)
	:: clean(1) :: clean(2)
	/* a journal on c/f and c/g: unitofwork.Client.apply (apply.go), by anybody, the last step first */
	:: atomic { prepared[G] -> write_b(unit[G], tok[unit[G]]); prepared[G] = 0; unit[G] = 0; half = 1 }
	:: atomic { prepared[F] && !prepared[G] -> write_a(unit[F], tok[unit[F]]); prepared[F] = 0; holds[unit[F]] = 0;
		below = below & ~(1 << unit[F]); unit[F] = 0; half = 0 }
	od
}

/* locks.acquisition.take (acquire.go): all keys in one transaction, by a token that is raised as far as it has to be */
#define HAS(r) (keys & (1 << (r)))
inline lock(u) {
	atomic {
		unit[C] == 0 && (!HAS(C) || below == 0) && (!HAS(F) || unit[F] == 0) && (!HAS(G) || unit[G] == 0) ->
		t = fence[C];
		if :: HAS(F) && fence[F] > t -> t = fence[F] :: else fi;
		if :: HAS(G) && fence[G] > t -> t = fence[G] :: else fi;
		t++;
		set_fence(C, t);
		if
		:: HAS(C) -> unit[C] = u; rvn++
		:: else -> below = below | (1 << u); wit[u] = (HAS(F) -> F : G);
			if :: HAS(F) -> unit[F] = u; set_fence(F, t) :: else fi;
			if :: HAS(G) -> unit[G] = u; set_fence(G, t) :: else fi
		fi;
		tok[u] = (sent[u] -> tok[u] : t); /* its copies keep theirs */
		holds[u] = 1; gone[u] = 0
	}
}
#define STILL(u) ((!HAS(C) || unit[C] == u) && (HAS(C) || (below & (1 << u))) && (!HAS(F) || unit[F] == u) && (!HAS(G) || unit[G] == u))
inline set_free(u) { /* locks.Client.release (release.go) */
	if :: unit[C] == u -> unit[C] = 0 :: else fi;
	if :: unit[F] == u && !prepared[F] -> unit[F] = 0 :: else fi;
	if :: unit[G] == u && !prepared[G] -> unit[G] = 0 :: else fi;
	below = below & ~(1 << u); holds[u] = 0
}
#define WRITES_A 1
#define WRITES_B 2
#define JOURNAL 4
inline commit(u, w) { /* unitofwork.Unit.write (commit.go), locks.Ending.Actions (ending.go) */
	if
	:: atomic { STILL(u) ->
		assert(once || !landed[u]); landed[u] = 1;
		assert(still_true || TRUE_NOW(u));
		if :: (w) & WRITES_A -> write_a(u, t) :: else fi;
		if :: (w) & WRITES_B -> write_b(u, t) :: else fi;
		set_free(u) }
	:: atomic { !STILL(u) -> set_free(u); gone[u] = 1 }
	:: atomic { holds[u] = 0; gone[u] = 1 } /* it dies */
	fi
}

proctype locker(byte u) {
	byte t, keys, w;
	if
	:: keys = 1; w = WRITES_A + WRITES_B
	:: keys = 2; w = WRITES_A
	:: keys = 4; w = WRITES_B
	:: keys = 6; w = WRITES_A + WRITES_B
	:: keys = 6; w = JOURNAL
	:: keys = 1; w = WRITES_A
	:: keys = 1; w = WRITES_B
	fi;
	lock(u);
	/* unitofwork.Unit.get (get.go): it reads what it writes, one by one */
	atomic { if :: w & (WRITES_A + JOURNAL) -> va[u] = a; read_a[u] = 1 :: else fi };
	atomic { if :: w & (WRITES_B + JOURNAL) -> vb[u] = b; read_b[u] = 1 :: else fi };
	if
	:: w != JOURNAL -> commit(u, w)
	:: w == JOURNAL -> /* unitofwork.Unit.commitByJournal (journaled.go): prepared and decided at once */
		if
		:: atomic { STILL(u) -> prepared[F] = 1; prepared[G] = 1 }
		:: atomic { !STILL(u) -> set_free(u); gone[u] = 1 }
		fi
	fi
}

/* What rows must show: footprint.Glance.Saw (footprint.go) */
#ifdef WITHOUT_new_free
#define NEW_FREE(r) true
#else
#define NEW_FREE(r) (unit[r] == 0)
#endif
#ifdef WITHOUT_above_free
#define NEW_ABOVE true
#else
#define NEW_ABOVE (unit[C] == 0)
#endif
#ifdef WITHOUT_new_bare
#define NEW_BARE true
#else
#define NEW_BARE (below == 0)
#endif
#ifdef WITHOUT_again_fence
#define AGAIN(r, seen) true
#else
#define AGAIN(r, seen) (fence[r] == seen)
#endif
#ifdef WITHOUT_again_rvn
#define AGAIN_RVN true
#else
#define AGAIN_RVN (rvn == sV[u])
#endif
#ifdef WITHOUT_cover_again
#define COVERED true
#else
#define COVERED (fence[F] == sF[u])
#endif
#ifdef WITHOUT_cover_rvn
#define COVER_RVN true
#else
#define COVER_RVN (rvn == sV[u])
#endif
#define ONE_STATE (TRUE_NOW(u) && !(half && read_a[u] && read_b[u]))
#define HIGHER(x, y) ((x) > (y) -> (x) : (y))

/* unitofwork.Unit.getWithoutLocks, unitofwork.Unit.commitWithoutLocks (optimistic.go) */
proctype run_of(byte u) {
	byte t, keys;
#ifdef WITHOUT_reread
	atomic { if :: S(u) == FG -> va[u] = a; read_a[u] = 1 :: else fi };
#endif
	/* unitofwork.Unit.glance (glance.go): the first record */
	atomic {
		if
		:: FIRST_F(u) && NEW_ABOVE && NEW_FREE(F) -> sF[u] = fence[F]; sV[u] = rvn; keys = 2; t = HIGHER(fence[F], fence[C]);
			if :: !read_a[u] -> va[u] = a; read_a[u] = 1 :: else fi
		:: S(u) == GF && NEW_ABOVE && NEW_FREE(G) -> sG[u] = fence[G]; sV[u] = rvn; keys = 4; t = HIGHER(fence[G], fence[C]); vb[u] = b; read_b[u] = 1
		:: S(u) == CF && NEW_FREE(C) && NEW_BARE -> sC[u] = fence[C]; keys = 1; t = fence[C]; vb[u] = b; read_b[u] = 1
		:: else -> keys = (S(u) == GF -> 4 : (S(u) == CF -> 1 : 2)); goto fall_back
		fi;
		assert(one_state || ONE_STATE)
	};
	/* the second, with the rows of before; footprint.Glance.Keep (footprint.go). Or what is only written: footprint.Footprint.Write (footprint.go) */
	atomic {
		if
		:: S(u) == FG && AGAIN(F, sF[u]) && AGAIN_RVN && NEW_FREE(G) -> sG[u] = fence[G]; vb[u] = b; read_b[u] = 1; t = HIGHER(t, HIGHER(fence[G], fence[C]))
		:: S(u) == GF && AGAIN(G, sG[u]) && AGAIN_RVN && NEW_FREE(F) -> sF[u] = fence[F]; va[u] = a; read_a[u] = 1; t = HIGHER(t, HIGHER(fence[F], fence[C]))
		:: S(u) == FC && COVERED && COVER_RVN && NEW_FREE(C) && NEW_BARE -> sC[u] = fence[C]; sF[u] = 0; sV[u] = 0; vb[u] = b; read_b[u] = 1; t = HIGHER(t, fence[C])
		:: S(u) == CF && AGAIN(C, sC[u]) -> va[u] = a; read_a[u] = 1; t = HIGHER(t, fence[C])
		:: S(u) == FbC || S(u) == FbG
		:: else -> keys = ALL(u); goto fall_back
		fi;
		assert(one_state || S(u) >= FbC || ONE_STATE);
		keys = ALL(u)
	};
	if
	:: goto over /* it writes nothing, or its function fails: what it was told was one state */
	:: true
	fi;
	/* tokens.Clock.Next (clock.go) */
	if
	:: t++
	:: t = t + 2
	fi;
	atomic { sent[u] = 1; tok[u] = t }; /* unitofwork.Unit.send (commit.go) */
	if
	:: atomic { landed[u] -> goto over }
	:: atomic { ADMITTED(u) -> carry_out(u); goto over }
	:: atomic { !landed[u] && !ADMITTED(u) && NEVER_FITS(u) -> goto fall_back } /* locks.Pass.Refused (pass.go) */
	:: skip /* no answer, or a refusal that may pass */
	fi;
#ifndef WITHOUT_burn
	/* locks.Pass.Resolve, locks.Pass.Key (pass.go) */
	atomic {
		t = (KEY_F(u) -> F : (KEY_G(u) -> G : C));
		if
		:: fence[t] < tok[u] -> set_fence(t, tok[u])
		:: else ->
			if
			:: landed[u] -> goto over
			:: !landed[u] && NEVER_FITS(u)
			:: else -> goto over /* in doubt */
			fi
		fi };
#endif
fall_back: /* unitofwork.Unit.fallBack (runs.go): under the locks of what it has found */
	atomic { va[u] = 0; vb[u] = 0; read_a[u] = 0; read_b[u] = 0; t = 0 };
	lock(u);
	if
	:: FIRST_F(u) -> atomic { va[u] = a; read_a[u] = 1 }
	:: else -> atomic { vb[u] = b; read_b[u] = 1 }
	fi;
	if
	/* unitofwork.Unit.get (get.go), unitofwork.Unit.cover (unit.go): it needs a key that it does not hold. unitofwork.runs.again (runs.go) */
	:: keys == 2 || keys == 4 ->
#ifdef WITHOUT_held
		if
		:: S(u) == FG -> atomic { vb[u] = b; read_b[u] = 1 }
		:: S(u) == GF -> atomic { va[u] = a; read_a[u] = 1 }
		:: else
		fi;
		if
		:: S(u) == FG -> commit(u, WRITES_A); goto over
		:: S(u) == GF -> commit(u, WRITES_B); goto over
		:: else
		fi;
#endif
		atomic { set_free(u); gone[u] = 0; keys = ALL(u) };
		goto fall_back
	:: else
	fi;
	if
	:: S(u) == FG || S(u) == FC -> atomic { vb[u] = b; read_b[u] = 1 }
	:: S(u) == GF || S(u) == CF -> atomic { va[u] = a; read_a[u] = 1 }
	:: else
	fi;
	commit(u, WRITES_A + WRITES_B);
over:
	atomic { t = 0; keys = 0 }
}

init {
	atomic {
		if :: script[1] = FG :: script[1] = GF :: script[1] = FC :: script[1] = CF :: script[1] = FbC :: script[1] = FbG fi;
		run run_of(1);
		if
		:: if :: script[2] = FG :: script[2] = GF :: script[2] = FC :: script[2] = CF :: script[2] = FbC :: script[2] = FbG fi; run run_of(2)
		:: run locker(2)
		fi
	}
}
