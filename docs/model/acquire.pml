/*
 * Acquiring sets of keys in steps: three levels, intents, the dead among the living.
 *
 * Modelled: one unit wants c/a/x and c/b, one wants c/a and c/b, one wants c. A
 * step is one transaction: its key, and the intents on those ancestors that no
 * earlier step has. Tokens are raised, and rows stamped anew. A unit may crash or be
 * suspended at any time; others bury it and clean what it left. A transaction that
 * is decided may be shown to plain reads on some rows and not yet on others.
 *
 * Left out: what RVNs and leases are for (hold.pml): here a unit may be buried once
 * it is gone, which is when its deadline has passed; it need not know that. Late,
 * lost and doubled requests (hold.pml, giveup.pml, commit.pml). The order of
 * tokens (tokens.pml). The queue (queue.pml).
 *
 * Size: 3 units, 4 rows, 2 units gone.
 */
/* property alone: nobody who counts as living takes a key while another unit believes that it holds it, or one above or below it */
/* property overtaken: no commit changes anything after a later unit had a conflicting key */
/* property ghost: nothing shows a unit that has said that nothing is left of it */
/* clause no_below: a key is taken only if no intent is below it | mutant: a key is taken only if no intent is below it | finds: alone */
/* clause intent_free: an intent is left only on a row that nobody holds | mutant: an intent is left only on a row that nobody holds | finds: alone */
/* clause every_ancestor: a fine lock leaves an intent on each of its ancestors | mutant: a fine lock leaves an intent on each of its ancestors, not on the outermost alone | finds: alone */
/* clause in_turn: steps are taken in order: a unit that waits holds nothing later than what it waits for | mutant: a unit that waits holds nothing later than what it waits for | finds: invalid end state */
/* clause bury: a dead holder is buried | mutant: a unit that is not the head buries the dead, too | finds: invalid end state */
/* clause clean: a stale intent is cleaned | mutant: a dead unit's intent is cleaned ; a stale intent is cleaned | finds: invalid end state */
/* clause clean_check: an intent is cleaned in one transaction with a check of its witness's row, not on a plain read | mutant: an intent is cleaned in one transaction with a check of its witness's row, not on a plain read | finds: alone */
/* clause commit_keys: a commit needs every key to be the unit's | mutant: a commit needs every key to be the unit's | finds: overtaken */
/* clause commit_intents: a commit needs every intent to be there | mutant: a commit needs every intent to be there ; a commit takes its intents away, and needs them | finds: nothing: an intent is removed only when its witness is not the unit's any more, and the commit needs that too. The intents count when somebody deletes an ancestor's row by hand */
/* clause restamp_mine: a re-stamp touches only rows that are the unit's, and loses the set when it finds one that is not | mutant: a re-stamp touches only rows that are the unit's ; a re-stamp that finds a row lost loses the set | finds: nothing: a set that has lost a row has passed its deadline, and the set does not count as acquired for that alone. The condition counts when somebody frees a row by hand */
/* clause undo_intents: the intents of a key that is not ours any more are released | mutant: the intents of a key that is not ours any more are released ; an overtaken commit takes its intents away | finds: ghost */
/* clause reverse: steps are released in reverse | mutant: steps are released in reverse | finds: nothing: a unit that releases does not count as holding any more, and the rows that are still its own refuse others one by one. The order counts for journals, whose rows are freed as their writes are done */

#define UNITS 3
#define LOSSES 2
#define FIRST_TOKEN(u) token[u] = 1; fence[CB] = 2
#define CONFLICT(u, v) true
#define STEPS(u) ((u) == 3 -> 1 : 2)
#define KEYROW(u, s) ((u) == 3 -> C : ((s) == 1 -> CB : ((u) == 1 -> CAX : CA)))
#define KEY(u, s) ((u) == 3 && (s) == 1 -> 0 : BIT(KEYROW(u, s)))
#ifdef WITHOUT_every_ancestor
#define ANCESTORS BIT(C)
#else
#define ANCESTORS (BIT(C) | BIT(CA))
#endif
#define INTENTS(u, s) ((u) == 3 || (s) == 1 -> 0 : ((u) == 1 -> ANCESTORS : BIT(C)))
#ifdef WITHOUT_in_turn
#define FIRST(u) ((u) == 1 -> 1 : 0)
#else
#define FIRST(u) 0
#endif

#include "acquire.inc"
