package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// What an auditor hears in diaries.
func TestTestimony(t *testing.T) {
	dir := t.TempDir()
	d, err := diary.Open(filepath.Join(dir, "b1.diary"))
	require.NoError(t, err)
	for n, job := range []staff.Job{
		{Name: "b1/1", Kind: books.KindMove}, {Name: "b1/2", Kind: books.KindPayment}, {Name: "b1/3", Kind: office.KindStatement},
		{Name: "b1/4", Kind: books.KindMove}, {Name: "b1/5", Kind: kindOverviews},
	} {
		job = d.Follow(n, job)
		switch n {
		case 1:
			job.Told(staff.Refused, nil)
		case 3:
			job.Told(staff.Unknown, nil)
		default:
			job.Told(staff.Committed, nil)
		}
	}
	seen := []audit.Position{{Record: "account:a", Changes: 2, Balance: 3}}
	d.Write(diary.Line{Shown: &diary.Shown{Job: "b1/5", Positions: seen}})
	d.Acquired(trace.AcquireEnd{Unit: "u", Token: 12})
	d.Acquired(trace.AcquireEnd{Unit: "v", Token: 13})
	d.Lost("v", lockset.ErrLost)
	for _, unit := range []string{"w", "x", "y"} { // nobody knows what became of y: the process was killed
		d.Tries(unit)
	}
	d.Ended(trace.UnitEnd{Unit: "u", Outcome: trace.InDoubt}, staff.LockedFirst)
	d.Ended(trace.UnitEnd{Unit: "v", Outcome: trace.NotCommitted}, staff.LockedFirst)
	d.Ended(trace.UnitEnd{Unit: "w", Outcome: trace.Committed}, staff.WithoutLocks)
	d.Ended(trace.UnitEnd{Unit: "x", Outcome: trace.FellBack}, staff.WithoutLocks)
	for i, outcome := range []trace.Outcome{trace.Committed, trace.InDoubt, trace.FellBack} {
		d.Ended(trace.UnitEnd{Unit: fmt.Sprint("led", i), Outcome: outcome, Leader: "w"}, staff.Led)
	}
	d.Ended(trace.UnitEnd{Outcome: trace.NotCommitted}, staff.LockedFirst)
	of := func(token fencing.Token) diary.Sends {
		return diary.Sends{Job: "b1/3", Statements: []books.Statement{{Account: "a", Token: token}}}
	}
	for token, outcome := range map[fencing.Token]staff.Outcome{21: staff.Refused, 22: staff.Unknown, 23: staff.Committed} {
		sends := of(token)
		d.Write(diary.Line{Sends: &sends})
		d.Write(diary.Line{Archived: &diary.Archived{Sends: sends, Outcome: outcome}})
	}
	killed := of(24)
	d.Write(diary.Line{Sends: &killed})
	require.NoError(t, d.Close())

	got, err := hear(filepath.Join(dir, "*.diary"))
	require.NoError(t, err)
	require.Equal(t, audit.Testimony{
		Begun: map[string]bool{"b1/1": true, "b1/2": true, "b1/3": true, "b1/4": true, "b1/5": true},
		Done:  map[string]bool{"b1/1": true}, // a statement is in no history
		Not:   map[string]bool{"b1/2": true},
		Held:  map[audit.Unit]fencing.Token{{Branch: "b1", Nonce: "u"}: 12, {Branch: "b1", Nonce: "v"}: 13},
		Lost:  map[audit.Unit]bool{{Branch: "b1", Nonce: "v"}: true},
		Tried: map[audit.Unit]bool{{Branch: "b1", Nonce: "w"}: true, {Branch: "b1", Nonce: "x"}: true, {Branch: "b1", Nonce: "y"}: true},
		Void:  map[audit.Unit]bool{{Branch: "b1", Nonce: "v"}: true, {Branch: "b1", Nonce: "x"}: true, {Branch: "b1", Nonce: "led2"}: true},
		Led:   map[audit.Unit]string{{Branch: "b1", Nonce: "led0"}: "w", {Branch: "b1", Nonce: "led1"}: "w"},
		Filing: audit.Filing{
			Sent: map[books.Statement]bool{
				{Account: "a", Token: 21}: true, {Account: "a", Token: 22}: true, {Account: "a", Token: 23}: true, {Account: "a", Token: 24}: true,
			},
			Written: map[books.Statement]bool{{Account: "a", Token: 23}: true},
			Stale:   map[books.Statement]bool{{Account: "a", Token: 21}: true},
			Done:    map[string]bool{"b1/3": true},
			Filed:   map[string]bool{"b1/3": true},
		},
		Overviews: []audit.Overview{{Job: "b1/5", Positions: seen}},
	}, got)
}

func TestNobodyTestifies(t *testing.T) {
	_, err := hear(filepath.Join(t.TempDir(), "none*"))
	require.ErrorContains(t, err, "none*")
}
