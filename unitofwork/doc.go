// Package unitofwork runs work over many records of many DynamoDB tables as one unit: all its
// writes happen, or none, and no other unit changes meanwhile what it has read.
//
// The first minute:
//
//	units, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
//
//	var Accounts = unitofwork.Table[Account]{
//		Name: "accounts", PartitionKey: "ID",
//		Guard: func(a *Account) ordering.Key { return ordering.Join("account:" + a.ID) },
//	}
//
//	err = units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
//		from, to := Accounts.Ref("alice"), Accounts.Ref("bob")
//		if err := u.Get(ctx, from, to); err != nil { // both, as of one moment
//			return err
//		}
//		from.T.Balance -= 10
//		to.T.Balance += 10
//		return u.Put(from, to) // staged: written when Do commits
//	})
//
// db is a *dynamodb.Client. CreateTable, here and in lockset, makes the two tables for
// tests; docs/templates.md has templates for production. examples/transfer, examples/orders
// and examples/bank are whole programs.
//
// [Client.Do] runs a function that reads with [Unit.Get] and stages writes, and commits. At
// first it takes no locks: the commit checks that nobody has had those of what the function
// read. If somebody is in the way, Do takes them and runs the function again; with Work.Lock
// it takes them before. Nothing is written before the commit, which is one transaction that
// also releases the locks: the release is the lock check. A unit that does not fit into one
// transaction is written down first and decided by one write. From then on it is committed,
// and whoever comes by finishes it; see [Client.Recover]. [Client.Read] reads without locks,
// and sees all of a unit or nothing.
//
// Units of one process that want the same keys at the same time are committed together, in
// one transaction: a function may be shown what the units before it have staged, and is called
// again if that is not committed. Work.Alone keeps a unit apart.
//
// [lockset.NextOf] says what to do after an error. With an ID (Work.ID) a unit commits once,
// however often it is tried, so trying again is always safe.
//
// A nil function or table panics and says so. Mistakes that may come from data, such as one nil
// reference among many, are errors.
package unitofwork
