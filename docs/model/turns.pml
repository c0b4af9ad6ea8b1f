/*
 * A row that is wanted by callers who look once and die, for ever: it is had when its time has come.
 *
 * Modelled: one row. Callers come without end. Each looks once. It evicts a holder that is dead by the table's
 * clock, and dates a row that does not say since when it is free, or when its holder renewed. It has the row if
 * nobody waits, or past all who do if their time is over. Else it is refused, and joins the queue. It may die before it
 * asks, when it has joined, and while it has the row. What asks for a place comes at any time, also when its caller is
 * long dead. A head that lives may take the row, and a place may be given up.
 *
 * Time: ticks of the table's clock; any number of callers between two of them. LIMIT stands for two leases and 30 s, TURN
 * for two Grace and 2 s. A process knows the table's time when it writes, or does not.
 *
 * Left out: bounds that are apart, headers that are wrong (hold.pml); those who live long enough to watch
 * (queue.pml); intents; evictions, takes and releases that come late (queue.pml, queue_past.pml).
 *
 * Size: LIMIT 3, TURN 2, 3 places.
 */
/* property served: a row that nobody alive has had for LIMIT and TURN is had by the next caller that looks */
/* property untaken: a row that has been free for TURN is had by the next caller that looks */
/* property once: whoever was passed keeps nobody from the row again */
/* clause PAST: who looks once goes past those whose time is over | mutant: a process that looks once goes past those whose time is over | finds: untaken */
/* clause JOIN_LEAVES: a join behind others leaves turnAt | mutant: a join behind others leaves turnAt | finds: untaken */
/* clause REMOVES: whoever goes past others removes the places of all | mutant: a commit that passes those who wait removes them | finds: once */
/* clause DATES_HOLDER: a holder that does not say when it was alive is dated by those who meet it | mutant: a holder that does not say when it was alive is dated by those who meet it | finds: served */
/* clause DATES_TURN: a row that does not say since when it is free is dated by those who meet it | mutant: a row that does not say since when it is free is dated by those who meet it | finds: untaken */
/* clause DEAD_AT: a holder is dead by the table's clock, also to who looks once | mutant: a holder is dead by the table's clock, also to a process that looks once | finds: served */
/* clause EVICTED: an evicted holder's row counts as free since anyone could have evicted it | mutant: an evicted holder's row counts as free since anyone could have evicted it | finds: served */

#define LIMIT 3
#define TURN  2
#define PLACES 3

hidden byte served, untaken, once; /* never set: they name what was violated */

#define FREE  0
#define ALIVE 1
#define DEAD  2
byte row;
byte queue;  /* how many wait */
byte passed; /* of those, whom others have gone past before */
bit dated;   /* it says when: */
byte since;  /* how long ago its holder renewed, or it became free */

/* To compare: how long nobody alive has had it, and how long it has been free, since somebody has met it who knew the time. */
bit met;
byte idle, free;

/* What a write leaves of the time: lockrow.Now.Stamp (tabletime.go). */
inline stamps() {
	since = 0;
	if
	:: dated = 1
	:: dated = 0
	fi;
	met = dated; idle = 0; free = 0
}

/* locks.acquisition.join (queue.go), lockrow.Table.Join (expressions.go) */
inline joins() {
	queue++;
#ifdef WITHOUT_JOIN_LEAVES
	if
	:: row == FREE -> since = 0
	:: else
	fi
#endif
}

active proctype time() {
end:
	do
	:: atomic { row == ALIVE -> stamps() } /* it renews */
	:: atomic { row != ALIVE ->
		if
		:: dated && since < LIMIT + TURN -> since++
		:: else
		fi;
		if
		:: met && idle < LIMIT + TURN -> idle++
		:: else
		fi;
		if
		:: met && row == FREE && free < TURN -> free++
		:: else
		fi }
	od
}

active proctype callers() {
end:
	do
	/* One looks. */
	:: atomic { true ->
		if
#ifndef WITHOUT_DEAD_AT
		/* lockrow.Row.DeadBy (judge.go), lockrow.Row.Freed (tabletime.go), lockrow.Table.Evict (expressions.go) */
		:: row == DEAD && dated && since >= LIMIT ->
			row = FREE; free = 0;
#ifdef WITHOUT_EVICTED
			since = 0
#else
			since = since - LIMIT
#endif
#endif
		/* lockrow.Table.Date (tabletime.go) */
#ifndef WITHOUT_DATES_HOLDER
		:: row != FREE && !dated -> dated = 1; since = 0
#endif
#ifndef WITHOUT_DATES_TURN
		:: row == FREE && queue > 0 && !dated -> dated = 1; since = 0
#endif
		:: else
		fi;
		met = 1;
		if
		:: row == FREE && queue == 0 -> row = ALIVE; stamps()
#ifndef WITHOUT_PAST
		/* lockrow.judgeQueue (judge.go), lockrow.Turn (tabletime.go) */
		:: row == FREE && queue > 0 && dated && since >= TURN ->
			row = ALIVE;
#ifdef WITHOUT_REMOVES
			queue--; passed = queue;
#else
			queue = 0; passed = 0;
#endif
			stamps()
#endif
		:: else ->
			assert(untaken || row != FREE || free < TURN);
			assert(served || row == ALIVE || idle < LIMIT + TURN);
			assert(once || row != FREE || passed == 0);
			if
			:: queue < PLACES -> joins()
			:: true /* it dies, or the queue is full */
			fi
		fi }
	/* One has asked for a place before, and may be dead. */
	:: atomic { queue < PLACES -> joins() }
	/* locks.acquisition.leaveQueue (queue.go) */
	:: atomic { queue > passed -> queue-- }
	/* The head lives: locks.acquisition.take (acquire.go) */
	:: atomic { row == FREE && queue > 0 ->
		row = ALIVE; queue--;
		if
		:: passed > 0 -> passed--
		:: else
		fi;
		stamps() }
	/* Whoever has it ends, or dies. */
	:: atomic { row == ALIVE -> row = FREE; stamps() }
	:: atomic { row == ALIVE -> row = DEAD }
	od
}
