package comingfrom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/unitofwork"
)

// both are the two programs, as a process runs them.
var both = map[string]func(ctx context.Context, p *holdalltest.Process, payment, from, to string, amount int64) error{
	"with versions": func(ctx context.Context, p *holdalltest.Process, payment, from, to string, amount int64) error {
		return TransferByVersions(ctx, p.Client(), payment, from, to, amount)
	},
	"with holdall": func(ctx context.Context, p *holdalltest.Process, payment, from, to string, amount int64) error {
		units, err := Open(p)
		if err != nil {
			return err
		}
		return Transfer(ctx, units, payment, from, to, amount)
	},
}

// Whatever goes wrong at whichever request, a payment that is repeated until it is answered is made
// once: by both programs.
func TestPaymentsUnderFaults(t *testing.T) {
	for program, pay := range both {
		t.Run(program, func(t *testing.T) {
			holdalltest.Check{
				Setup: tables("alice", "bob"),
				Work: func(ctx context.Context, p *holdalltest.Process) error {
					return pay(ctx, p, "p1", "alice", "bob", 80)
				},
				Again: true,
				Rival: func(ctx context.Context, p *holdalltest.Process) error {
					return pay(ctx, p, "p2", "bob", "alice", 30)
				},
				Locks: config.Locks,
				Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
					units, err := Open(p)
					if err != nil {
						return err
					}
					all, sum, err := balances(ctx, units, "alice", "bob")
					if err != nil {
						return err
					}
					made := map[int64][2]bool{100: {false, false}, 20: {true, false}, 130: {false, true}, 50: {true, true}}
					which, known := made[all[0]]
					switch {
					case sum != 200 || !known:
						return fmt.Errorf("alice has %d, bob %d", all[0], all[1])
					case told.OK() && !which[0], told.Rivalled && told.Rival == nil && !which[1]:
						return errors.New("a payment that was answered was not made")
					}
					return nil
				},
			}.Run(t)
		})
	}
}

// Payments of several processes between a few accounts: each is made once and no money is lost.
func TestPaymentsOfManyProcesses(t *testing.T) {
	const processes, payments, accounts = 4, 8, 6
	for program, pay := range both {
		t.Run(program, func(t *testing.T) {
			draw := drawn(t)
			type payment struct {
				id       string
				from, to int
			}
			var work [processes][]payment
			want := make([]int64, accounts)
			for i := range want {
				want[i] = 100
			}
			for i := range work {
				for n := range payments {
					from := draw.IntN(accounts)
					p := payment{fmt.Sprint(i, "/", n), from, (from + 1 + draw.IntN(accounts-1)) % accounts}
					work[i] = append(work[i], p)
					want[p.from]--
					want[p.to]++
				}
			}
			synctest.Test(t, func(t *testing.T) {
				db := holdalltest.DynamoDB()
				var names []string
				for i := range accounts {
					names = append(names, name(i))
				}
				require.NoError(t, tables(names...)(t.Context(), db))
				db.SetLatency(5 * time.Millisecond)
				var wait sync.WaitGroup
				for i, mine := range work {
					wait.Go(func() {
						process := db.Process(fmt.Sprint("process ", i))
						for _, p := range mine {
							for { // until it is answered, and once more
								err := pay(t.Context(), process, p.id, name(p.from), name(p.to), 1)
								if err == nil {
									break
								}
								if !errors.Is(err, ErrBusy) {
									t.Error(err)
									return
								}
							}
							if err := pay(t.Context(), process, p.id, name(p.from), name(p.to), 1); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wait.Wait()
				all, _, err := balances(t.Context(), opened(t, db.Client()), names...)
				require.NoError(t, err)
				require.Equal(t, want, all)
			})
		})
	}
}

// A payment that is refused changes nothing.
func TestARefusedPayment(t *testing.T) {
	for program, pay := range both {
		t.Run(program, func(t *testing.T) {
			db := holdalltest.DynamoDB()
			require.NoError(t, tables("alice", "bob")(t.Context(), db))
			p := db.Process("p")
			require.ErrorIs(t, pay(t.Context(), p, "p1", "alice", "bob", 101), ErrFunds)
			require.ErrorIs(t, pay(t.Context(), p, "p2", "alice", "nobody", 1), ErrFunds)
			all, _, err := balances(t.Context(), opened(t, db.Client()), "alice", "bob")
			require.NoError(t, err)
			require.Equal(t, []int64{100, 100}, all)
			// Made once there is enough: what was refused left no trace.
			require.NoError(t, pay(t.Context(), p, "p3", "bob", "alice", 1))
			require.NoError(t, pay(t.Context(), p, "p1", "alice", "bob", 101))
		})
	}
}

// What the page says that a payment costs is what is counted.
func TestTheCostOfAPayment(t *testing.T) {
	page, err := os.ReadFile("transactions.md")
	require.NoError(t, err)
	for program, pay := range both {
		db := holdalltest.DynamoDB()
		require.NoError(t, tables("alice", "bob")(t.Context(), db))
		p := db.Process("p")
		requests, reads, writes := db.Requests()
		require.NoError(t, pay(t.Context(), p, "p1", "alice", "bob", 10))
		after, afterReads, afterWrites := db.Requests()
		require.Contains(t, string(page), fmt.Sprintf("| %s | %d | %g | %g |", program, after-requests, afterReads-reads, afterWrites-writes))
	}
}

// Of two payments that have one ID by mistake and come at the same moment, one is made.
// Only holdall says so of the other.
func TestTwoPaymentsOfOneID(t *testing.T) {
	for program, pay := range both {
		t.Run(program, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := holdalltest.DynamoDB()
				require.NoError(t, tables("alice", "bob", "carol", "dave")(t.Context(), db))
				db.SetLatency(5 * time.Millisecond)
				told := make(chan error, 2)
				for from, to := range map[string]string{"alice": "bob", "carol": "dave"} {
					go func() { told <- pay(t.Context(), db.Process(from), "p1", from, to, 1) }()
				}
				err := errors.Join(<-told, <-told)
				all, _, failed := balances(t.Context(), opened(t, db.Client()), "alice", "carol")
				require.NoError(t, failed)
				require.ElementsMatch(t, []int64{99, 100}, all)
				require.Equal(t, program == "with holdall", errors.As(err, new(*unitofwork.IDError)), "%v", err)
			})
		})
	}
}
