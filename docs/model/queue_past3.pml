/*
 * Going past those who leave a row untaken, as in queue_past.pml, with three units and nobody else but
 * the one with a key below: the second unit may give up anywhere, so that places move under a unit that goes
 * past others. Nothing is copied, and nobody dies (queue3.pml).
 */
/* pan: -DCOLLAPSE */

/* clause PAST_PLACE: whoever goes past others has the place that was seen | mutant: whoever goes past others has the place that was seen | finds: anothers */

#define UNITS 3
#define FINE
#include "queue.inc"
