/*
 * Holding, losing and taking over one key.
 *
 * Modelled: three units want one key. Its holder renews it, commits or
 * releases at any time, crashes, or is suspended: a unit may send whatever it was
 * about to send however late, also when its lease is over. Waiting units watch the
 * holder's RVN, or go by the table's own clock, bury it and take the key.
 *
 * The network: what was sent may be carried out at any time, or never; renewals
 * any number of times. Answers come at any time, or never. Copies of acquiring
 * writes are in giveup.pml, those of commits in commit.pml.
 *
 * Time: every RVN has an age. It becomes old at any time after it was sent: a
 * lease less the margin has passed since then. A holder counts as lost when the
 * RVN that was last confirmed is old. A watcher counts from after it saw the RVN,
 * and for a whole lease: every RVN that was sent before its watch began is old by
 * then. That is all that is assumed of monotonic clocks: that they run at the same rate
 * within the margin.
 *
 * The table's own clock: renewedAt is an upper bound of the time at which an RVN was sent; dated is the number
 * of that RVN. A holder that does not know the time writes none. A waiter that meets such a row dates it, by a write
 * that may come late. A waiter evicts a holder at first sight if renewedAt is more than two leases and 30 s
 * before the lower bound of now. If headers are wrong by less than a lease and 30 s, a lease has really passed: the
 * RVN is old. If they are wrong by more, an RVN of any age may look so.
 *
 * Left out: other keys and intents (acquire.pml), what the holder is told of its
 * commit (commit.pml), journals (journal.pml), the queue (queue.pml).
 *
 * Size: 3 units, of which the first renews twice; named in the order in which they
 * take the key.
 */
/* property alone: no two units believe at one time that they hold the key */
/* property in_order: the key's holders have rising tokens */
/* property overtaken: no commit changes anything after a later holder was there */
/* clause full_lease: a holder is dead after a full lease of silence, not sooner | mutant: a holder is dead after a full lease of silence, not sooner ; the watch begins after the answer, not before the question | finds: alone */
/* clause sign_of_life: a new RVN is a sign of life | mutant: a new RVN is a sign of life | finds: alone */
/* clause clock_limit: a holder is dead by the table's clock after two leases and 30 s, and headers are wrong by less than one and 30 s | mutant: a holder is dead by the table's clock after two leases and what headers may be wrong | finds: alone */
/* clause clock_began: renewedAt is read after the lease began to count, not before | mutant: a holder's lease begins before it reads the table's time | finds: alone */
/* clause clock_renews: a renewal says when it was sent | mutant: a renewal says when it was sent | finds: alone */
/* clause clock_date: whoever dates a row does so under the RVN that was seen | mutant: a holder is dated under the RVN that was seen | finds: alone */
/* clause clock_headers: no commit depends on the headers | mutant: - | finds: nothing: two may hold, as without clock_limit, and the commit of the one that was evicted is refused all the same */
/* clause bury_rvn: a bury needs the RVN that was watched | mutant: a bury needs the RVN that was watched | finds: alone */
/* clause renew_unit: a renewal's condition names the unit | mutant: a renewal's condition names the unit | finds: alone */
/* clause renew_later: a renewal never writes over a later one's RVN | mutant: a renewal never writes over a later one's RVN | finds: alone */
/* clause own_rvn: every renewal writes an RVN of its own | mutant: every round writes an RVN of its own | finds: alone */
/* clause from_sending: a confirmation counts from before its first sending | mutant: a confirmation counts from before its first sending | finds: alone */
/* clause too_late: what landed unheard is held since its first sending, not since it was learnt of | mutant: what landed unheard is held since the first sending, not since it was learnt of | finds: alone */
/* clause no_revival: a confirmation that arrives after the deadline revives nothing | mutant: a confirmation that arrives after the deadline revives nothing | finds: alone */
/* clause release_mine: a release needs the row to be the unit's | mutant: a release needs the row to be the unit's | finds: alone */
/* clause commit_mine: a commit needs the key to be the unit's | mutant: a commit needs every key to be the unit's | finds: overtaken */
/* clause newer: a table admits a holder only with a token newer than the row's fence | mutant: a table admits a holder only with a token newer than the row's fence ; newer is newer, not as new | finds: in_order */
/* clause is_free: a key is taken only if it is free | mutant: a key is taken only if it is free | finds: alone */

#define N 3 /* units */

hidden byte alone, in_order, overtaken; /* never set: they name what was violated */
hidden byte ok;

/* The row: lockrow.Row (row.go). */
byte unit;  /* the holder; 0: free */
byte rvn;
byte fence;
byte dated; /* renewedAt is not before this RVN was sent, of the holder; NEVER: it does not say */

#define RVN(u, n) ((u) * 4 + (n)) /* locks.renewedRVN (set.go): in the order of the rounds; 0: acquired */

