package books

import (
	"context"
	"fmt"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Payment moves money between two accounts. Its ID makes sure that it happens once, however often
// it is requested.
type Payment struct {
	ID       string
	From, To Child
	Amount   int64
}

// Pay needs the keys of the two accounts and no key above them: payments of one customer conflict
// only if they share an account.
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

// Entry is a line of a ledger. It is entered whatever the balance is, and opens the accounts that
// it names. Without a partner it is cash.
type Entry struct {
	ID      string
	Note    string
	Account string
	Partner string
	Amount  int64 // added to Account, taken from Partner
}

// Record enters a line of a ledger, once.
func (b *Bank) Record(ctx context.Context, e Entry) error {
	sides, kind := []Child{{ID: e.Account}}, KindCash
	if e.Partner != "" {
		sides, kind = append(sides, Child{ID: e.Partner}), KindPayment
	}
	what := fmt.Appendf(nil, "%q from %q: %d %q", e.Account, e.Partner, e.Amount, e.Note)
	return b.do(ctx, unitofwork.Work{ID: e.ID, Payload: what}, keysOf(sides, AccountKey), func(ctx context.Context, u Unit) error {
		accounts := refsOf(sides, b.Tables.account)
		if err := u.Get(ctx, records(accounts)...); err != nil {
			return err
		}
		amount := e.Amount
		for i, a := range accounts {
			a.T.ID = sides[i].ID // it may not exist yet
			if err := b.post(u, a, Change{Kind: kind, Entry: e.ID, Note: e.Note, Amount: amount}); err != nil {
				return err
			}
			amount = -amount
		}
		return nil
	})
}
