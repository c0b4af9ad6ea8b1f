/*
 * Silence recorded in the row: short-lived processes add up what each has seen of a
 * dead holder.
 *
 * Modelled: two units that have one key one after the other, the first renews it;
 * two watchers that look at the row, write down how long its RVN has been silent,
 * bury, and die at any time, with all they knew. Copies of renewals, records and
 * burials are kept by the network for ever, and carried out whenever.
 *
 * Time: ticks, the same for all. A clock may stand still while its machine is
 * suspended. A lease is L ticks: a holder counts as lost when L have passed since
 * before the confirmed sign of life was sent.
 *
 * Left out: clocks of different rates (argued), journals, the queue.
 * Size: 2 units, 3 RVNs, 2 watchers, L = 3 (4: -DL=4).
 */
/* property alone: no two units believe at one time that they hold the key */
/* property truth: what is recorded for the row's RVN is no longer than its silence */
/* property rises: what is recorded for one RVN never falls */
/* clause FULL_LEASE: a holder is dead after a full lease of silence | mutant: a holder is dead after a full lease of silence, not sooner | finds: alone */
/* clause ABSOLUTE: the record is set, nothing is added to it | mutant: a record of a silence is set, nothing is added to it | finds: truth */
/* clause MORE: a record only replaces a shorter one of that RVN | mutant: a record only replaces a shorter one of that rvn | finds: rises */
/* clause REC_RVN: a record needs the RVN that was watched | mutant: a record needs the rvn that was watched | finds: rises */
/* clause OF_THIS: what is recorded for another RVN counts for nothing | mutant: what a row says of a silence counts for the sign of life that it names | finds: truth */
/* clause NOT_BOTH: what a process knows is the longer of its own and what is recorded, not the sum | mutant: what a process knows is the longer of its own and what is recorded, not the sum | finds: truth */
/* clause AFTER_ANSWER: a watch begins after the answer | mutant: the watch begins after the answer, not before the question | finds: truth */
/* clause SIGN_OF_LIFE: a new RVN begins a new watch | mutant: a new RVN is a sign of life | finds: truth */
/* clause BURY_RVN: a bury needs the RVN that was watched | mutant: a bury needs the RVN that was watched | finds: alone */
/* clause RENEW_LATER: a renewal never writes over a later one's RVN | mutant: a renewal never writes over a later one's RVN | finds: alone */
/* clause OWN_RVN: every renewal writes an RVN of its own | mutant: every round writes an RVN of its own | finds: alone */
/* clause FROM_SENDING: a confirmation counts from before its first sending | mutant: a confirmation counts from before its first sending | finds: alone */

#ifndef L
#define L 3
#endif

hidden byte alone, truth, rises;

byte unit, rvn;     /* the row; RVNs: unit 1: 1, 2; unit 2: 3 */
byte srvn, sfor;    /* silentOf, silentFor */
byte last;          /* who took the key last */
byte age[4];        /* of an RVN, since it was sent; at most L */
bit was[4];         /* it was sent */
byte conf[3];
bit holds[3], lost[3];
bit renewal[3];
bit rec[16];        /* by RVN * 5 + value */
bit bury[3];

#define BEL(u) (holds[u] && !lost[u])
#define ALONE (!(BEL(1) && BEL(2)))
#define FIRST(u) ((u) * 2 - 1)

/* watchers: the RVN, and how long it is known to be silent */
byte seen[2], known[2];
#ifdef WITHOUT_ABSOLUTE
byte el[2]; /* of that, since the last record of its own */
#endif
#ifdef WITHOUT_AFTER_ANSWER
bit asking[2];
byte q[2];
#endif
#ifdef WITHOUT_AFTER_ANSWER
#define ASKED(w) asking[w]
#else
#define ASKED(w) true
#endif
#ifdef WITHOUT_SIGN_OF_LIFE
#define GOES_ON(w) (seen[w] != 0)
#else
#define GOES_ON(w) (seen[w] == rvn)
#endif
#ifdef WITHOUT_OF_THIS
#define COUNTS (srvn != 0)
#else
#define COUNTS (srvn == rvn)
#endif
#define CAP(x) ((x) < L -> (x) : L)

inline grow(r) { if :: was[r] && age[r] < L -> age[r]++ :: else fi }
inline notice(u) { if :: holds[u] && age[conf[u]] >= L -> lost[u] = 1 :: else fi }
inline clock(w) {
#ifdef WITHOUT_AFTER_ANSWER
	if
	:: asking[w] && q[w] < L -> q[w]++
	:: else
	fi;
#endif
#ifdef WITHOUT_ABSOLUTE
	el[w] = CAP(el[w] + 1);
#endif
	if
	:: seen[w] && known[w] < L -> known[w]++
	:: else
	fi
}

inline carry_rec(r, v) {
	atomic { rec[r * 5 + v] && unit != 0 && (rvn == r
#ifdef WITHOUT_REC_RVN
		|| true
#endif
		) && (srvn != r || sfor < v
#ifdef WITHOUT_MORE
		|| true
#endif
		) && !(srvn == r && sfor == v) ->
		assert(rises || !(srvn == rvn && srvn == r && v < sfor) && !(srvn == rvn && srvn != r));
#ifdef WITHOUT_ABSOLUTE
		if
		:: srvn == r -> sfor = (sfor + v < L -> sfor + v : L)
		:: else -> sfor = v
		fi;
		rec[r * 5 + v] = 0; /* even a single copy is too many */
#else
		sfor = v;
#endif
		srvn = r;
		assert(truth || srvn != rvn || sfor <= age[rvn]) }
}

