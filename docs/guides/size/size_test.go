package size

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

const (
	day     = "2026-11-24"
	request = 5 * time.Millisecond // how long one takes
)

func config(transaction int) unitofwork.Config {
	return unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units", TransactionSize: transaction}
}

// list is the list of a day.
func list(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%05d", i))
	}
	return ids
}

// balance is what an account has at first: something else each.
func balance(i int) int64 { return 1000 + 100*int64(i) }

// setUp makes the tables and accounts. What a Process sends is not turned into JSON and back, as a
// Client's requests are: for 10,000 accounts that is seconds.
func setUp(ctx context.Context, db *holdalltest.DB, ids []string) error {
	client := db.Process("set-up")
	if err := lockset.CreateTable(ctx, client, config(0).Locks); err != nil {
		return err
	}
	if err := unitofwork.CreateTable(ctx, client, config(0)); err != nil {
		return err
	}
	if err := db.CreateTable(ctx, Accounts.Name, "ID", ""); err != nil {
		return err
	}
	var puts []types.WriteRequest
	for i, id := range ids {
		item, err := attributevalue.MarshalMap(Account{id, balance(i)})
		if err != nil {
			return err
		}
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	for batch := range slices.Chunk(puts, 25) { // as many as one request takes
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{Accounts.Name: batch}}
		if _, err := client.BatchWriteItem(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// booked is an error unless each account has its interest as often as is right.
func booked(ctx context.Context, db lockset.DynamoDB, ids []string, right ...int64) error {
	units, err := unitofwork.Open(db, config(0))
	if err != nil {
		return err
	}
	if _, err := units.Recover(ctx); err != nil { // or Read waits for what the dead have prepared
		return err
	}
	i := 0
	for chunk := range slices.Chunk(ids, Full) {
		var refs []*unitofwork.Ref[Account]
		var records []unitofwork.Record
		for _, id := range chunk {
			refs = append(refs, Accounts.Ref(id))
			records = append(records, refs[len(refs)-1])
		}
		if err := units.Read(ctx, records...); err != nil {
			return err
		}
		for _, ref := range refs {
			if times := (ref.T.Balance - balance(i)) / (balance(i) / 100); !slices.Contains(right, times) || ref.T.Balance != balance(i)+times*(balance(i)/100) {
				return fmt.Errorf("account %s has %d, and had %d", ref.T.ID, ref.T.Balance, balance(i))
			}
			i++
		}
	}
	return nil
}

func page(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// Whatever goes wrong at whichever request, also in units with a journal: once the job says that it
// is done, each account has its interest, and none has it twice.
func TestTheJobUnderFaults(t *testing.T) {
	ids := list(6)
	for name, transaction := range map[string]int{"one transaction each": 0, "a journal each": 4} {
		t.Run(name, func(t *testing.T) {
			job := func(ctx context.Context, p *holdalltest.Process) error {
				units, err := unitofwork.Open(p, config(transaction))
				if err != nil {
					return err
				}
				return Book(ctx, units, &Accounts, day, ids, 3)
			}
			check := holdalltest.Check{
				Setup: func(ctx context.Context, db *holdalltest.DB) error { return setUp(ctx, db, ids) },
				Work:  job, Again: true, Locks: config(0).Locks,
				Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
					right := []int64{0, 1}
					if told.OK() {
						right = right[1:]
					}
					if err := booked(ctx, p, ids, right...); err != nil {
						return err
					}
					if err := job(ctx, p); err != nil {
						return err
					}
					return booked(ctx, p, ids, 1)
				},
			}
			if testing.Short() {
				check.Faults = []holdalltest.Fault{"crash", "in-doubt-after"}
			}
			check.Run(t)
		})
	}
}

// The process of a job dies in the middle, at a commit that is carried out and one that is not;
// another one does the rest, and two do it at a time.
func TestAJobThatDies(t *testing.T) {
	ids := list(300)
	for _, fault := range []holdalltest.Fault{"crash", "crash-after"} {
		synctest.Test(t, func(t *testing.T) {
			db := holdalltest.DynamoDB()
			require.NoError(t, setUp(t.Context(), db, ids))
			dies, left := db.Process("dies"), len(ids)/Full/2
			dies.Next(func(r holdalltest.Request) bool {
				if slices.Contains(r.Writes, Accounts.Name) {
					left--
				}
				return left == 0
			}, fault)
			job := func(p *holdalltest.Process) error {
				units, err := unitofwork.Open(p, config(0))
				require.NoError(t, err)
				return Book(t.Context(), units, &Accounts, day, ids, Full)
			}
			require.Error(t, job(dies))
			others := make(chan error, 2)
			for _, name := range []string{"second", "third"} {
				go func() { others <- job(db.Process(name)) }()
			}
			require.NoError(t, <-others)
			require.NoError(t, <-others)
			require.NoError(t, booked(t.Context(), db.Process("audit"), ids, 1))
		})
	}
}

// An account that was closed after the list was made stays closed.
func TestAnAccountThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := list(3)
		db := holdalltest.DynamoDB()
		require.NoError(t, setUp(t.Context(), db, ids))
		units, err := unitofwork.Open(db.Client(), config(0))
		require.NoError(t, err)
		require.NoError(t, Book(t.Context(), units, &Accounts, day, []string{ids[0], "closed", ids[1], ids[2], "closed, too"}, 4))
		require.NoError(t, booked(t.Context(), db.Process("audit"), ids, 1))
		for _, id := range []string{"closed", "closed, too"} {
			closed := Accounts.Ref(id)
			require.NoError(t, units.Read(t.Context(), closed))
			require.False(t, closed.Found, id)
		}
	})
}

