/*
 * A unit that wants a row whose fence newcomers raise, for ever.
 *
 * Modelled: one row; units of others, whose clocks are ahead or whose requests are faster, leave
 * their intents on it and go, whenever its queue is empty. A unit wants the row: its token is above the
 * fence, or is not; every newcomer puts it below again. Refused for its token alone more than twice, it joins
 * the queue, by a token with headroom.
 *
 * Left out: all else. Time and tokens are one bit: below the fence, or above.
 *
 * Size: 1 row, 1 unit.
 */
/* clause BOUND: a unit whose token was too low again and again queues | mutant: a unit whose token was too low again and again queues | finds: acceptance cycle */
/* clause HEADROOM: a join that was outrun by newcomers has headroom | mutant: a join that was outrun by newcomers has headroom | finds: acceptance cycle */
/* clause NOBODY_WAITS: nobody takes a row past the head of its queue | mutant: nobody takes a row past the head of its queue | finds: acceptance cycle */
/* pan: -a -f */

bit low = 1;    /* the unit's token is not above the fence */
bit queued;
bit has;

active proctype others() {
end:
	do
	:: atomic { !has && (!queued
#ifdef WITHOUT_NOBODY_WAITS
		|| true
#endif
		) -> low = 1 }
	od
}

active proctype unit_of_work() {
	byte raises;
again:
	do
	/* locks.acquisition.take, locks.acquisition.weighRaise (acquire.go): admitted, or refused for the token alone */
	:: atomic { !low -> has = 1; queued = 0; goto done }
	:: atomic { low ->
		if
#ifndef WITHOUT_BOUND
		:: raises >= 2 && !queued -> goto join
#endif
		:: else -> raises = (raises < 2 -> raises + 1 : 2)
		fi };
accept:	/* passed for ever: it is never served. The raised token is on its way */
		low = 0;
		skip
	od;
join:	/* locks.acquisition.join (queue.go) */
#ifdef WITHOUT_HEADROOM
accept_join:
	low = 0; /* its token was raised to the fence and one */
	if
	:: atomic { !low -> queued = 1 }
	:: atomic { low }
	fi;
#else
	queued = 1;
#endif
	goto again;
done:
	skip
}
