package comingfrom

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// MovingAccount is an account while two programs write to the table. Moved says that units have it.
type MovingAccount struct {
	ID      string
	Balance int64
	Moved   bool `dynamodbav:",omitempty"`
}

// MovingAccounts are guarded as Accounts are.
var MovingAccounts = unitofwork.Table[MovingAccount]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *MovingAccount) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// ErrNotMoved is told when the old program still has an account.
var ErrNotMoved = errors.New("the old program still has this account")

// unlessMoved is the condition that the old program adds to every write.
func unlessMoved(balance int64, account string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("accounts"), Key: id(account),
		UpdateExpression:          aws.String("SET Balance = :balance"),
		ConditionExpression:       aws.String("attribute_not_exists(Moved)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":balance": number(balance)},
	}}
}

// Move gives accounts to units, all or none. It writes nothing but the mark, so what the old program
// writes at the same moment is kept if it comes before, and refused if it comes after.
func Move(ctx context.Context, units *unitofwork.Client, accounts ...string) error {
	return units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
		for _, account := range accounts {
			err := u.Update(MovingAccounts.Ref(account), unitofwork.Expression{
				Update: "SET Moved = :yes", Condition: "attribute_exists(ID)", Values: map[string]any{":yes": true},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// MoveBack gives accounts to the old program again. It is a unit, so a commit of the new program that
// is still on its way is refused.
func MoveBack(ctx context.Context, units *unitofwork.Client, accounts ...string) error {
	return units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
		for _, account := range accounts {
			if err := u.Update(MovingAccounts.Ref(account), unitofwork.Expression{Update: "REMOVE Moved", Condition: "attribute_exists(ID)"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// TransferMoved is Transfer while both programs run.
func TransferMoved(ctx context.Context, units *unitofwork.Client, from, to string, amount int64) error {
	return units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
		a, b := MovingAccounts.Ref(from), MovingAccounts.Ref(to)
		if err := u.Get(ctx, a, b); err != nil {
			return err
		}
		if !a.T.Moved || !b.T.Moved {
			return ErrNotMoved
		}
		if a.T.Balance < amount {
			return ErrFunds
		}
		a.T.Balance -= amount
		b.T.Balance += amount
		return u.Put(a, b)
	})
}
