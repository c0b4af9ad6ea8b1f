// Package adopting is the code of the guide beside it: one program in all the states that it passes
// through on its way to units of work.
package adopting

import (
	"errors"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record of a table that has been in use for years.
type Account struct {
	ID      string
	Balance int64
	Version int64
}

// Accounts says how units find accounts. Version goes when no old writer is left.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "ID", Version: "Version",
	Guard: func(a *Account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// ErrNoAccount refuses a deposit.
var ErrNoAccount = errors.New("there is no such account")
