package engines

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// insteadOfTests is what a test binary started by a test does, if anything.
var insteadOfTests = func() {}

func TestMain(m *testing.M) {
	insteadOfTests()
	os.Exit(Main(m))
}

func put(t *testing.T, e *Engine, table, key string) {
	t.Helper()
	_, err := e.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table,
		Item: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}}})
	require.NoError(t, err)
}

func has(t *testing.T, e *Engine, table, key string) bool {
	t.Helper()
	consistent := true
	out, err := e.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, ConsistentRead: &consistent,
		Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}}})
	require.NoError(t, err)
	return out.Item != nil
}

func TestAnEngineServesAndTidiesUp(t *testing.T) {
	Each(t, func(t *testing.T, e *Engine) {
		var table string
		t.Run("uses a table", func(t *testing.T) {
			table = e.CreateTable(t, "locks", "key", "")
			require.True(t, strings.HasPrefix(table, e.Prefix))
			put(t, e, table, "Moe")
			require.True(t, has(t, e, table, "Moe"))
		})
		_, err := e.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		var gone *types.ResourceNotFoundException
		require.ErrorAs(t, err, &gone, "the table outlived the test that made it")

		other := Get(t, e.Kind)
		require.Same(t, e.Server, other.Server, "a second process was started")
		require.NotEqual(t, e.Prefix, other.Prefix)
	})
}

func TestAPortTakenByAnotherIsLeftToIt(t *testing.T) {
	for _, kind := range []Kind{KindDynoxide, KindLocal} {
		t.Run(string(kind), func(t *testing.T) {
			taken, err := net.Listen("tcp4", "127.0.0.1:0")
			require.NoError(t, err)
			defer taken.Close()
			ports := []int{taken.Addr().(*net.TCPAddr).Port}
			home, err := kind.Home()
			require.NoError(t, err)
			s, err := startIn(t.Context(), kind, home, "", func() (int, error) {
				if len(ports) == 0 {
					return freePort()
				}
				p := ports[0]
				ports = nil
				return p, nil
			})
			require.NoError(t, err)
			defer s.Kill()
			require.NotEqual(t, taken.Addr().(*net.TCPAddr).Port, s.port)
		})
	}
}

func TestTheListenerIsTold(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	who, err := listenerOf(port, os.Getpid())
	require.NoError(t, err)
	require.Equal(t, own, who)
	who, err = listenerOf(port, os.Getppid())
	require.NoError(t, err)
	require.Equal(t, foreign, who)
	require.NoError(t, l.Close())
	who, err = listenerOf(port, os.Getpid())
	require.NoError(t, err)
	require.Equal(t, nobody, who)
}

func TestAFileOutlivesAKilledProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tables.db")
	e := Own(t, KindDynoxide, file)
	table := e.CreateTable(t, "locks", "key", "")
	put(t, e, table, "Moe")
	e.Server.Kill()
	require.False(t, e.Server.Alive())
	require.NoError(t, e.Server.Restart(t.Context()))
	require.True(t, has(t, e, table, "Moe"))

	_, err := Start(t.Context(), KindLocal, file)
	require.ErrorContains(t, err, "in memory only")
}

func TestAMissingEngineNamesTheLineToRun(t *testing.T) {
	for _, kind := range []Kind{KindDynoxide, KindLocal} {
		_, err := startIn(t.Context(), kind, t.TempDir(), "", freePort)
		var missing *NotInstalledError
		require.ErrorAs(t, err, &missing)
		require.True(t, strings.HasSuffix(err.Error(), "run: make engines"), err)
		require.NotContains(t, err.Error(), "\n")
	}
}

// script stands in for a dynoxide that misbehaves.
func script(t *testing.T, text string) (home string) {
	t.Helper()
	home = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "dynoxide"), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return home
}

func TestAFailedStartShowsWhatTheProcessWrote(t *testing.T) {
	_, err := startIn(t.Context(), KindDynoxide, script(t, "echo out of luck >&2; exit 3"), "", freePort)
	require.ErrorContains(t, err, "ended before it answered")
	require.ErrorContains(t, err, "out of luck")
}

func TestAPortOfAnotherIsGivenUpAtOnce(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	// The process lives on and never listens: only the foreign listener tells.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = startIn(ctx, KindDynoxide, script(t, "exec sleep 60"), "", func() (int, error) {
		return taken.Addr().(*net.TCPAddr).Port, nil
	})
	require.ErrorIs(t, err, errPortLost)
	require.ErrorContains(t, err, "5 ports tried")
}

func TestSharedEnginesNeedSomebodyToEndThem(t *testing.T) {
	p := pool{engines: map[Kind]*entry{}}
	_, err := p.get(KindDynoxide)
	require.ErrorContains(t, err, "engines.Main(m)")

	p.main = true
	s, err := p.get(KindDynoxide)
	require.NoError(t, err)
	again, err := p.get(KindDynoxide)
	require.NoError(t, err)
	require.Same(t, s, again)
	p.stop()
	require.False(t, s.Alive())
}

func TestOutputIsKeptToItsEnd(t *testing.T) {
	var w tail
	for range 3 {
		_, err := w.Write([]byte(strings.Repeat("x", tailSize/2)))
		require.NoError(t, err)
	}
	_, err := w.Write([]byte("end"))
	require.NoError(t, err)
	require.Len(t, w.String(), tailSize)
	require.True(t, strings.HasSuffix(w.String(), "xend"))
}

func TestUnknownKindsAreRefused(t *testing.T) {
	_, err := Start(t.Context(), "postgres", "")
	require.Error(t, err)
	var missing *NotInstalledError
	require.False(t, errors.As(err, &missing))
}
