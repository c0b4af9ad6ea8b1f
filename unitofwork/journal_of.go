package unitofwork

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
)

// JournalState is what the unit table says of a unit with a journal, which is one that does
// not fit into one transaction.
type JournalState struct {
	// Outcome is [NotCommitted] if it was decided so, and [Undecided] while there is an entry
	// or a journal and no decision. It is [Forgotten] if nothing names the unit: it has no
	// journal, or none yet, or was done or aborted long ago.
	Outcome   Outcome
	Done      bool      // all that was committed is written
	DecidedAt time.Time // by the clock of who decided; zero if it is not decided, or not told
	// Open is whether there is an entry, by which [Client.Recover] finds the unit.
	Open    bool
	Began   time.Time // when the entry was written, by its writer's clock; zero if not told
	Rows    int       // of the journal that are there
	Decided int       // rows that the decision names; zero if it names none
	// What the first row says of the journal, if it is there.
	Locks         string // the lock table that has the unit's keys
	Steps, Writes int    // how many keys it has, and how many records it writes
	// Problem is what is wrong with the record of the decision or with the first row; ""
	// if nothing is.
	Problem string
}

// Stuck reports whether the unit cannot be finished as the tables are, by what is known of
// its journal: it is committed, not done, and rows of its journal are missing or damaged.
// Of records that its writes cannot be applied to, only applying tells.
func (s JournalState) Stuck() bool {
	return s.Outcome == Committed && !s.Done && (s.Rows < s.Decided || s.Problem != "")
}

// JournalOf says what the unit table says of a unit, by its nonce: for people and tools. It
// writes nothing, and reads the first row of a journal, of the others only that they are
// there. The record of the decision and the entry are of one moment, the rows of a later one,
// by which a unit that is at work may have gone on.
//
// Errors: one that says so if there is no unit table; *lockset.TableError, *lockset.NoAnswerError.
func (c *Client) JournalOf(ctx context.Context, unit string) (JournalState, error) {
	if c.cfg.Table == "" {
		return JournalState{}, &locks.ConfigError{Field: "Table", Reason: "is required to find a journal"}
	}
	items, err := c.caller.Read(ctx, c.locks.RequestID(ctx), []types.TransactGetItem{
		c.get(journal.ItemKey(unit, journal.RecordPart)), c.get(journal.ItemKey(journal.OpenUnits, unit)), c.get(journal.RowKey(unit, 0)),
	})
	if err != nil {
		return JournalState{}, err
	}
	rows, err := c.query(ctx, unit, "journal/")
	if err != nil {
		return JournalState{}, err
	}
	return journalState(unit, items[0], items[1], items[2], len(rows)), nil
}

// journalState reads the record of a decision, an entry, and the first row of a journal.
func journalState(unit string, record, entry, first map[string]types.AttributeValue, rows int) JournalState {
	s := JournalState{
		Outcome: Forgotten, Open: len(entry) > 0, Rows: rows,
		DecidedAt: journal.NotedAt(record), Began: journal.NotedAt(entry),
	}
	var problems []string
	decision, err := journal.ParseDecision(record)
	switch {
	case err != nil:
		s.Outcome, problems = Undecided, append(problems, err.Error())
	case decision.State == journal.Aborted:
		s.Outcome = NotCommitted
	case decision.State != journal.Undecided:
		s.Outcome, s.Done, s.Decided = Committed, decision.State == journal.Done, decision.Rows
	case s.Open || rows > 0:
		s.Outcome = Undecided
	}
	if body, _, ok := journal.ParseRow(first); ok {
		head, err := journal.HeadOf(unit, body)
		if err != nil {
			problems = append(problems, "the first row of the journal cannot be read: "+err.Error())
		}
		s.Locks, s.Steps, s.Writes = head.Locks, head.Steps, head.Writes
	} else if len(first) > 0 {
		problems = append(problems, "the first row of the journal is none")
	}
	s.Problem = strings.Join(problems, "; ")
	return s
}