// A list that has changed is refused where the change is, before anything is booked twice: also if
// the keys of its parts are the same.
func TestAnotherListIsRefused(t *testing.T) {
	for _, accounts := range []*unitofwork.Table[Account]{&Accounts, &shared} {
		synctest.Test(t, func(t *testing.T) {
			ids := list(12)
			db := holdalltest.DynamoDB()
			require.NoError(t, setUp(t.Context(), db, ids))
			units, err := unitofwork.Open(db.Client(), config(0))
			require.NoError(t, err)
			require.NoError(t, Book(t.Context(), units, accounts, day, ids[1:7], 3))
			err = Book(t.Context(), units, accounts, day, ids, 3)
			require.ErrorAs(t, err, new(*unitofwork.IDError))
		})
	}
}

// shared is a table of the same accounts of which 96 have one key.
var shared = unitofwork.Table[Account]{
	Name: Accounts.Name, PartitionKey: "ID",
	Guard: func(a *Account) ordering.Key {
		n, _ := strconv.Atoi(a.ID)
		return ordering.Join(fmt.Sprintf("shelf:%d", n/96))
	},
}

// The page's table of what the whole job costs is what is counted: where a part is one transaction, of one
// part for all, and of a smaller last one. Such parts cost alike, as a whole job of them shows.
func TestWhatAJobCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("each job is of 10,000 accounts")
	}
	synctest.Test(t, func(t *testing.T) {
		ids, db := list(10_000), holdalltest.DynamoDB()
		require.NoError(t, setUp(t.Context(), db, ids))
		units, err := unitofwork.Open(db.Process("job"), config(0))
		require.NoError(t, err)
		db.SetLatency(request)
		for _, r := range []struct {
			key      string
			accounts *unitofwork.Table[Account]
			size     int
		}{
			{"one each", &Accounts, 1}, {"one each", &Accounts, 10}, {"one each", &Accounts, Full}, {"one each", &Accounts, 100},
			{"one each", &Accounts, 1000}, {"one each", &Accounts, 10_000}, {"one for 96", &shared, 96},
		} {
			// count returns the requests, write units and time of a job, and the requests to run it again.
			count := func(ids []string) [4]float64 {
				book := func() (requests, written float64, took time.Duration) {
					before, _, writtenBefore := db.Requests()
					began := time.Now()
					job := fmt.Sprint(r.size, " of ", len(ids))
					require.NoError(t, Book(t.Context(), units, r.accounts, job, ids, r.size))
					after, _, writtenAfter := db.Requests()
					return float64(after - before), writtenAfter - writtenBefore, time.Since(began)
				}
				requests, written, took := book()
				again, _, _ := book()
				return [4]float64{requests, written, float64(took), again}
			}
			var all [4]float64
			if r.size > 96 || r.size == Full {
				all = count(ids)
			}
			if r.size <= 96 {
				one, last, sum := count(ids[:r.size]), count(ids[:len(ids)%r.size]), [4]float64{}
				for n := range sum {
					sum[n] = one[n]*float64(len(ids)/r.size) + last[n]
				}
				require.True(t, r.size != Full || all == sum, "%v, and not %v", all, sum)
				all = sum
			}
			parts, took := (len(ids)+r.size-1)/r.size, time.Duration(all[2])
			require.Contains(t, page(t), fmt.Sprintf("| %d | %s | %d | %.0f | %.0f | %v | %v | %.0f |",
				r.size, r.key, parts, all[0], all[1],
				took.Round(100*time.Millisecond), (took/time.Duration(parts)).Round(time.Millisecond), all[3]))
		}
	})
}
