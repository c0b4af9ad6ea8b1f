/*
 * Waiting for one row, in turn.
 *
 * Modelled: units, each of a process of its own, want one row. A refused unit joins
 * the row's queue, looks, takes the row when it is the head, and leaves the queue in
 * that write. Any unit may die anywhere, also holding or waiting, or give up: it
 * burns its tokens, leaves the queue, and releases what landed unheard. A waiting unit
 * buries a dead holder, and goes past those who leave the row untaken: with a place or
 * without, under the conditions that the row is free and bare and has the turnAt that was seen. It removes
 * the places before its own and that one, or the whole queue if it has none. Where the row does not say since when it
 * is free, it drops the head. A unit that has lost its place alive joins again.
 *
 * Requests: any may be lost, and its answer; of all that were sent, one at a time may
 * be on its way for as long as anybody likes, and be carried out again and again
 * (COPIES says how many at a time).
 *
 * Time: a holder is buried when it is dead (hold.pml has the watch). A head may be
 * dropped, or others go past it, at any time in which it could take the row, dead or slow. Whoever makes the row
 * free knows the table's time or does not.
 *
 * Left out: other rows (order.pml), intents and units without locks (queue_past.pml), the writes that
 * date a row (turns.pml), the line within a process, the record
 * wait; that a unit which looks again and again is served in the end while heads
 * lose their places again and again (the turn of a slow unit is not promised).
 *
 * Size: 2 units, 2 places, 1 copy under way. queue3.pml has 3 units; there one may die,
 * one may give up, and one lives.
 *
 * Properties: nobody takes the row while another is before it in the queue, unless the row has been
 * free and bare since the turnAt that was seen; the row
 * has one unit; the unit that has it is not in its queue; a unit that joins is its last, once, and
 * within the places there are; a drop takes the head that was seen, if nobody has had
 * the row since; nobody else's place is given up; a unit that has given up has no place and
 * no row, and never again. All that live are served: there is no state in which all
 * of them wait (no deadlock).
 */
/* pan: -DCOLLAPSE */

/* clause FREE: a key is taken only if it is free | mutant: a key is taken only if it is free | finds: admitted */
/* clause NOBODY_WAITS: nobody takes a row past the head of its queue | mutant: nobody takes a row past the head of its queue | finds: twice */
/* clause STEP_FORWARD: the head leaves the queue in the write that takes the row | mutant: the head leaves the queue in the write that takes the row | finds: twice */
/* clause ONE_PLACE: a unit has one place in a queue | mutant: a unit has one place in a queue | finds: newcomer */
/* clause JOIN_NEWER: a join needs a token above the fence, so that a burn stops it | mutant: a join needs a token above the fence, so that a burn stops it | finds: newcomer */
/* clause TAKE_NEWER: a row is taken only with a newer token, so that a burn stops it | mutant: a table admits a holder only with a token newer than the row's fence | finds: admitted */
/* clause NOT_ITS_OWN: nobody joins the queue of a row that it has | mutant: nobody joins the queue of a row that it has | finds: nothing: it takes two copies under way at a time, as COPIES=2 has them */
/* clause LEAVE: giving up leaves the queues | mutant: giving up leaves the queues ; giving up leaves every queue in which the unit has a place | finds: ghost */
/* clause EVER_ASKED: giving up leaves every queue that the unit ever asked to join | mutant: giving up leaves every queue that the unit ever asked to join | finds: ghost */
/* clause BURN_JOIN: the token of a join is burned, too | mutant: the token of a join is burned, too | finds: newcomer */
/* clause BURN_TAKE: giving up burns the token of every attempt that may yet land | mutant: giving up burns the token of every attempt that may yet land | finds: ghost */
/* clause BURN_FIRST: burning comes before releasing | mutant: burning comes before releasing | finds: nothing: what lands later shows itself to the burn, and is released then */
/* clause BURN_LANDED: a burn refused by a row that shows our unit means that the attempt landed | mutant: a burn refused by a row that shows our unit means that the attempt landed | finds: ghost */
/* clause BURN_SEES: a burn does not hide what a copy of another attempt took | mutant: a burn does not hide what a copy of another attempt took | finds: ghost */
/* clause BURN_MINE: a token is burned on a row that the unit has, too | mutant: a token is burned on a row that the unit has, too | finds: admitted */

#define UNITS 2
#include "queue.inc"
