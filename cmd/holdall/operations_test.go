package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// theNonce stands in the guide for the unit that it is about.
const theNonce = "6fWqB2t0T3q4n8Y1m7cZxA"

// scene is where the commands of a situation are run.
type scene struct {
	*bed
	nonce    string // of the unit that the guide names; empty if it names none
	endpoint string // the engine's, unless something is in front of it
}

// situations are those of docs/operations.md, by their headings, with how each comes about.
var situations = map[string]func(*testing.T, *scene){
	"A key is held, and its holder is silent": func(t *testing.T, s *scene) {
		s.recordsTable(t)
		holder := s.actor(t, "holds", "host-17 5b3d6bd8", "customer:42/account:1").ready(t)
		large := s.actor(t, "decides", "host-17 77f1a0c2", "invoice:1", "invoice:2", "invoice:3").ready(t)
		holder.Kill()
		large.Kill()
		s.nonce = holder.nonce
	},
	"A key is held, and its holder is alive": func(t *testing.T, s *scene) {
		s.nonce = s.actor(t, "holds", "host-17 5b3d6bd8", "customer:42/account:1").ready(t).nonce
	},
	"Many wait for a key": func(t *testing.T, s *scene) {
		s.nonce = s.actor(t, "holds", "host-17 5b3d6bd8", "customer:42").ready(t).nonce
		for n := range 3 {
			s.waits(t, n+1, fmt.Sprint("host-18 ", n), "customer:42")
		}
	},
	"A unit that is stuck": func(t *testing.T, s *scene) { // somebody has written a record with a higher token
		table := s.recordsTable(t)
		unit := s.actor(t, "decides", "host-17 5b3d6bd8", "customer:42", "customer:43", "customer:44").ready(t)
		unit.Kill()
		s.put(t, table, map[string]any{"key": "customer:43", "_fence": 7_000_000_000_000_000})
		s.nonce = unit.nonce
	},
	"A table is gone": func(t *testing.T, s *scene) { s.deleted(t) },
	"Permissions are missing": func(t *testing.T, s *scene) {
		s.endpoint = s.proxied(t, withholding(s.locks, "PartiQLUpdate", "Scan"), nil)
	},
	"A clock is wrong": func(t *testing.T, s *scene) { // that of a process, which is early, and that of the host, which is late
		s.held(t, "customer:42", lockset.Config{Owner: "host-17 5b3d6bd8", Lease: s.lease, Now: func() time.Time { return time.Now().Add(time.Hour) }})
		s.endpoint = s.proxied(t, late(time.Hour), dated(time.Hour))
	},
	"Requests are throttled": func(t *testing.T, s *scene) { s.endpoint = s.proxied(t, throttling(6), nil) },
	"Leases differ": func(t *testing.T, s *scene) {
		s.held(t, "customer:42", lockset.Config{Owner: "host-17 5b3d6bd8", Lease: time.Minute})
	},
	"A Region does not answer": func(t *testing.T, s *scene) {
		silent := listen(t) // takes connections, and never says anything
		t.Cleanup(func() { silent.Close() })
		s.endpoint = "http://" + silent.Addr().String()
	},
}

// The commands of docs/operations.md print what it shows, in the situations that it tells of.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	told, elsewhere := situationsOf(string(page))
	require.ElementsMatch(t, slices.Collect(maps.Keys(situations)), slices.Collect(maps.Keys(told)))
	require.NotContains(t, elsewhere, "```console", "only a situation has a place to run them")
	eachCase(t, told, func(t *testing.T, e *engines.Engine, heading, text string) {
		s := newScene(t, e)
		situations[heading](t, s)
		set := environ(s.endpoint, "HOLDALL_TABLE="+s.locks, "HOLDALL_UNITS="+s.units, "HOLDALL_LEASE="+s.lease.String())
		typed := func(text string) string { return strings.ReplaceAll(text, theNonce, s.nonce) }
		shown := []string{e.Prefix + "locks-records", "accounts", e.Prefix, ""}
		if s.nonce != "" {
			shown = append(shown, s.nonce, theNonce)
		}
		asShown(t, text, set, typed, func(text string) string {
			return strings.NewReplacer(shown...).Replace(s.leastShown(text))
		})
	})
}

// situationsOf returns the parts of the guide that tell of one situation each, and the rest.
func situationsOf(page string) (told map[string]string, rest string) {
	before, after, _ := strings.Cut(page, "\n## Situations\n")
	all, others, _ := strings.Cut(after, "\n## ")
	told = map[string]string{}
	for n, part := range strings.Split(all, "\n### ") {
		if n == 0 {
			before += part
			continue
		}
		heading, text, _ := strings.Cut(part, "\n")
		told[heading] = text
	}
	return told, before + others
}

// newScene has tables as the guide has people make them, of which a check has nothing to say.
func newScene(t *testing.T, e *engines.Engine) *scene {
	s := &scene{bed: newBed(t, e), endpoint: e.Endpoint}
	for _, table := range []string{s.locks, s.units} {
		s.protect(t, table, true)
		t.Cleanup(func() { s.protect(t, table, false) })
	}
	return s
}

func (s *scene) protect(t *testing.T, table string, on bool) {
	t.Helper()
	_, err := s.Client.UpdateTable(context.WithoutCancel(t.Context()), &dynamodb.UpdateTableInput{TableName: &table, DeletionProtectionEnabled: &on})
	require.NoError(t, err)
}

// deleted deletes the lock table. The engine drops it at the end of the test, so it is made again
// unless a command has done that.
func (s *scene) deleted(t *testing.T) {
	s.protect(t, s.locks, false)
	_, err := s.Client.DeleteTable(t.Context(), deleteTable(s.locks))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, lockset.CreateTable(context.WithoutCancel(t.Context()), s.Client, lockset.Config{Table: s.locks}))
	})
}

// waits starts a process that waits for a key, as the nth, and returns when it does.
func (b *bed) waits(t *testing.T, n int, owner, key string) {
	t.Helper()
	b.actor(t, "holds", owner, key)
	b.untilQueued(t, key, n)
}

// held has a key held until the end of the test, by a process whose settings are these.
func (s *scene) held(t *testing.T, key ordering.Key, cfg lockset.Config) {
	t.Helper()
	cfg.Table = s.locks
	locks, err := lockset.New(s.Client, cfg)
	require.NoError(t, err)
	set, err := locks.Acquire(t.Context(), []ordering.Key{key})
	require.NoError(t, err)
	t.Cleanup(func() { _ = set.Release(context.WithoutCancel(t.Context())) })
}