inline carry_bury(r) {
	atomic { bury[r] && unit != 0 && (rvn == r
#ifdef WITHOUT_BURY_RVN
		|| true
#endif
		) -> unit = 0 }
}

inline carry_renewal(u, r) {
	atomic { renewal[r] && unit == u && (rvn <= r
#ifdef WITHOUT_RENEW_LATER
		|| true
#endif
		) && rvn != r -> rvn = r }
}

inline watcher(w) {
	if
#ifdef WITHOUT_AFTER_ANSWER
	:: atomic { !asking[w] -> asking[w] = 1; q[w] = 0 }
#endif
	/* lockrow.Sightings.See (sightings.go): a look: what the row shows now; the answer comes now, or as if its clock stood still */
	:: atomic { (unit != 0 && rvn < 3 && ASKED(w)) ->
		if
		:: GOES_ON(w)
		:: else -> known[w] = 0
#ifdef WITHOUT_ABSOLUTE
			; el[w] = 0
#endif
		fi;
		seen[w] = rvn;
		if
		:: COUNTS ->
#ifdef WITHOUT_NOT_BOTH
			known[w] = CAP(known[w] + sfor)
#else
			known[w] = (known[w] < sfor -> sfor : known[w])
#endif
		:: else
		fi;
#ifdef WITHOUT_AFTER_ANSWER
		known[w] = CAP(known[w] + q[w]);
		asking[w] = 0; q[w] = 0
#endif
		}
	/* locks.Client.noteSilences (silence.go): it writes down what it knows */
#ifdef WITHOUT_ABSOLUTE
	:: atomic { seen[w] && el[w] > 0 && !rec[seen[w] * 5 + el[w]] -> rec[seen[w] * 5 + el[w]] = 1; el[w] = 0 }
#else
	:: atomic { seen[w] && known[w] > 0 && !rec[seen[w] * 5 + known[w]] -> rec[seen[w] * 5 + known[w]] = 1 }
#endif
	:: atomic { seen[w] && (known[w] >= L
#ifdef WITHOUT_FULL_LEASE
		|| true
#endif
		) && !bury[seen[w]] -> bury[seen[w]] = 1 }
	/* it dies, another begins */
	:: atomic { seen[w] -> seen[w] = 0; known[w] = 0
#ifdef WITHOUT_ABSOLUTE
		; el[w] = 0
#endif
		}
	fi
}

active proctype world() {
end:
	do
	/* a tick; clocks may stand still, those of watchers one by one */
	:: atomic { true ->
		grow(1); grow(2); grow(3);
		notice(1); notice(2);
		clock(0); clock(1) }
#ifdef SUSPEND
	:: atomic { true ->
		grow(1); grow(2); grow(3);
		notice(1); notice(2);
		clock(0) }
#endif
	:: carry_rec(1, 1) :: carry_rec(1, 2) :: carry_rec(1, 3)
	:: carry_rec(2, 1) :: carry_rec(2, 2) :: carry_rec(2, 3)
#if L > 3
	:: carry_rec(1, 4) :: carry_rec(2, 4)
#endif
	:: carry_bury(1) :: carry_bury(2)
#ifndef WITHOUT_OWN_RVN
	:: carry_renewal(1, 2)
#endif
#if defined(WITHOUT_RENEW_LATER)
	:: atomic { renewal[1] && unit == 1 && rvn != 1 -> rvn = 1 }
#endif
	:: watcher(0)
	:: watcher(1)
	od
}

/* A unit: takes, renews once, may be slow everywhere. */
proctype owner(byte u) {
	atomic { unit == 0 && last == u - 1 -> was[FIRST(u)] = 1 };  /* it asks: the lease begins */
	atomic { unit == 0 && last == u - 1 -> unit = u; rvn = FIRST(u); last = u };
	/* the answer */
	atomic {
		if
		:: age[FIRST(u)] >= L -> goto over
		:: else -> conf[u] = FIRST(u); holds[u] = 1
		fi;
		assert(alone || ALONE);
		if
		:: u == 2 -> goto over
		:: else
		fi
	};
	/* a renewal; the first one's copy brings back nothing */
	atomic { !lost[u] -> was[FIRST(u) + 1] = 1; renewal[2] = 1; renewal[1] = 1 };
	if
#ifdef WITHOUT_OWN_RVN
	:: atomic { u == 1 && unit == u ->
		/* confirmed, but the row shows what it did */
		if
		:: !lost[u] -> conf[u] = FIRST(u) + 1
		:: else
		fi }
#endif
	:: atomic { unit == u && rvn == FIRST(u) + 1 ->
		if
		:: !lost[u] -> conf[u] = FIRST(u) + 1;
#ifdef WITHOUT_FROM_SENDING
			conf[u] = 0; /* never grows old */
#endif
			if
			:: age[conf[u]] >= L -> lost[u] = 1
			:: else
			fi
		:: else
		fi }
	:: skip
	fi;
	/* it ends, or just stops */
	if
	:: atomic { holds[u] = 0; if :: unit == u -> unit = 0 :: else fi }
	:: skip
	fi;
over:
	skip
}

init { atomic { run owner(1); run owner(2) } }
