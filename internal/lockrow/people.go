package lockrow

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attrAcquired is when the last holder took a row.
const attrAcquired = "acquiredAt"

// Notes are what a row says to people and to TTL, and nothing depends on: what of it is
// missing, or is not as expected, is zero, and the row is as good as any.
type Notes struct {
	Owner      string // of the holder; on a free row, of the one who had it last
	Purpose    string // the same
	AcquiredAt time.Time
	ExpiresAt  time.Time
}

// NotesOf reads the notes of an item of the lock table.
func NotesOf(item map[string]types.AttributeValue) Notes {
	r := &reader{item: item}
	n := Notes{Owner: r.text(AttrOwner), Purpose: TextOf(item[AttrPurpose])}
	if ms := r.noted(attrAcquired, latestNoted); ms > 0 {
		n.AcquiredAt = time.UnixMilli(ms)
	}
	if s := r.noted(AttrExpires, latestNoted/1000); s > 0 {
		n.ExpiresAt = time.Unix(s, 0)
	}
	return n
}

// latestNoted is the last moment, in milliseconds, that can be written as text: the end of
// the year 9999.
const latestNoted = 253402300799999

func (r *reader) noted(name string, most int64) int64 {
	v, is := r.item[name].(*types.AttributeValueMemberN)
	if !is {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0
	}
	return n
}

// CommittedBy is the commit stamp: the last unit that committed while it had the row's key.
func (r Row) CommittedBy() string { return r.committedBy }
