package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/archive"
	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/staff"
)

// archiving writes statements to SQL while payments go on, and has owners paused
// that are about to write one. It audits the books and the archive.
func archiving(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	arch, err := archive.Open(ctx, archive.Config{Where: o.archive, Prefix: o.prefix, Unguarded: o.unguarded})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, closeArchive(ctx, o, arch, stderr)) }()
	of, err := open(ctx, o, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.close(ctx)) }()

	town := newTown(o)
	if err := of.openTown(ctx, town, stdout); err != nil {
		return false, err
	}
	tally, took, err := of.work(ctx, "archiving", 0, 0, town.monthsJobs(), func(cfg *staff.Config) {
		cfg.Archive, cfg.Overtakings = arch, town.overtakings()
	})
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		say(stderr, "interrupted: no new work was begun, what was under way has ended\n")
	}
	reportArchiving(stdout, o, arch, tally, took)

	keys := append(town.keys(), books.AccountKey(books.BankAccount))
	results, records, err := of.audit(ctx, keys)
	if err != nil {
		return false, err
	}
	archived, err := arch.Load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	booksHold := reportAudit(stdout, results)
	archiveHolds := reportArchive(stdout, audit.CheckArchive(archived, records))
	return booksHold && archiveHolds && len(tally.Unexpected) == 0, nil
}

// closeArchive deletes the tables, also after an interrupt.
func closeArchive(ctx context.Context, o *options, arch *archive.Archive, stderr io.Writer) error {
	if o.keep {
		say(stderr, "kept the tables %s* of the archive (%v)\n", o.prefix, arch)
		arch.Keep()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return arch.Close(ctx)
}

// Kinds of jobs that are no change of the books.
const (
	kindStatement  = "statement"
	kindStatements = "statements" // of all accounts of a customer
	kindOverviews  = "overviews"  // read without locks
)

func (t *town) statement(account int) staff.Job {
	of := t.accounts[account]
	return staff.Job{Kind: kindStatement, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveAccount(ctx, of) }}
}

func (t *town) statements(id string) staff.Job {
	return staff.Job{Kind: kindStatements, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveCustomer(ctx, id) }}
}

// monthsJobs are payments and statements, without end. The n-th is a function of
// the seed and n.
func (t *town) monthsJobs() func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		n++
		draw := rand.New(rand.NewPCG(t.o.seed, uint64(n)))
		switch draw.IntN(6) {
		case 0:
			return t.statements(customer(draw.IntN(t.o.customers))), true
		case 1:
			return t.statement(draw.IntN(len(t.accounts))), true
		default:
			return t.payment(n, draw), true
		}
	}
}

// overtakings are as many as there are to be. Who is overtaken has locked one
// account, and the other all of its customer; or the reverse. In between the
// account changes. The n-th is a function of the seed and n.
func (t *town) overtakings() func() (staff.Overtaking, bool) {
	n := 0
	return func() (staff.Overtaking, bool) {
		if n == t.o.pauses {
			return staff.Overtaking{}, false
		}
		n++
		account := rand.New(rand.NewPCG(t.o.seed, uint64(n))).IntN(len(t.accounts))
		home := t.accounts[account].Home
		fine, coarse := t.statement(account), t.statements(home)
		changes := staff.Job{Kind: books.KindInterest, Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, home) }}
		if n%2 == 1 {
			return staff.Overtaking{Late: fine, Meanwhile: []staff.Job{changes, coarse}}, true
		}
		return staff.Overtaking{Late: coarse, Meanwhile: []staff.Job{changes, fine}}, true
	}
}
