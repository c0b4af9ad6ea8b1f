package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

func deskOf(t *testing.T, name string, more ...string) *branchDesk {
	t.Helper()
	o := &branch{}
	_, err := office.Parse(o, append([]string{"-endpoint", "http://x", "-prefix", "x-", "-name", name}, more...))
	require.NoError(t, err)
	return &branchDesk{Options: &o.Options, town: office.TownOf(&o.Options, []books.Customer{
		{ID: "c1", Accounts: []books.Child{{ID: "a3", Home: "c2"}, {ID: "a1", Home: "c1"}, {ID: "a2", Home: "c1"}}}, {ID: "c2", MergedInto: "c1"},
	})}
}

func take(t *testing.T, d *branchDesk) staff.Job {
	t.Helper()
	job, ok := d.next()
	require.True(t, ok)
	return job
}

// Who comes after a branch that died does again what had been begun under an ID,
// and nothing else of it, and then goes on.
func TestABranchTakesOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "b1.diary")
	dead := deskOf(t, "b1", "-mix", "payment=1,move=1")
	require.NoError(t, dead.takeOver(name))
	kinds := map[string]string{}
	var begun []staff.Job
	for range 20 {
		begun = append(begun, take(t, dead))
		kinds[begun[len(begun)-1].Name] = begun[len(begun)-1].Kind
	}
	var left []string
	for i, job := range begun {
		switch {
		case i%2 == 0:
			job.Told(staff.Committed, nil)
		case job.Once:
			left = append(left, job.Name)
		}
	}
	require.NotEmpty(t, left)

	heir := deskOf(t, "b1", "-mix", "payment=1,move=1")
	require.NoError(t, heir.takeOver(name))
	for _, want := range left {
		job := take(t, heir)
		require.Equal(t, want, job.Name)
		require.Equal(t, kinds[want], job.Kind, "the n-th job is always the same")
	}
	require.Equal(t, "b1/21", take(t, heir).Name)
}

func TestBranchesDoDifferentWork(t *testing.T) {
	require.NotEqual(t, deskOf(t, "b1").Seed, deskOf(t, "b2").Seed)
}

// The jobs of a rush have numbers of their own, and are payments between the accounts of one
// customer; whoever comes after who died does again those with an ID.
func TestARush(t *testing.T) {
	name := filepath.Join(t.TempDir(), "b1.diary")
	dead := deskOf(t, "b1")
	require.NoError(t, dead.takeOver(name))
	rush := func(d *branchDesk) staff.Job {
		job, ok := d.nextOfRush()
		require.True(t, ok)
		return job
	}
	var left []string
	for range 8 {
		if job := rush(dead); job.Once {
			left = append(left, job.Name)
		}
	}
	require.Equal(t, "b1/1", take(t, dead).Name)
	require.Equal(t, []string{"b1/rush-2", "b1/rush-4", "b1/rush-6", "b1/rush-8"}, left)
	heir := deskOf(t, "b1")
	require.NoError(t, heir.takeOver(name))
	for _, want := range append(left, "b1/rush-9") {
		require.Equal(t, want, rush(heir).Name)
	}
	for _, a := range dead.hot() {
		require.Equal(t, office.Customer(0), a.Home)
	}
}

// What was asked for twice is done if one says so, and in doubt if one says that.
func TestOfTwo(t *testing.T) {
	doubt := &unitofwork.InDoubtError{}
	require.NoError(t, ofTwo(nil, doubt))
	require.NoError(t, ofTwo(doubt, nil))
	require.Equal(t, error(doubt), ofTwo(doubt, books.ErrFunds))
	require.Equal(t, error(doubt), ofTwo(books.ErrFunds, doubt))
	require.Equal(t, books.ErrFunds, ofTwo(lockset.ErrLost, books.ErrFunds))
}
