// Package heartbeat renews the leases of a set of keys until they are done with or one is
// lost. It knows nothing of the store that keeps the leases: a function renews a batch of
// keys and says of each whether it was renewed, is another's, or had no answer.
//
// Package lockset uses it; most programs need nothing of it but [ErrLost] and [LostError],
// which lockset has, too.
//
// Leases follow Gray and Cheriton, "Leases: an efficient fault-tolerant mechanism for
// distributed file cache consistency" (SOSP 1989): the holder counts its lease from before
// it asked, everybody else from after they saw it. So the holder knows first, with clocks
// that run at the same rate within the margin.
//
// A call that no correct program makes panics and says so: with a nil context or an
// incomplete [Config], or on a [Group] that [Start] did not make.
package heartbeat
