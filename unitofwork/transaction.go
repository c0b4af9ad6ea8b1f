package unitofwork

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/journal"
)

// transaction is all that a commit asks for: its locks first, then the writes, then the IDs.
func (u *Unit) transaction(p permit, writes []write) []types.TransactWriteItem {
	actions := p.Actions()
	for _, w := range writes {
		actions = append(actions, w.item)
	}
	if u.work.ID != "" {
		actions = append(actions, u.putID(u))
	}
	for _, f := range u.group.insideIDs() {
		actions = append(actions, u.putID(f.u))
	}
	return actions
}

// putID is the record of a member's ID, with the nonce by which the commit can be asked about.
func (u *Unit) putID(member *Unit) types.TransactWriteItem {
	return journal.PutIDRecord(u.c.cfg.Table, member.work.ID, u.nonce, member.digest, u.c.lockConfig.Now(), u.c.cfg.IDRetention)
}
