package diary_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/internal/diary"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/lockset"
)

// What was written is read, by whoever comes after, half of a line that somebody
// left who was killed included.
func TestADiaryOutlivesWhoWroteIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diary")
	lines, err := diary.Read(name)
	require.NoError(t, err)
	require.Empty(t, lines, "there is none yet")

	d, err := diary.Open(name)
	require.NoError(t, err)
	first := d.Follow(1, staff.Job{Name: "x/1", Kind: "payment", Once: true})
	d.Follow(2, staff.Job{Name: "x/2", Kind: "payment", Once: true})
	d.Follow(3, staff.Job{Name: "x/3", Kind: "move"})
	d.Acquired(lockset.AcquiredInfo{Unit: "u", Token: 12})
	first.Told(staff.Committed, nil)
	d.Lost("u", errors.New("because"))
	require.NoError(t, d.Close())

	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"at":"2026-01-01T00:00:00Z","told":{"job":"x/2","outc`)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	d, err = diary.Open(name)
	require.NoError(t, err)
	again := d.Follow(2, staff.Job{Name: "x/2", Kind: "payment", Once: true})
	lines, err = diary.Read(name)
	require.NoError(t, err)
	require.Equal(t, []diary.Began{{N: 2, Job: "x/2", Kind: "payment", Once: true}, {N: 3, Job: "x/3", Kind: "move"}}, diary.Unfinished(lines))
	again.Told(staff.Failed, errors.New("why not"))
	require.NoError(t, d.Close())

	lines, err = diary.Read(name)
	require.NoError(t, err)
	require.Len(t, lines, 8)
	require.Equal(t, &diary.Holds{Unit: "u", Token: 12}, lines[3].Holds)
	require.Equal(t, &diary.Told{Job: "x/1", Outcome: staff.Committed}, lines[4].Told)
	require.Equal(t, &diary.Lost{Unit: "u", Why: "because"}, lines[5].Lost)
	require.False(t, lines[5].At.Before(lines[4].At))
	require.Equal(t, &diary.Told{Job: "x/2", Outcome: staff.Failed, Why: "why not"}, lines[7].Told)
	require.Len(t, diary.Unfinished(lines), 1)
}

// A diary that cannot be written says so in the end.
func TestADiaryThatCannotBeWritten(t *testing.T) {
	_, err := diary.Open(filepath.Join(t.TempDir(), "none", "x.diary"))
	require.ErrorContains(t, err, "diary: ")
	d, err := diary.Open(filepath.Join(t.TempDir(), "x.diary"))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	d.Lost("u", errors.New("because"))
	require.ErrorContains(t, d.Close(), "diary: ")
	_, err = diary.Read(t.TempDir())
	require.ErrorContains(t, err, "diary: ")
}
