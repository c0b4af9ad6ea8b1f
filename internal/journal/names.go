package journal

// The unit table has, under the nonce of a unit with a journal, the rows of the journal
// and the record of what was decided; under "id:" and an ID, the record of the ID; and
// under one hash key an entry for each unit with a journal, by which Recover finds those
// that are not done with.
const (
	RecordPart  = "record"
	journalPart = "journal/%06d"
	OpenUnits   = "open"
	idPrefix    = "id:"
)

// Attributes of the unit table.
const (
	AttrUnit        = "unit" // hash key
	AttrPart        = "part" // range key
	attrCommittedBy = "committedBy"
	attrDigest      = "digest"
	attrCommittedAt = "committedAt"
	AttrExpires     = "expiresAt"
	attrBody        = "body"
	attrLast        = "last"
	attrState       = "state"
	attrRows        = "rows"
	AttrKey         = "key"
	AttrLocks       = "locks"
	attrAt          = "at"
)
