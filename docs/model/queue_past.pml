/*
 * Going past those who leave a row untaken, beside intents, commits without locks and sweeps.
 *
 * Modelled: the row and the units of queue.pml, and two more. One has a key below: it leaves its
 * intent, and removes it. The other looks once at the free row, and passes it with a commit without
 * locks, or leaves an intent, or sweeps: each past all who wait, and carried out again
 * and again, at any later time.
 *
 * Time: a head's time is over at any moment after the row has become free and bare. A writer knows the
 * table's time or does not: turnAt is there or not.
 *
 * Left out: copies of the units' writes (queue.pml, queue3.pml); giving up (queue_past3.pml); several intents; the writes that
 * date a row (turns.pml). A row that an intent and its removal have come between is the same to DynamoDB
 * as one that was free all the time, but for turnAt.
 *
 * Size: 2 units, of which the first may die, 2 places, 1 intent, 1 that looks once.
 */
/* pan: -DCOLLAPSE */

/* clause PAST_FREE: a key is taken past those who wait only if it is free | mutant: a key is taken only if it is free | finds: admitted */
/* clause PASS_FREE: a commit, an intent or a sweep goes past those who wait only if the row is free | mutant: a commit without locks needs each key's row to be free ; an intent is left only on a row that nobody holds ; a sweep removes a queue only if the row is free | finds: untaken */
/* clause PAST_BARE: whoever goes past others finds no intents | mutant: whoever goes past others finds no intents | finds: untaken */
/* clause PAST_SAME: whoever goes past others finds the row free since the time that was seen | mutant: whoever goes past others finds the row free since the time that was seen | finds: untaken */
/* clause TURN: what makes a row free and bare writes a turnAt of its own | mutant: a row that is freed says since when it is free ; a row that a commit frees says since when it is free ; a row whose last intent goes says since when it is bare ; two turns at a row are told apart | finds: untaken */
/* clause PAST_OWN: whoever goes past others leaves its own place, too | mutant: whoever goes past others leaves its own place, too | finds: twice */

#define UNITS 2
#define FINE
#define STRANGER
#include "queue.inc"
