package diary_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
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
	d.Acquired(trace.AcquireEnd{Unit: "u", Token: 12})
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

// answers is an archive that answers what it is told to, one answer for each write.
type answers struct {
	next *[]error
	seen func() // what the diary has by then
}

func (a answers) Write(context.Context, fencing.Token, []ordering.Key, []books.Statement) error {
	a.seen()
	err := (*a.next)[0]
	*a.next = (*a.next)[1:]
	return err
}

// What is sent to the archive is in the diary before it is sent, and what came of it
// afterwards, under the name of the job.
func TestWhatTheArchiveAnswers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.diary")
	d, err := diary.Open(name)
	require.NoError(t, err)
	last := func() diary.Line {
		lines, err := diary.Read(name)
		require.NoError(t, err)
		return lines[len(lines)-1]
	}
	sent := diary.Sends{Job: "x/4", Statements: []books.Statement{{Account: "a", Balance: -5, Changes: 2, Token: 12}, {Account: "b", Token: 12}}}
	next := []error{&fencing.StaleError{}, errors.New("cut"), nil}
	bank := &books.Bank{Archive: answers{&next, func() { require.Equal(t, &sent, last().Sends) }}}
	job := d.Follow(4, staff.Job{Name: "x/4", Do: func(ctx context.Context, b *books.Bank) error {
		return b.Archive.Write(ctx, 12, []ordering.Key{"a"}, sent.Statements)
	}})

	require.ErrorIs(t, job.Do(t.Context(), bank), fencing.ErrStale)
	require.Equal(t, &diary.Archived{Sends: sent, Outcome: staff.Refused}, last().Archived)
	require.EqualError(t, job.Do(t.Context(), bank), "cut")
	require.Equal(t, &diary.Archived{Sends: sent, Outcome: staff.Unknown, Why: "cut"}, last().Archived)
	require.NoError(t, job.Do(t.Context(), bank))
	require.Equal(t, &diary.Archived{Sends: sent, Outcome: staff.Committed}, last().Archived)
	require.IsType(t, answers{}, bank.Archive, "it is that of the job only")
	require.NoError(t, d.Close())
}
