package gate

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

const (
	holderEnv = "HOLDALL_GUARD_HOLDER" // makes this test binary a holder: what it needs, by lines
	theKey    = ordering.Key("customer:42")
)

// holder takes a key, says so, waits for a line, and writes to the store whatever
// became of its lock meanwhile: it has not looked.
func holder(settings string) error {
	ctx := context.Background()
	s := strings.Split(settings, "\n")
	endpoint, locksTable, url, fences, records := s[0], s[1], s[2], s[3], s[4]
	lease, err := time.ParseDuration(s[5])
	if err != nil {
		return err
	}
	locks, err := lockset.New(engines.Client(endpoint), lockset.Config{Table: locksTable, Owner: "holder", Lease: lease})
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	gate, err := fencing.NewPostgreSQLGate(fences)
	if err != nil {
		return err
	}
	set, err := locks.Acquire(ctx, []ordering.Key{theKey})
	if err != nil {
		return err
	}
	fmt.Println("holds", set.Token())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	err = gate.Do(ctx, db, set.Token(), set.Keys(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE "` + records + `" SET writer = 'the holder that was stopped'`)
		return err
	})
	switch {
	case errors.Is(err, fencing.ErrStale):
		fmt.Println("stale:", err)
	case err != nil:
		return err
	default:
		fmt.Println("written")
	}
	return nil
}

// A process is stopped by the operating system while it holds a lock, another takes
// over and writes, and the first goes on: PostgreSQL refuses its write.
func TestAProcessThatWasStopped(t *testing.T) {
	for name, stopped := range map[string]bool{"stopped beyond its lease": true, "not stopped": false} {
		t.Run(name, func(t *testing.T) {
			s := postgres(t)
			e := engines.Dynoxide(t)
			cfg := lockset.Config{Table: e.Table("locks"), Owner: "heir", Lease: e.Lease(t, 3*time.Second)}
			require.NoError(t, lockset.CreateTable(t.Context(), e.Client, cfg))
			records := s.table + " records"
			s.exec(t, s.db, `CREATE TABLE "`+records+`" (writer TEXT)`)
			s.exec(t, s.db, `INSERT INTO "`+records+`" VALUES ('nobody')`)

			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), holderEnv+"="+strings.Join([]string{e.Endpoint, cfg.Table, engines.Postgres(t), s.table, records, cfg.Lease.String()}, "\n"))
			child.Stderr = os.Stderr
			in, err := child.StdinPipe()
			require.NoError(t, err)
			out, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
			says := bufio.NewReader(out)
			line, err := says.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "holds")

			want := "the holder that was stopped"
			if stopped {
				require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
				locks, err := lockset.New(e.Client, cfg)
				require.NoError(t, err)
				set, err := locks.Acquire(t.Context(), []ordering.Key{theKey})
				require.NoError(t, err)
				want = "the heir"
				require.NoError(t, s.Do(t.Context(), s.db, set.Token(), set.Keys(), func(tx *sql.Tx) error {
					_, err := tx.Exec(`UPDATE "` + records + `" SET writer = 'the heir'`)
					return err
				}))
				require.NoError(t, set.Release(t.Context()))
				require.NoError(t, child.Process.Signal(syscall.SIGCONT))
			}
			_, err = fmt.Fprintln(in, "write")
			require.NoError(t, err)
			line, err = says.ReadString('\n')
			require.NoError(t, err)
			t.Log(strings.TrimSpace(line))
			if stopped {
				require.Contains(t, line, `stale: key "customer:42"`)
			} else {
				require.Contains(t, line, "written")
			}
			var writer string
			require.NoError(t, s.db.QueryRow(`SELECT writer FROM "`+records+`"`).Scan(&writer))
			require.Equal(t, want, writer)
		})
	}
}