byte latest; /* the unit that took the key last */
byte top;    /* with which token */
byte token[N + 1];
byte sent[N + 1]; /* the last RVN sent */
byte old[N + 1];  /* RVNs below this are old */
byte conf[N + 1]; /* the last RVN confirmed */
bit holds[N + 1]; /* has the set, and has not ended it */
bit lost[N + 1];  /* and its context has ended */
bit took[N + 1];

#define BEFORE 6 /* renewedAt is of any time before the RVN was sent */
#define NEVER 7 /* no RVN becomes as old */
#define BELIEVES(u) (holds[u] && !lost[u])
#ifdef WITHOUT_clock_headers
#define ALONE true
#else
#define ALONE (!(BELIEVES(1) && BELIEVES(2) || BELIEVES(1) && BELIEVES(3) || BELIEVES(2) && BELIEVES(3)))
#endif

/* lockrow.Row.deadAt (tabletime.go) */
#if defined(WITHOUT_clock_limit) || defined(WITHOUT_clock_headers)
#define DEAD_BY_CLOCK(u, n) (n != NEVER)
#else
#define DEAD_BY_CLOCK(u, n) (n == BEFORE || n != NEVER && n < old[u])
#endif

/* What is under way. */
bit commit[N + 1], release[N + 1];
bit renewal[N]; /* of the first unit, by number */
bit knows;      /* the table's time, when the first of those was sent; the second is sent when it does */
bit bury[12];   /* by RVN */
bit date[12];   /* by RVN: the time at which that was seen */
byte answer;    /* to the last renewal */
#define NONE 0
#define DONE 1
#define REFUSED 2

/* An RVN of a unit becomes old; its holder is told: heartbeat.Group.watch (heartbeat.go). */
inline grow_old(u) {
	atomic { old[u] <= sent[u] ->
		old[u]++;
		if
		:: holds[u] && conf[u] < old[u] -> lost[u] = 1
		:: else
		fi }
}

/* lockrow.BuryIf (expressions.go) */
inline carry_out_bury(r) {
	atomic { bury[r] ->
		bury[r] = 0;
		if
		:: unit != 0 && (rvn == r
#ifdef WITHOUT_bury_rvn
			|| true
#endif
			) -> unit = 0; rvn = 0; dated = 0
		:: else
		fi }
}

/* lockrow.Table.Date (tabletime.go). The network keeps a copy. */
inline carry_out_date(r) {
	atomic { date[r] && unit != 0 && dated == NEVER && (rvn == r
#ifdef WITHOUT_clock_date
		|| unit == r / 4
#endif
		) -> dated = r % 4 }
}

/* locks.Client.renewer (set.go). The network keeps a copy. */
inline carry_out_renewal(n) {
	atomic { renewal[n] ->
		if
		:: (unit == 1
#ifdef WITHOUT_renew_unit
			|| unit != 0
#endif
			) && (unit != 1 || rvn <= RVN(1, n)
#ifdef WITHOUT_renew_later
			|| true
#endif
			) ->
#ifdef WITHOUT_own_rvn
			rvn = RVN(1, 1);
#else
			rvn = RVN(1, n);
#endif
#ifndef WITHOUT_clock_renews
			dated = ((n > 1 || knows) -> n : NEVER);
#endif
			ok = DONE
		:: else -> ok = REFUSED
		fi;
		if
		:: sent[1] == n && answer == NONE -> answer = ok
		:: else
		fi }
}

/* lockrow.Commit (expressions.go), with the staged writes */
inline carry_out_commit(u) {
	atomic { commit[u] ->
		commit[u] = 0;
		if
		:: (unit == u
#ifdef WITHOUT_commit_mine
			|| true
#endif
			) ->
			assert(overtaken || latest == u);
			if
			:: unit == u -> unit = 0; rvn = 0; dated = 0
			:: else
			fi
		:: else
		fi }
}

/* lockrow.Free (expressions.go) */
inline carry_out_release(u) {
	atomic { release[u] ->
		release[u] = 0;
		if
		:: (unit == u
#ifdef WITHOUT_release_mine
			|| unit != 0
#endif
			) -> unit = 0; rvn = 0; dated = 0
		:: else
		fi }
}

/* The network, the server, and time. */
active proctype world() {
end:
	do
	:: grow_old(1)
	:: grow_old(2)
	:: carry_out_renewal(1)
	:: carry_out_renewal(2)
	:: carry_out_commit(1)
	:: carry_out_commit(2)
	:: carry_out_release(1)
	:: carry_out_release(2)
	:: carry_out_date(RVN(1, 0))
	:: carry_out_date(RVN(1, 1))
	:: carry_out_bury(RVN(1, 0))
	:: carry_out_bury(RVN(1, 1))
	:: carry_out_bury(RVN(1, 2))
	:: carry_out_bury(RVN(2, 0))
	od
}

