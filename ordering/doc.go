// Package ordering names what can be locked, and puts it in one global order.
//
// A [Key] is a path, from coarse to fine:
//
//	ordering.Join("customer:42")              // the customer, and all below
//	ordering.Join("customer:42", "address:7") // one address
//
// Every lock set is acquired in this order, whoever asks and however the keys are named:
// that is what rules deadlock out.
package ordering
