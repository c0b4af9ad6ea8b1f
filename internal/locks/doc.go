// Package locks is the engine of locks, on which lockset and unitofwork stand: it acquires the
// rows of a set of keys, waits in turn, holds, renews and releases them, and clears away what the
// dead have left. Units end their sets inside transactions ([Ending]), have rows wait for a journal
// ([Prepared]), or pass rows without locks ([Run]).
package locks
