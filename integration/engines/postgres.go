package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresBin is the folder that has PostgreSQL's programs: the one on the PATH, or
// where Debian puts its newest.
func PostgresBin() (string, error) {
	if program, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(program), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL cannot be started, initdb is missing; run: make engines")
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

func version(program string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(program))))
	return n
}

// Postgres is the URL of a PostgreSQL server that the tests of this test binary
// share; tables in it are to have names of the test's own.
func Postgres(t testing.TB) string {
	t.Helper()
	shared.mu.Lock()
	main := shared.main
	shared.mu.Unlock()
	if !main {
		t.Fatal("engines: this package needs: func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }")
	}
	postgres.once.Do(func() { postgres.err = postgres.start() })
	if postgres.err != nil {
		t.Fatal(postgres.err)
	}
	return postgres.url
}

// postgres is the server of one test binary.
var postgres postgresServer

type postgresServer struct {
	once sync.Once
	err  error
	url  string
	dir  string
	*Child
}

func (p *postgresServer) start() (err error) {
	bin, err := PostgresBin()
	if err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "holdall-postgres-"); err != nil {
		return err
	}
	as, err := unprivileged()
	if err != nil {
		return err
	}
	if as != nil {
		if err := os.Chown(p.dir, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(p.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "holdall", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", initdb, err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", "", "-N", "200")
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: as}
	if p.Child, err = StartChild(cmd); err != nil {
		return err
	}
	p.url = fmt.Sprintf("postgres://holdall@127.0.0.1:%d/postgres?sslmode=disable", port)
	return p.await(port)
}

// await returns when this process, and no other, listens on the port, and lets
// clients in.
func (p *postgresServer) await(port int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		if l, err := listenerOf(port, p.Pid); err != nil {
			return err
		} else if l == own {
			if conn, err := pgx.Connect(ctx, p.url); err == nil {
				return conn.Close(ctx)
			}
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("PostgreSQL ended; it wrote:\n%s", p.Output())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not listen; it wrote:\n%s", p.Output())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop shuts the server down at once, and removes what it had.
func (p *postgresServer) stop() {
	if p.Child != nil {
		_ = p.Signal(syscall.SIGQUIT) // gone already, or about to be
		<-p.Exited()
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

// unprivileged is who runs PostgreSQL, which refuses root; nil if we are not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}
