package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	keys   []ordering.Key // of all rows of the lock table
	held   []ordering.Key // of those that somebody holds, or has an intent on
	units  []string       // who does
	marked []ordering.Key // of those that wait for a journal
	places []ordering.Key // of those with a queue, once for each place: whoever wants the row drops the dead there
	lasts  []string       // in the unit table: what neither expires nor may stay
	strays int            // rows of journals, other than the first: a late copy may have written one
}

// inherit takes every row of the lock table, and has what the dead left finished. A
// row that they have is free a lease after somebody has wanted it, and a place of
// theirs after Grace. It returns what was left before, and what still is.
func inherit(ctx context.Context, client *dynamodb.Client, prefix string, lease time.Duration) (before, after rest, err error) {
	if before, err = look(ctx, client, prefix); err != nil {
		return before, before, err
	}
	// The heir has time: its transactions are the largest there are, and on a busy
	// machine no answer is soon enough for a short lease. The dead are watched by theirs.
	locks, err := lockset.New(client, lockset.Config{Table: prefix + "locks", Owner: "heir", Lease: 5 * lease})
	if err != nil {
		return before, before, err
	}
	units, err := unitofwork.New(locks, unitofwork.Config{Table: prefix + "units"}) // decides about units with a journal
	if err != nil {
		return before, before, err
	}
	for _, keys := range byDepth(before.keys) {
		if err := takeAll(ctx, locks, keys, lease); err != nil {
			return before, before, err
		}
	}
	if _, err := units.Recover(ctx); err != nil {
		return before, before, err
	}
	after, err = look(ctx, client, prefix)
	return before, after, err
}

// byDepth parts keys by how many segments they have, the most first: who has a key
// has all below it, and does not look at their rows.
func byDepth(keys []ordering.Key) (levels [][]ordering.Key) {
	depth := func(k ordering.Key) int { return strings.Count(string(k), "/") }
	for _, k := range slices.SortedFunc(slices.Values(keys), func(a, b ordering.Key) int { return cmp.Compare(depth(b), depth(a)) }) {
		if n := len(levels); n > 0 && depth(levels[n-1][0]) == depth(k) {
			levels[n-1] = append(levels[n-1], k)
			continue
		}
		levels = append(levels, []ordering.Key{k})
	}
	return levels
}

func takeAll(ctx context.Context, locks *lockset.Client, keys []ordering.Key, lease time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience(lease))
	defer cancel()
	set, err := locks.Acquire(waiting, keys)
	if err != nil {
		return err
	}
	return set.Release(ctx)
}

// look reads both tables, row by row.
func look(ctx context.Context, client *dynamodb.Client, prefix string) (r rest, err error) {
	if err = scan(ctx, client, prefix+"locks", r.addLock); err == nil {
		err = scan(ctx, client, prefix+"units", r.addUnit)
	}
	return r, err
}

func (r *rest) addLock(row map[string]types.AttributeValue) {
	key := ordering.Key(text(row["key"]))
	r.keys = append(r.keys, key)
	_, free := row["isReleased"]
	_, held := row["unit"]
	_, below := row["below"]
	if !free || held || below {
		r.held = append(r.held, key)
		r.units = append(r.units, unitsOf(row)...)
	}
	if _, marked := row["pending"]; marked {
		r.marked = append(r.marked, key)
	}
	if queue, ok := row["queue"].(*types.AttributeValueMemberL); ok {
		r.places = append(r.places, slices.Repeat([]ordering.Key{key}, len(queue.Value))...)
	}
}

// addUnit: records expire once their unit is done with. What does not is still to be
// done, or could not be found.
func (r *rest) addUnit(row map[string]types.AttributeValue) {
	part, isRow := strings.CutPrefix(text(row["part"]), "journal/")
	_, expires := row["expiresAt"]
	switch {
	case isRow && strings.Trim(part, "0") != "":
		r.strays++
	case !expires:
		r.lasts = append(r.lasts, text(row["unit"])+" "+text(row["part"]))
	}
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
