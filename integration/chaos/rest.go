package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// rest is what the two tables of holdall have when everybody is gone.
type rest struct {
	held    []ordering.Key // rows of the lock table that somebody holds, or has an intent on
	units   []string       // who does
	places  int            // of the dead, in queues of free rows: whoever wants the row next drops them
	journal int            // rows of journals
}

// inherit takes what the dead still have, which is free a lease after somebody has
// wanted it. It returns what was left before, and what is still left.
func inherit(ctx context.Context, client *dynamodb.Client, prefix string, lease time.Duration) (before, after rest, err error) {
	if before, err = look(ctx, client, prefix); err != nil || len(before.held) == 0 {
		return before, before, err
	}
	locks, err := lockset.New(client, lockset.Config{Table: prefix + "locks", Owner: "heir", Lease: lease})
	if err != nil {
		return before, before, err
	}
	if _, err := unitofwork.New(locks, unitofwork.Config{Table: prefix + "units"}); err != nil { // decides about units with a journal
		return before, before, err
	}
	waiting, cancel := context.WithTimeout(ctx, 10*lease)
	defer cancel()
	set, err := locks.Acquire(waiting, before.held)
	if err != nil {
		return before, before, err
	}
	if err := set.Release(ctx); err != nil {
		return before, before, err
	}
	after, err = look(ctx, client, prefix)
	return before, after, err
}

// look reads both tables, row by row.
func look(ctx context.Context, client *dynamodb.Client, prefix string) (r rest, err error) {
	err = scan(ctx, client, prefix+"locks", func(row map[string]types.AttributeValue) {
		_, free := row["isReleased"]
		_, held := row["unit"]
		_, below := row["below"]
		if !free || held || below {
			r.held = append(r.held, ordering.Key(text(row["key"])))
			r.units = append(r.units, unitsOf(row)...)
		}
		if queue, ok := row["queue"].(*types.AttributeValueMemberL); ok {
			r.places += len(queue.Value)
		}
	})
	if err != nil {
		return r, err
	}
	err = scan(ctx, client, prefix+"units", func(row map[string]types.AttributeValue) {
		if strings.HasPrefix(text(row["part"]), "journal/") {
			r.journal++
		}
	})
	return r, err
}

// unitsOf are those that a row names as its holder, or as having an intent.
func unitsOf(row map[string]types.AttributeValue) (units []string) {
	if unit := text(row["unit"]); unit != "" {
		units = append(units, unit)
	}
	if below, ok := row["below"].(*types.AttributeValueMemberSS); ok {
		for _, entry := range below.Value {
			unit, _, _ := strings.Cut(entry, " ")
			units = append(units, unit)
		}
	}
	return units
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func scan(ctx context.Context, client *dynamodb.Client, table string, see func(map[string]types.AttributeValue)) error {
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read table %q: %w", table, err)
		}
		for _, row := range page.Items {
			see(row)
		}
	}
	return nil
}
