package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/ordering"
)

var update = flag.Bool("update", false, "write what the commands print to testdata")

// town is a lock table with processes of every kind: one alive, one stopped, dead ones, and
// two that wait.
type town struct {
	*bed
	alive, stopped, dead, prepared, decided *actor
}

func newTown(t *testing.T, e *engines.Engine) *town {
	w := &town{bed: newBed(t, e)}
	w.recordsTable(t)
	w.alive = w.actor(t, "holds", "alive", "customer:1/account:1").ready(t)
	w.stopped = w.actor(t, "holds", "stopped", "customer:2").ready(t)
	w.dead = w.actor(t, "holds", "dead", "customer:3/account:1", "customer:3/account:2/card:1").ready(t)
	w.prepared = w.actor(t, "prepares", "prepared", "large:1", "large:2").ready(t)
	w.decided = w.actor(t, "decides", "decided", "large:3", "large:4").ready(t)
	require.NoError(t, w.stopped.Signal(syscall.SIGSTOP))
	w.dead.Kill()
	w.prepared.Kill()
	w.decided.Kill()

	set, err := w.client(t).Locks().Acquire(t.Context(), []ordering.Key{"free"})
	require.NoError(t, err)
	require.NoError(t, set.Release(t.Context()))
	w.put(t, w.locks, map[string]any{"key": "damaged", "fence": "high"})
	for n, key := range []string{"customer:1/account:1", "customer:1/account:1", "customer:1"} {
		w.actor(t, "holds", fmt.Sprint("waiter ", n), key)
		w.untilQueued(t, key, n%2+1)
	}
	return w
}

// look runs a command of this town's operator.
func (w *town) look(t *testing.T, args ...string) ran {
	t.Helper()
	return w.run(t, append(args, "--lease", w.lease.String())...)
}

// session is what commands print, each as if it were alone: they only look, and most of the
// time they wait.
func (w *town) session(t *testing.T, commands ...string) string {
	t.Helper()
	all, printed := make([]ran, len(commands)), make([]string, len(commands))
	var group sync.WaitGroup
	atOnce := make(chan struct{}, 4)
	for n, command := range commands {
		atOnce <- struct{}{}
		group.Go(func() {
			all[n] = w.look(t, strings.Fields(command)...)
			<-atOnce
		})
	}
	group.Wait()
	for n, got := range all {
		require.Equal(t, ran{exitDone, got.stdout, ""}, got, commands[n])
		printed[n] = fmt.Sprintf("$ holdall %s\n%s\n", commands[n], normalised(w.leastShown(got.stdout)))
	}
	return strings.Join(printed, "")
}

// leastShown returns what a command has printed as if the lease of actors were the least.
func (b *bed) leastShown(text string) string {
	words := regexp.MustCompile(`(its lease is |this command was told )` + regexp.QuoteMeta(b.lease.String()))
	fields := regexp.MustCompile(`("(?:lease|limit)Seconds":)` + fmt.Sprint(b.lease.Seconds()) + `\b`)
	return fields.ReplaceAllString(words.ReplaceAllString(text, "${1}"+leastLease.String()), "${1}"+fmt.Sprint(leastLease.Seconds()))
}

var normal = []struct {
	is   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`\bt[0-9A-Z]{10}-`), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`\(\S+ ago\)`), "(<some time> ago)"},
	{regexp.MustCompile(`\bfor \d+s\b`), "for <n>s"},
	{regexp.MustCompile(`\b\d{16}\b`), "<token>"},
	{regexp.MustCompile(`"silentSeconds":[0-9.]+`), `"silentSeconds":<n>`},
}

var wordText = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// isNonce reports whether a word is 16 bytes in base64url.
func isNonce(word string) bool {
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(word)
	return err == nil && len(bytes) == 16
}

// normalised is what a command has printed, without what differs from run to run: units are
// numbered in the order in which they are named.
func normalised(text string) string {
	for _, n := range normal {
		text = n.is.ReplaceAllString(text, n.says)
	}
	units := map[string]string{}
	return wordText.ReplaceAllStringFunc(text, func(nonce string) string {
		if !isNonce(nonce) {
			return nonce
		}
		if units[nonce] == "" {
			units[nonce] = fmt.Sprintf("<unit %d>", len(units)+1)
		}
		return units[nonce]
	})
}

// golden compares what commands have printed with what they are to print.
func golden(t *testing.T, file, printed string) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(printed), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), printed)
}

func TestShow(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, e *engines.Engine) {
		w := newTown(t, e)
		for name, commands := range map[string][]string{
			"show.golden": {
				"show customer:1/account:1", "show customer:1", "show customer:2", "show customer:2/account:9", "show customer:3/account:1",
				"show customer:3 --below 10", "show large:1", "show large:3", "show free", "show unheard/of", "show damaged",
				"show --no-watch customer:2",
			},
			"show.json.golden": {"show -o json customer:1", "show -o json customer:2", "show -o json large:3"},
		} {
			golden(t, name, w.session(t, commands...))
		}
	})
}

// A stopped process that goes on is alive again.
func TestShowWatches(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	holder := b.actor(t, "holds", "holder", "k").ready(t)
	show := func(args ...string) (got shownJSON, took time.Duration) {
		t.Helper()
		start := time.Now()
		b.run(t, append([]string{"show", "k", "-o", "json"}, args...)...).json(t, exitDone, &got)
		return got, time.Since(start)
	}
	got, _ := show()
	require.Equal(t, "alive", got.Row.Life.State)
	require.Equal(t, holder.nonce, got.Row.Life.Unit)

	require.NoError(t, holder.Signal(syscall.SIGSTOP))
	got, _ = show("--no-watch")
	require.Nil(t, got.Row.Life)
	got, took := show()
	require.Equal(t, "dead", got.Row.Life.State)
	require.GreaterOrEqual(t, took, b.lease)
	require.GreaterOrEqual(t, got.Row.Life.SilentSeconds, b.lease.Seconds())
	require.Equal(t, b.lease.Seconds(), got.Row.Life.LimitSeconds, "that of the row, not of the flags")
}

// The unit table that a row names need not be there, or be open to who looks: the rest is
// shown.
func TestShowWithoutTheUnitTable(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	holder := b.actor(t, "holds", "holder\x1b[31m", "k").ready(t)
	holder.Kill()
	_, err := b.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(b.locks), Key: keyItem("k"),
		UpdateExpression:          aws.String("SET pending = :table"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":table": &types.AttributeValueMemberS{Value: "absent"}},
	})
	require.NoError(t, err)
	got := b.run(t, "show", "k", "--no-watch")
	require.Equal(t, exitDone, got.code, got)
	require.Contains(t, got.stdout, `could not be read: table "absent": `)
	require.NotContains(t, got.stdout, "\x1b", "a terminal does not obey what is in a row")
	require.Contains(t, got.stdout, `x1b[31m`)
	require.NotContains(t, b.run(t, "ls").stdout, "\x1b")
	var shown shownJSON
	b.run(t, "show", "k", "--no-watch", "-o", "json").json(t, exitDone, &shown)
	require.Contains(t, shown.Unasked, "absent")
	require.Nil(t, shown.Journal)
}
