//go:build unix

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What a process is told that the test runs as a holder.
const (
	holderContext = "HOLDALL_HOLDER_CONTEXT" // whose it asks
	holderEngine  = "HOLDALL_HOLDER_ENGINE"  // URL
	holderSign    = "HOLDALL_HOLDER_SIGN"    // the file whose first byte becomes 1 when another has the key
	holderRests   = "HOLDALL_HOLDER_RESTS"   // set if it never lets another goroutine run
)

var computed = ordering.Key("computed")

// computedLocks are for a busy machine, too: the test waits for a lease and for nothing shorter.
var computedLocks = lockset.Config{Table: "locks", Lease: 4 * time.Second, AttemptTimeout: time.Second}

// A holder computes on its only processor, so none of its goroutines can renew its key or end its
// context. When another process has the key, Err of that context is not nil.
func TestAHolderThatComputesIsNotToldThatItHoldsItsKey(t *testing.T) {
	if os.Getenv(holderContext) != "" {
		require.NoError(t, compute(t.Context()))
		return
	}
	for how, contexts := range map[string][]string{"and is stopped": {"unit", "With", "set"}, "and lets nobody else run": {"unit", "With", "set"}} {
		if testing.Short() {
			contexts = contexts[:1]
		}
		for _, whose := range contexts {
			t.Run(how+"/"+whose, func(t *testing.T) {
				t.Parallel()
				stopped := how == "and is stopped"
				db := holdalltest.DynamoDB()
				require.NoError(t, lockset.CreateTable(t.Context(), db.Client(), computedLocks))
				engine := httptest.NewServer(db.Handler())
				defer engine.Close()
				sign, err := os.Create(filepath.Join(t.TempDir(), "sign"))
				require.NoError(t, err)
				defer func() { _ = sign.Close() }()
				_, err = sign.Write([]byte{0})
				require.NoError(t, err)

				holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAHolderThatComputesIsNotToldThatItHoldsItsKey$")
				holder.Env = append(os.Environ(), "GOMAXPROCS=1", holderContext+"="+whose, holderEngine+"="+engine.URL, holderSign+"="+sign.Name())
				if !stopped {
					holder.Env = append(holder.Env, "GODEBUG=asyncpreemptoff=1", "GOGC=off", holderRests+"=never")
				}
				holder.Stderr = os.Stderr
				out, err := holder.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, holder.Start())
				defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
				said := bufio.NewScanner(out)
				require.Equal(t, "computing", next(said))

				if stopped {
					require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
				}
				locks, err := lockset.New(db.Client(), computedLocks)
				require.NoError(t, err)
				set, err := locks.Acquire(t.Context(), []ordering.Key{computed})
				require.NoError(t, err)
				_, err = sign.WriteAt([]byte{1}, 0)
				require.NoError(t, err)
				if stopped {
					require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
				}
				require.Regexp(t, `^lost: lock lost: `, next(said))
				require.NoError(t, set.Release(t.Context()))
			})
		}
	}
}

// next is the next line that the holder has said, but for those of package testing.
func next(said *bufio.Scanner) string {
	for said.Scan() {
		if line := said.Text(); line == "computing" || strings.HasPrefix(line, "lost: ") || line == "held" {
			return line
		}
	}
	return "nothing more"
}

// compute is the holder: it computes until another has its key, and asks its context then.
func compute(ctx context.Context) error {
	file, err := os.OpenFile(os.Getenv(holderSign), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sign, err := syscall.Mmap(int(file.Fd()), 0, 1, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(os.Getenv(holderEngine)), Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""),
	})
	locks, err := lockset.New(db, computedLocks)
	if err != nil {
		return err
	}
	rests := os.Getenv(holderRests) == "never"
	ask := func(ctx context.Context) {
		fmt.Println("computing")
		n := 0
		for rests && sign[0] == 0 {
			n++ // without a call, so nothing interrupts it
		}
		for ; ; n++ {
			taken := sign[0] == 1
			switch err := ctx.Err(); {
			case taken && err != nil:
				fmt.Println("lost:", context.Cause(ctx))
				return
			case taken:
				fmt.Println("held")
				return
			}
		}
	}
	switch os.Getenv(holderContext) {
	case "With":
		err = locks.With(ctx, []ordering.Key{computed}, func(ctx context.Context, _ fencing.Token) error { ask(ctx); return nil })
	case "unit":
		err = unit(ctx, locks, ask)
	default:
		var set *lockset.Set
		if set, err = locks.Acquire(ctx, []ordering.Key{computed}); err == nil {
			ask(set.Context())
			err = set.Release(ctx)
		}
	}
	if errors.Is(err, lockset.ErrLost) {
		return nil
	}
	return fmt.Errorf("its locks were not lost: %w", err)
}

func unit(ctx context.Context, locks *lockset.Client, ask func(context.Context)) error {
	units, err := unitofwork.New(locks, unitofwork.Config{})
	if err != nil {
		return err
	}
	work := unitofwork.Work{Keys: []ordering.Key{computed}, Lock: true, Attempts: 1}
	return units.Do(ctx, work, func(ctx context.Context, _ *unitofwork.Unit) error { ask(ctx); return nil })
}
