package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

func setup(ctx context.Context, db *holdalltest.DB) error {
	units, err := unitofwork.Open(db.Client(), Config)
	if err != nil {
		return err
	}
	return errors.Join(
		lockset.CreateTable(ctx, db.Client(), Config.Locks), unitofwork.CreateTable(ctx, db.Client(), Config),
		db.CreateTable(ctx, "stock", "ID", ""),
		units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(Stock.Of(Item{"pen", 10}))
		}),
	)
}

func left(ctx context.Context, db lockset.DynamoDB) (int, error) {
	units, err := unitofwork.Open(db, Config)
	if err != nil {
		return 0, err
	}
	pens := Stock.Ref("pen")
	err = units.Read(ctx, pens)
	return pens.T.Left, err
}

func TestBuyInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		if err := setup(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		p := db.Process("shop")
		p.Next(holdalltest.Writes("stock"), "in-doubt-after")
		if err := Buy(t.Context(), p, "1", "pen"); !errors.Is(err, unitofwork.ErrInDoubt) {
			t.Fatal(err)
		}
		if err := Buy(t.Context(), db.Process("again"), "1", "pen"); err != nil {
			t.Fatal(err)
		}
		if n, err := left(t.Context(), db.Client()); n != 9 || err != nil {
			t.Fatal(n, err)
		}
	})
}

func TestBuyUnderFaults(t *testing.T) {
	holdalltest.Check{
		Setup: setup,
		Work:  func(ctx context.Context, p *holdalltest.Process) error { return Buy(ctx, p, "1", "pen") },
		Rival: func(ctx context.Context, p *holdalltest.Process) error { return Buy(ctx, p, "2", "pen") },
		Again: true, Locks: Config.Locks,
		Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
			n, err := left(ctx, p)
			sold := 10 - n
			if err == nil && (sold > 2 || told.OK() && sold == 0) {
				err = fmt.Errorf("%d sold", sold)
			}
			return err
		},
	}.Run(t)
}

// Those who use no locks have a DynamoDB, too, here over HTTP.
func TestOverHTTP(t *testing.T) {
	db := holdalltest.DynamoDB()
	server := httptest.NewServer(db.Handler())
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{Region: "local", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}})
	if err := db.CreateTable(t.Context(), "things", "ID", ""); err != nil {
		t.Fatal(err)
	}
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || len(out.TableNames) != 1 {
		t.Fatal(out, err)
	}
}
