/*
 * Tokens rise along every conflict.
 *
 * Modelled: one unit wants c/a/x and c/b, in two steps, one wants c/d, one wants c:
 * intents of two units on one row, above which a third wants it all. Clocks are
 * wrong: each proposes any token first. The row of c/b has had a higher one, or has
 * not. Tokens are raised, and rows that were taken with a lower one stamped anew.
 *
 * Left out: all that acquire.pml, hold.pml and giveup.pml have: nobody dies here, no
 * request is lost or late.
 *
 * Size: 3 units, 5 rows, first tokens of 1 to 5.
 */
/* property alone: nobody who counts as living takes a key while another unit believes that it holds it, or one above or below it */
/* property in_order: of two units that conflict the later one has the higher token */
/* property ghost: nothing shows a unit that has said that nothing is left of it */
/* clause newer_key: a table admits a holder only with a token newer than the row's fence | mutant: a table admits a holder only with a token newer than the row's fence ; newer is newer, not as new | finds: in_order */
/* clause newer_intent: a table admits an intent only with a token newer than the row's fence | mutant: a table admits an intent only with a token newer than the row's fence | finds: in_order */
/* clause intent_stamps: an intent stamps its ancestor's row with the token | mutant: an intent stamps its ancestor's row with the token | finds: in_order */
/* clause fence_stays: the fence stays when a row is freed | mutant: the fence stays when a row is freed | finds: in_order */
/* clause restamp: steps taken with a lower token are stamped anew before the set counts as acquired | mutant: steps taken with a lower token are stamped anew before the set counts as acquired | finds: in_order */
/* clause restamp_intents: a re-stamp reaches the ancestors, too | mutant: a re-stamp reaches the ancestors, too | finds: in_order */
/* clause no_lower: no re-stamp lowers a fence | mutant: no re-stamp lowers a fence | finds: in_order */

#define UNITS 3
#define LOSSES 0
#define TOKENS
#define FIRST_TOKEN(u) select(n : 1 .. 5); token[u] = n; n = 0; if :: u == 1 -> fence[CB] = 2 :: skip fi
#define CONFLICT(u, v) ((u) == 3 || (v) == 3)
#define STEPS(u) ((u) == 1 -> 2 : 1)
#define KEYROW(u, s) ((u) == 3 -> C : ((u) == 2 -> CD : ((s) == 1 -> CB : CAX)))
#define KEY(u, s) ((u) != 1 && (s) == 1 -> 0 : BIT(KEYROW(u, s)))
#define INTENTS(u, s) ((u) == 3 || (s) == 1 -> 0 : ((u) == 1 -> (BIT(C) | BIT(CA)) : BIT(C)))
#define FIRST(u) 0

#include "acquire.inc"
