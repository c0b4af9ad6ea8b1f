package books

import (
	"context"
	"fmt"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Payment moves money between two accounts, once, however often it is asked
// for: its ID sees to that.
type Payment struct {
	ID       string
	From, To Child
	Amount   int64
}

// Pay needs the two accounts and nothing above them: payments of one customer
// are not in each other's way unless they share an account.
func (b *Bank) Pay(ctx context.Context, p Payment) error {
	keys := []ordering.Key{AccountKey(p.From), AccountKey(p.To)} // for a bank that locks first
	what := fmt.Appendf(nil, "%q to %q: %d", p.From.ID, p.To.ID, p.Amount)
	return b.do(ctx, unitofwork.Work{ID: p.ID, Payload: what, Purpose: "payment"}, keys, func(ctx context.Context, u Unit) error {
		from, to := b.Tables.account(p.From), b.Tables.account(p.To)
		if err := u.Get(ctx, from, to); err != nil { // one request for both
			return err
		}
		if !from.Found || !to.Found {
			return ErrAbsent
		}
		if from.T.Balance < p.Amount {
			return ErrFunds // nothing is written
		}
		if err := b.post(u, from, Change{Kind: KindPayment, Entry: p.ID, Amount: -p.Amount}); err != nil {
			return err
		}
		return b.post(u, to, Change{Kind: KindPayment, Entry: p.ID, Amount: p.Amount})
	})
}

// Entry is a line of a ledger: what happened, whatever the balance. Accounts
// are opened as they appear. Without a partner it is cash.
type Entry struct {
	ID      string
	Note    string
	Account string
	Partner string
	Amount  int64 // added to Account, taken from Partner
}

// Record enters a line of a ledger, once.
func (b *Bank) Record(ctx context.Context, e Entry) error {
	sides := []string{e.Account}
	kind := KindCash
	if e.Partner != "" {
		sides, kind = append(sides, e.Partner), KindPayment
	}
	keys := make([]ordering.Key, len(sides))
	for i, id := range sides {
		keys[i] = AccountKey(Child{ID: id})
	}
	what := fmt.Appendf(nil, "%q from %q: %d %q", e.Account, e.Partner, e.Amount, e.Note)
	return b.do(ctx, unitofwork.Work{ID: e.ID, Payload: what}, keys, func(ctx context.Context, u Unit) error {
		accounts := make([]*unitofwork.Ref[Account], len(sides))
		for i, id := range sides {
			accounts[i] = b.Tables.account(Child{ID: id})
		}
		if err := u.Get(ctx, records(accounts)...); err != nil {
			return err
		}
		amount := e.Amount
		for i, a := range accounts {
			a.T.ID = sides[i] // of one that is not there yet
			if err := b.post(u, a, Change{Kind: kind, Entry: e.ID, Note: e.Note, Amount: amount}); err != nil {
				return err
			}
			amount = -amount
		}
		return nil
	})
}