/* A unit: locks.acquisition.run (acquire.go), then unitofwork.Unit.commit (commit.go) or lockset.Set.Release (set.go). */
proctype owner(byte u) {
	byte seen;  /* the RVN that it watches; 0: none */
	byte since; /* what its unit had sent when the watch began */
	byte named; /* the RVN of the row it looked at last */
	byte says;  /* and since which RVN of that unit's it counts as silent */

	token[u] = 1; /* tokens.Clock.Next (clock.go): clocks are wrong, so it may be too low */
look:	/* the row, as locks.acquisition.wait (wait.go) reads it */
	atomic {
		if
		/* They are named in the order in which they take the key. */
		:: (unit == 0
#ifdef WITHOUT_is_free
			|| true
#endif
			) && (u == 1 || took[u - 1]) ->
#ifndef WITHOUT_newer
			/* locks.acquisition.raise (acquire.go) */
			if
			:: token[u] <= fence -> token[u] = fence + 1
			:: else
			fi;
#endif
			seen = 0; since = 0; named = 0; says = 0;
			goto ask
		:: unit != 0 ->
			named = rvn; says = dated;
			/* lockrow.Row.LastSign (row.go) */
			if
			:: (seen == 0
#ifndef WITHOUT_sign_of_life
				|| seen != rvn
#endif
				) -> seen = rvn; since = sent[seen / 4]
			:: else
			fi
		fi
	};
	if
	/* locks.Client.date (client.go) */
	:: atomic { says == NEVER && !date[named] -> date[named] = 1; goto look }
	/* lockrow.Row.DeadBy (judge.go) */
	:: atomic { DEAD_BY_CLOCK(named / 4, says) && !bury[named] -> bury[named] = 1; says = 0 }
	/* lockrow.judgeHolder (judge.go), locks.acquisition.bury (wait.go) */
	:: atomic { (since < old[seen / 4]
#ifdef WITHOUT_full_lease
		|| true
#endif
		) && !bury[named] -> bury[named] = 1; says = 0 }
	:: atomic { unit == 0 || rvn != named || dated != says -> says = 0; goto look }
	fi;
	atomic { unit == 0 || rvn != named -> goto look };

ask:	/* locks.acquisition.take (acquire.go), under the conditions lockrow.takeIf (expressions.go) */
	sent[u] = 0; /* the attempt's RVN is under way, and grows old from here on */
	atomic {
		if
		:: (unit == 0
#ifdef WITHOUT_is_free
			|| true
#endif
			) && (token[u] > fence
#ifdef WITHOUT_newer
			|| true
#endif
			) ->
			assert(in_order || token[u] > top);
			unit = u; rvn = RVN(u, 0); fence = token[u]; latest = u; top = token[u]; took[u] = 1;
			if
#ifdef WITHOUT_clock_began
			:: u == 1 -> dated = BEFORE
#endif
			:: dated = 0
			:: u == 1 -> dated = NEVER
			fi
		:: else -> goto look
		fi
	};
	/* locks.acquisition.secure (acquire.go), heartbeat.Group.Add (heartbeat.go): the answer, or what a
	   repeated sending showed: locks.acquisition.landed (acquire.go) */
	atomic {
#ifdef WITHOUT_too_late
		conf[u] = NEVER;
#endif
		if
		:: conf[u] < old[u] -> goto free
		:: else -> holds[u] = 1
		fi;
		assert(alone || ALONE);
		if
		:: u == N -> goto over
		:: else
		fi
	};
hold:
	if
	/* heartbeat.Group.round (heartbeat.go) */
	:: atomic { u == 1 && sent[u] < 2 && !lost[u] -> sent[u]++; answer = NONE; renewal[sent[u]] = 1;
		if
		:: knows = 1
		:: sent[u] == 1 && dated == NEVER -> knows = 0 /* it has not learnt it since */
		fi };
		if
		/* heartbeat.Group.moveDeadline (heartbeat.go) */
		:: atomic { answer == DONE && lost[u] ->
#ifdef WITHOUT_no_revival
			lost[u] = 0; conf[u] = NEVER;
			assert(alone || ALONE);
#endif
			answer = NONE }
		:: atomic { answer == DONE && !lost[u] ->
			conf[u] = sent[u];
#ifdef WITHOUT_from_sending
			conf[u] = NEVER;
#endif
			if
			:: conf[u] < old[u] -> lost[u] = 1
			:: else
			fi;
			answer = NONE }
		:: atomic { answer == REFUSED -> lost[u] = 1; answer = NONE }
		:: skip /* no answer in time */
		fi;
		goto hold
	/* unitofwork.Unit.write (commit.go). A unit that was suspended sends it though it has lost. */
	:: atomic { holds[u] = 0; commit[u] = 1; goto over }
	/* locks.Client.release (release.go) */
	:: atomic { holds[u] = 0; goto free }
	/* It crashes. Others must get the key all the same. */
	:: atomic { holds[u] = 0; goto over }
	fi;
free:
	release[u] = 1;
over:
	atomic { lost[u] = 0; conf[u] = 0; token[u] = 0 }
}

init {
	atomic { run owner(1); run owner(2); run owner(3) }
}
