// Package keys is the code of the guide beside it.
package keys

import (
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Article is in stock.
type Article struct {
	ID   string
	Left int
}

// Account is a customer's.
type Account struct {
	Customer, ID string
	Balance      int64
}

// Line is one of an order's.
type Line struct {
	Order, Article string
	Number         int
}

// Articles have keys of one segment: nobody locks all of them at once.
var Articles = unitofwork.Table[Article]{
	Name: "articles", PartitionKey: "ID",
	Guard: func(a *Article) ordering.Key { return ordering.Join("article:" + a.ID) },
}

// Accounts have a customer above them, who may have to be locked as a whole. Most units want one account.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("customer:"+a.Customer, "account:"+a.ID) },
}

// Lines of one order always change together: they have one guard.
var Lines = unitofwork.Table[Line]{
	Name: "lines", PartitionKey: "Order", SortKey: "Article",
	Guard: func(l *Line) ordering.Key { return ordering.Join("order:" + l.Order) },
}
