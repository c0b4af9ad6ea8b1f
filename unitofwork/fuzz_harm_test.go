package unitofwork_test

import (
	"bytes"
	"crypto/sha256"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/arbitrary"
)

var (
	unitAttributes = []string{"state", "rows", "digest", "body", "last", "key", "locks", "at", "expiresAt", "committedBy"}
	journalWords   = []string{
		"committed", "aborted", "done", "", "locks", "units", "1", "customer:c000", "customer:c000/account:a0", "no//key", "open", "record", "journal/000000",
	}
	rowAttributes = []string{
		"unit", "pending", "fence", "isReleased", "recordVersionNumber", "leaseDuration", "ownerName", "committedBy", "below", "queue", "expiresAt",
	}
	rowWords = []string{"1", "10000", "units", "other", "x", "cccccccccccccccccccccc"}
	// What a journal's text is changed with.
	pieces = []string{
		"", "0", "-1", "9", `"`, "{", "}", "\n", "null", "[]", `"a"`, `""`, `"version":1`, `"unit":`, `"steps":4`, `"steps":1000000000`, `"writes":0`,
		`"intents":["customer:c000/account:a0/and/longer"]`, `"intents":[]`, `"step":0`, `"step":9`, `"table":"locks"`, `"table":"nowhere"`, `"put":{}`, `"key":{}`,
		`"update":"SET a = :v"`, `"locks":"other"`, "customer:c000", "customer:c001", "account:a0", `{"N":"7"}`, `{"S":1}`, `"fence":"ID"`, `{"N":"8"}`,
		`"locks":"locks"`,
	}
)

// What harm is done to.
const (
	ofUnits byte = iota
	ofLocks
	ofRecords
	tablesToHarm
)

// harm does something to a table, as a hand, a bug or another program might.
func (b *bed) harm(from *arbitrary.Source, dead left) {
	switch byte(from.Below(int(tablesToHarm))) {
	case ofUnits:
		b.harmUnits(from, dead)
	case ofLocks:
		b.harmRow(from, dead.unit)
	case ofRecords:
		b.harmRecord(from, dead.token())
	}
}

// puts puts an item into a table, if the table takes it: what is refused is no harm.
func (b *bed) puts(table string, item attributes) {
	_, _ = b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
}

// harmRow deletes or changes the lock row of a key, or one above them.
func (b *bed) harmRow(from *arbitrary.Source, unit string) {
	keys, _ := largeKeys(keysOfTheDead)
	key := arbitrary.Pick(from, append(keys, customerKey("c000"), customerKey("c001"))...)
	row := b.row(key)
	if row == nil {
		return
	}
	if from.Below(4) == 0 {
		b.deleteRow(key)
		return
	}
	b.puts("locks", from.Change(row, rowAttributes, append([]string{unit}, rowWords...), "key"))
}

// harmRecord writes a record without its lock, whatever its stamp then is.
func (b *bed) harmRecord(from *arbitrary.Source, token string) {
	_, refs := largeKeys(keysOfTheDead)
	ref := refs[from.Below(len(refs))]
	item := attributes{"Customer": text(ref.T.Customer), "ID": text(ref.T.ID), "Balance": number("100")}
	if stamp := arbitrary.Pick(from, append([]types.AttributeValue{number(token)}, stamps...)...); stamp != nil {
		item["_fence"] = stamp
	}
	b.puts("accounts", item)
}

// harmUnits does something to a row of the unit table.
func (b *bed) harmUnits(from *arbitrary.Source, dead left) {
	items := b.db.Items("units")
	if len(items) == 0 {
		return
	}
	item, unit, found := items[from.Below(len(items))], dead.unit, dead.remains(items)
	switch from.Below(6) {
	case 0:
		item = from.Change(item, unitAttributes, append([]string{unit}, journalWords...), "unit", "part")
	case 1:
		b.delete("units", map[string]string{"unit": valueOf(item["unit"]), "part": valueOf(item["part"])})
		return
	case 2:
		if item = found.journal; item == nil {
			return
		}
		item["body"] = &types.AttributeValueMemberB{Value: changedText(from, bodyOf(item))}
	case 3: // who does this knows what a digest is
		if found.record != nil {
			body := sha256.Sum256(bodyOf(found.journal))
			item = found.record
			item["digest"] = &types.AttributeValueMemberB{Value: body[:]}
		}
	case 4: // a row in the place of another
		item["unit"], item["part"] = text(arbitrary.Pick(from, unit, "open", "id:x", "other")), text(arbitrary.Pick(from, "record", "journal/000000", "journal/000001", unit, "id:x"))
	default:
		item = from.Change(attributes{"state": text("committed")}, unitAttributes, journalWords)
		item["unit"] = text(arbitrary.Pick(from, "id:x", "open", unit, "other", "open"))
		item["part"] = text(arbitrary.Pick(from, "record", "id:x", "journal/000001", "else", "cccccccccccccccccccccc"))
	}
	b.puts("units", item)
}

func bodyOf(row attributes) []byte {
	body, _ := row["body"].(*types.AttributeValueMemberB)
	if body == nil {
		return nil
	}
	return body.Value
}

// changedText changes a few places of a journal.
func changedText(from *arbitrary.Source, body []byte) []byte {
	body = bytes.Clone(body)
	lines := bytes.SplitAfter(body, []byte("\n"))
	switch from.Below(6) {
	case 0: // one bit
		if at := place(from, body); at < len(body) {
			body[at] ^= 1 << from.Below(8)
		}
	case 1:
		return body[:place(from, body)]
	case 2: // a line in another place, or twice
		lines[from.Below(len(lines))] = lines[from.Below(len(lines))]
		return bytes.Join(lines, nil)
	case 3: // a piece in the place of another
		return bytes.Replace(body, []byte(arbitrary.Pick(from, pieces...)), []byte(arbitrary.Pick(from, pieces...)), 1+from.Below(3))
	case 4: // a member of a line
		line := lines[from.Below(len(lines))]
		members := bytes.SplitAfter(line, []byte(","))
		members[from.Below(len(members))] = []byte(arbitrary.Pick(from, pieces...) + ",")
		return bytes.Replace(body, line, bytes.Join(members, nil), 1)
	default:
		at := place(from, body)
		return append(body[:at:at], append([]byte(arbitrary.Pick(from, pieces...)), body[min(len(body), at+from.Below(9)):]...)...)
	}
	return body
}

func place(from *arbitrary.Source, body []byte) int {
	return (from.Below(256)*256 + from.Below(256)) % (len(body) + 1)
}
