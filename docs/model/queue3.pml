/*
 * Waiting for one row, in turn, as in queue.pml, with three units: the first may die
 * anywhere, the second may give up anywhere, the third lives. Their tokens are those
 * that the row asks for. Copies are of attempts, joinings, leavings and drops.
 */
/* pan: -DCOLLAPSE */

/* clause NEXT: of those in the queue only the head may take the row | mutant: of those in the queue only the head may take the row | finds: admitted */
/* clause LAST: a unit that joins a queue is its last | mutant: a unit that joins a queue is its last | finds: hindmost */
/* clause MOVED: a place that has moved is looked for | mutant: a place that has moved is looked for ; a unit that moves looks for its place if that has moved, too | finds: ghost */
/* clause DROP_HEAD: a drop takes the place of the unit that was watched | mutant: a drop takes the place of the unit that was watched | finds: watched */
/* clause DROP_SEEN: a drop needs the fence that was seen | mutant: a drop needs the fence that was seen: nobody has had the row since | finds: watched */
/* clause PAST: others go past a head that leaves a row untaken | mutant: others go past a head that leaves a row untaken | finds: invalid end state */
/* clause DROP: a dead head is dropped | mutant: a dead head is dropped | finds: invalid end state */
/* clause BURY: a unit that is not the head buries the dead, too | mutant: a unit that is not the head buries the dead, too | finds: invalid end state */
/* clause OWN_PLACE: a unit that leaves a queue takes its own place away | mutant: a unit that leaves a queue takes its own place away ; a burn that leaves a queue takes the unit's own place away | finds: anothers */

#define UNITS 3
#include "queue.inc"
