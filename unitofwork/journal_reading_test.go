package unitofwork_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What of a dead unit's journal is read, and what is made of answers that are short.

// gets are the rows of the unit table that a read asks for, by their range keys.
func gets(c faults.Call) (parts []string) {
	if in, ok := c.Input.(*dynamodb.TransactGetItemsInput); ok {
		for _, item := range in.TransactItems {
			if *item.Get.TableName == "units" {
				parts = append(parts, valueOf(item.Get.Key["part"]))
			}
		}
	}
	return parts
}

// A journal that is incomplete may be that of a unit that is done by now: its record is
// read once more, and if that has no answer, nothing is known, and all is kept.
func TestAnIncompleteJournalWhoseRecordCannotBeRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		unit := b.dies(decides, 1, true)
		units := b.db.Items("units")
		b.delete("units", map[string]string{"unit": unit, "part": "journal/000000"})
		before := b.tables()
		found, err := b.client("heir", func(c faults.Call) faults.Fault {
			if parts := gets(c); len(parts) == 1 && parts[0] == "record" {
				return faults.Deny()
			}
			return faults.Pass()
		}).Recover(t.Context())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Empty(t, found)
		b.kept(before)

		for _, item := range units {
			b.putItem("units", item)
		}
		found, err = b.client("mended", nil).Recover(t.Context())
		require.NoError(t, err)
		require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
		require.True(t, b.allOrNothing(all))
		b.nothingLeft()
	})
}

// Of a journal as many rows are read as were decided, each once.
func TestAJournalIsReadOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inOneAction)
		over := make(chan struct{})
		t.Cleanup(func() { <-over })
		go func() {
			defer close(over)
			_ = dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, putBulk(9, 70<<10)) // six bytes each, as JSON has them
		}()
		<-dead.net.Dead()
		rows := 0
		for _, item := range b.db.Items("units") {
			if strings.HasPrefix(valueOf(item["part"]), "journal/") {
				rows++
			}
		}
		require.Greater(t, rows, 10, "they are read by two requests")
		read := map[string]int{}
		_, err := b.client("heir", func(c faults.Call) faults.Fault {
			for _, part := range gets(c) {
				read[part]++
			}
			return faults.Pass()
		}, inOneAction).Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, read, rows)
		for part, times := range read {
			require.Equal(t, 1, times, part)
		}
		b.nothingLeft()
		b.allFree()
	})
}

// A refusal before the journal is begun leaves nothing to remove.
func TestALargeUnitThatIsRefusedEarlyRemovesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil, inOneAction)
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Check(accounts.Ref("1", "a"), unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
		})
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		require.Equal(t, map[string]int{"TransactWriteItems": 3}, c.requests(), "it locks, asks and releases")
		require.Empty(t, b.db.Items("units"))
		b.allFree()
	})
}

// short leaves out the last of several answers to a transactional read.
type short struct {
	*memdynamo.DB
	on bool
}

func (s *short) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	out, err := s.DB.TransactGetItems(ctx, in, options...)
	if err == nil && s.on {
		out.Responses = out.Responses[:len(out.Responses)-1]
	}
	return out, err
}

// An answer that is not one to each question is none.
func TestAnswersThatAreShort(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ref := b.refOf("")
		db := &short{DB: b.db}
		shared, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
		require.NoError(t, err)
		client, err := unitofwork.New(shared, unitofwork.Config{Table: "units"})
		require.NoError(t, err)
		db.on = true
		one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		require.ErrorContains(t, client.Read(t.Context(), one, two), "answers to")
		_, err = client.Outcome(t.Context(), ref)
		require.ErrorContains(t, err, "1 answers to 2 gets")
		_, err = client.Outcome(t.Context(), "p")
		require.ErrorContains(t, err, "0 answers to 1 gets")
		_, _, err = (*locks.Client)(shared).Silence(t.Context(), transferKeys[0], "unit")
		require.ErrorContains(t, err, "0 answers to 1 gets")

		db.on = false
		err = client.Do(t.Context(), unitofwork.Work{Lock: true, Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			db.on = true
			defer func() { db.on = false }()
			return u.Get(ctx, one, two)
		})
		require.ErrorContains(t, err, "1 answers to 2 gets")
		require.False(t, one.Found)
		require.False(t, two.Found)
	})
}
