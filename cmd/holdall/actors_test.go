package main

import (
	"cmp"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
)

// leastLease is the shortest lease of processes that are to die, or to fall silent: what a row says is
// what others watch. On a busy machine it is longer ([engines.Engine.Lease]). All others have the default.
const leastLease = 3 * time.Second

// mortal configures a process that is to die. Its requests get more of the lease than by default.
func mortal(table, owner string, lease time.Duration) lockset.Config {
	return lockset.Config{Table: table, Owner: owner, Lease: lease, Heartbeat: lease / 5, AttemptTimeout: lease * 3 / 10}
}

// decidesUpdates is the role of one that decides, and adds seven to N of each record.
const decidesUpdates = "decides updates"

// actor is a process with a role, which is package internal/actor.
type actor struct {
	*engines.Child
	nonce string // of its unit
}

// playing is what an actor's environment says of its role.
func playing(role, owner string, lease time.Duration, keys ...string) []string {
	cfg := mortal("", owner, lease)
	return []string{
		"ROLE=" + role, "OWNER=" + cfg.Owner, "KEYS=" + strings.Join(keys, " "),
		"LEASE=" + cfg.Lease.String(), "HEARTBEAT=" + cfg.Heartbeat.String(), "ATTEMPT=" + cfg.AttemptTimeout.String(),
	}
}

var readyLine = regexp.MustCompile(`(?m)^ready (\S{22})$`)

// actor starts a process and returns when it has what it wants; one that waits does not say.
func (b *bed) actor(t *testing.T, role, owner string, keys ...string) *actor {
	t.Helper()
	cmd := exec.Command(actorProgram)
	cmd.Env = append(b.environ(), playing(role, owner, cmp.Or(b.actorLease, b.lease), keys...)...)
	child, err := engines.StartChild(cmd)
	require.NoError(t, err)
	t.Cleanup(child.Kill)
	return &actor{Child: child}
}

func (a *actor) ready(t *testing.T) *actor {
	t.Helper()
	for a.nonce == "" {
		require.NoError(t, t.Context().Err())
		require.True(t, a.Alive(), a.Output())
		if said := readyLine.FindStringSubmatch(a.Output()); said != nil {
			a.nonce = said[1]
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return a
}

// says waits until it has said something.
func (a *actor) says(t *testing.T, text string) {
	t.Helper()
	for start := time.Now(); !strings.Contains(a.Output(), text); time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(start), aLongTime, a.Output())
	}
}
