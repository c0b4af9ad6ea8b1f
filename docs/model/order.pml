/*
 * Waiting for several rows, of two processes.
 *
 * Modelled: the rows c, c/1 and c/2. W and V are of one process, X and R of two
 * others; each, again and again, acquires and releases. W and X want c/1 and c/2: two
 * steps, the first with the intent on c. V wants c/2, with the intent on c. R wants c.
 * A step is taken as a whole or not at all. A blocked unit lets go of what it reserved
 * of the step within its process, takes a place in the queue of the first row that
 * blocks, and keeps what comes before. A row with somebody in its queue is for its
 * head alone. W and V keep each other from c/2 within their process.
 *
 * Left out: faults, tokens, the dead (queue.pml, and the models of the locks); a head
 * that keeps its place while a later row blocks, a line of more than one within a
 * process, full queues.
 *
 * Properties: no deadlock (a cycle in which nobody moves); and R, which is kept out by whoever has an intent on c,
 * is served, as long as everybody goes on (weak fairness).
 */
/* pan: -a -f -DNFAIR=3 -DCOLLAPSE */

/* clause ORDER: steps are taken in one order, so that a waiting unit holds nothing later | mutant: a unit that waits holds nothing later than what it waits for | finds: acceptance cycle */
/* clause LOCAL: a unit that waits keeps nothing later from others of its process | mutant: a unit that waits keeps nothing later from others of its process | finds: acceptance cycle */
/* clause TURN: nobody takes a row past the head of its queue | mutant: nobody takes a row past the head of its queue | finds: acceptance cycle */

#define W 1
#define V 2
#define X 3
#define R 4

#define C  0
#define C1 1
#define C2 2
#define NOWHERE 3

byte holder[3];
byte below;     /* the units that have intents on c, in bits */
byte reserved;  /* which of W and V has c/2, or asks for it */
byte queueC[4], queue1[4], queue2[4];
bool served;    /* R has c */

#define BIT(u) (1 << u)
/* lockrow.Table.Acquire (expressions.go): the unit's turn */
#ifdef WITHOUT_TURN
#define TURN(queue, u) true
#else
#define TURN(queue, u) (queue[0] == 0 || queue[0] == u)
#endif

#define INTENDS(u) (holder[C] == 0 && TURN(queueC, u))
#define TAKES(row, queue, u) (holder[row] == 0 && TURN(queue, u))

#define leave(queue, u) \
	if \
	:: queue[0] == u -> queue[0] = queue[1]; queue[1] = queue[2]; queue[2] = queue[3]; queue[3] = 0 \
	:: queue[1] == u -> queue[1] = queue[2]; queue[2] = queue[3]; queue[3] = 0 \
	:: queue[2] == u -> queue[2] = queue[3]; queue[3] = 0 \
	:: queue[3] == u -> queue[3] = 0 \
	:: else \
	fi

#define join(queue, u) \
	if \
	:: queue[0] == u || queue[1] == u || queue[2] == u || queue[3] == u \
	:: else -> \
		if \
		:: queue[0] == 0 -> queue[0] = u \
		:: queue[0] != 0 && queue[1] == 0 -> queue[1] = u \
		:: queue[1] != 0 && queue[2] == 0 -> queue[2] = u \
		:: queue[2] != 0 && queue[3] == 0 -> queue[3] = u \
		fi \
	fi

/* lineup.Lineup.Refused, lineup.Lineup.takeBack (lineup.go) */
inline letGo(u, row) {
#ifndef WITHOUT_LOCAL
	if
	:: row == C2 && reserved == u -> reserved = 0
	:: else
	fi
#else
	skip
#endif
}

/*
 * locks.acquisition.take (acquire.go), lockrow.Decide (judge.go), locks.acquisition.wait (wait.go):
 * a step with a row, and the intent if the unit has none. at is where it waits.
 */
#define STEP(u, row, queue, at) \
	at = NOWHERE; \
	do \
	:: atomic { /* turns.reserve, turns.again */ \
		(at == NOWHERE || (at == C && INTENDS(u)) || (at == row && TAKES(row, queue, u))) && \
		(row != C2 || u == X || reserved == 0 || reserved == u) -> \
		if \
		:: row == C2 && u != X -> reserved = u \
		:: else \
		fi } \
		atomic { \
		if \
		:: ((below & BIT(u)) || INTENDS(u)) && TAKES(row, queue, u) -> \
			below = below | BIT(u); holder[row] = u; leave(queueC, u); leave(queue, u); at = NOWHERE; break \
		:: !((below & BIT(u)) || INTENDS(u)) -> \
			if \
			:: at == row -> leave(queue, u) \
			:: else \
			fi; \
			join(queueC, u); at = C; letGo(u, row) \
		:: ((below & BIT(u)) || INTENDS(u)) && !TAKES(row, queue, u) -> \
			leave(queueC, u); join(queue, u); at = row; letGo(u, row) \
		fi } \
	/* turns.again: another of its process has it; it leaves its place in the table */ \
	:: atomic { at != NOWHERE && ((at == C && INTENDS(u)) || (at == row && TAKES(row, queue, u))) && \
		!(row != C2 || u == X || reserved == 0 || reserved == u) -> \
		leave(queueC, u); leave(queue, u); at = NOWHERE } \
	od

/* locks.Client.release (release.go): in reverse, in one transaction */
#define FREE(u) atomic { \
	if \
	:: holder[C1] == u -> holder[C1] = 0 \
	:: else \
	fi; \
	if \
	:: holder[C2] == u -> holder[C2] = 0 \
	:: else \
	fi; \
	if \
	:: reserved == u -> reserved = 0 \
	:: else \
	fi; \
	below = below & ~BIT(u) }

active proctype w() {
	byte at;
	do
	:: STEP(W, C1, queue1, at); STEP(W, C2, queue2, at); FREE(W)
	od
}

active proctype v() {
	byte at;
	do
	:: STEP(V, C2, queue2, at); FREE(V)
	od
}

active proctype x() {
	byte at;
	do
#ifdef WITHOUT_ORDER
	:: STEP(X, C2, queue2, at); STEP(X, C1, queue1, at); FREE(X)
#else
	:: STEP(X, C1, queue1, at); STEP(X, C2, queue2, at); FREE(X)
#endif
	od
}

active proctype r() {
	do
	:: atomic { holder[C] == 0 && below == 0 && TURN(queueC, R) -> leave(queueC, R); holder[C] = R; served = true }
		atomic { holder[C] = 0; served = false }
	:: atomic { !(holder[C] == 0 && below == 0 && TURN(queueC, R)) && queueC[0] != R && queueC[1] != R && queueC[2] != R && queueC[3] != R ->
		join(queueC, R) }
	od
}

ltl coarse { [] <> served }
