/*
 * A unit that waits for the dead, with what it has taken before: it lets go, and is served all the same.
 *
 * Modelled: two rows, a before m; units of others, which take either and leave it, whenever its queue is
 * empty. Those that have m may die there, again and again, and are buried by who waits. A unit wants both rows.
 * If whoever has m is dead, it lets go of a, has m alone once, and begins anew; MOST times, then it keeps a.
 *
 * Left out: all else. A holder is known to be dead at once; whether it is, is silence's business (hold, tokens).
 *
 * Size: 2 rows, 1 unit. MOST is 2.
 */
/* clause BOUND: a unit lets go three times at most | mutant: a unit lets go three times at most | finds: acceptance cycle */
/* clause ALONE: who has let go has the row for which it waited before it begins anew | mutant: who has let go has the row for which it waited before it begins anew | finds: assertion violated  !(known) */
/* clause NOBODY_WAITS: nobody takes a row past the head of its queue | mutant: nobody takes a row past the head of its queue | finds: acceptance cycle */
/* pan: -a -f */

#define MOST 2

mtype = { nobody, other, dead, us };
mtype a = nobody, m = dead;
bit queued_a, queued_m;
bit known = 0; /* the unit has let go because of whoever is dead at m */

active proctype others() {
end:
	do
	:: atomic { a == nobody && (!queued_a
#ifdef WITHOUT_NOBODY_WAITS
		|| true
#endif
		) -> a = other }
	:: atomic { m == nobody && (!queued_m
#ifdef WITHOUT_NOBODY_WAITS
		|| true
#endif
		) -> m = other }
	:: atomic { m == other -> m = dead; known = 0 }
	od
}

/* Whoever lives ends. */
active proctype ends_a() {
end:
	do
	:: atomic { a == other -> a = nobody }
	od
}

active proctype ends_m() {
end:
	do
	:: atomic { m == other -> m = nobody }
	od
}

active proctype unit_of_work() {
	byte times;
again:
	/* locks.acquisition.run (acquire.go), for a */
	do
	:: atomic { a == nobody -> a = us; queued_a = 0; break }
	:: atomic { a != nobody && !queued_a -> queued_a = 1 }
	:: queued_a && a != nobody ->
accept_a:	/* passed for ever */
		skip
	od;
	/* for m */
	do
	:: atomic { m == nobody -> m = us; queued_m = 0; break }
	:: atomic { m != nobody && !queued_m -> queued_m = 1 }
	:: atomic { queued_m && m == dead ->
		if
		/* locks.acquisition.letsGoOf (letgo.go) */
		::
#ifndef WITHOUT_BOUND
			times < MOST &&
#endif
			true -> goto let_go
		:: else -> m = nobody /* locks.acquisition.bury (wait.go) */
		fi }
	:: queued_m && m == other ->
accept_m:
		skip
	od;
	assert(a == us && m == us);
	goto done;
let_go:
	/* locks.acquisition.giveUp (giveup.go) */
	assert(!known); /* not because of the same one again */
accept_let_go:
	known = 1;
#ifndef WITHOUT_BOUND
	times++;
#endif
	queued_m = 0;
	a = nobody;
	/* locks.acquisition.waitAlone (letgo.go) */
#ifndef WITHOUT_ALONE
	do
	:: atomic { m == nobody -> m = us; queued_m = 0; break }
	:: atomic { m != nobody && !queued_m -> queued_m = 1 }
	:: atomic { queued_m && m == dead -> m = nobody }
	od;
	m = nobody;
#endif
	goto again;
done:
	skip
}
