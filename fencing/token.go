package fencing

import "strconv"

// Token orders units of work whose locks conflict: of two such units, the later
// one has the higher token. It is a hybrid logical clock reading in
// microseconds since 1970; tokens of units that never conflict say nothing
// about each other. The zero Token is older than every token.
type Token int64

// maxToken is the largest token, of the year 2219. Tokens stay below 2^53, so
// they survive JSON and JavaScript, and well below it: what a corrupt row or a
// bug has there, the largest number of some kind, is not to be followed.
const maxToken Token = 1<<53 - 1<<50 // tokens.Max

// String returns the token as a decimal number.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Valid reports whether t is a token that a unit can have.
func (t Token) Valid() bool { return t > 0 && t <= maxToken }
