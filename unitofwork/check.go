package unitofwork

import (
	"context"
	"errors"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/requests"
)

// Check asks DynamoDB whether all is as this client needs it, before the first unit is
// begun: what [lockset.Client.Check] asks of the lock table, and the same of the unit
// table, if there is one. It asks nothing of the tables of records. It sends about twenty
// requests, writes nothing, and can be run at any time.
//
// The error is nil if nothing was found. Otherwise it has a line for each thing that is not as it
// should be, as lockset.Client.Check has, of the lock table first. A *lockset.NoAnswerError says nothing of
// the tables.
func (c *Client) Check(ctx context.Context) error {
	var found []requests.Finding
	err := c.locks.Check(ctx)
	var check *requests.CheckError
	switch {
	case errors.As(err, &check):
		found = check.Findings
	case err != nil:
		return err
	}
	if c.cfg.Table == "" || requests.ConcernsAll(err) { // it would be found of the other table as well
		return requests.Found(found)
	}
	more, err := c.checkTable(ctx)
	if err != nil {
		return err
	}
	return requests.Found(append(found, more...))
}

func (c *Client) checkTable(ctx context.Context) ([]requests.Finding, error) {
	id := func() string { return c.locks.RequestID(ctx) }
	e := &requests.Examination{
		Caller: c.caller, Table: c.cfg.Table, Keys: []string{journal.AttrUnit, journal.AttrPart}, TTL: journal.AttrExpires,
		Item: journal.ItemKey("check:"+id(), "check"), ID: id,
	}
	return e.Run(ctx, e.Update(), e.UpdateInTransaction(), e.CheckInTransaction(), e.PutInTransaction(), e.DeleteInTransaction(),
		e.Read(), e.DeleteByStatement(), e.Query())
}
