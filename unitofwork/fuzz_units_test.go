package unitofwork_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// left is what a unit has left that died as it was about to decide, or just had.
type left struct {
	unit   string
	tables map[string][]attributes
}

const keysOfTheDead = 4

// token is the unit's, which its lock rows have.
func (l left) token() string {
	row := itemOf(l.tables["locks"], attributes{"key": text(string(accountKey("c000", "a0")))})
	return row["fence"].(*types.AttributeValueMemberN).Value
}

// diesDeciding has an owner of a small unit with a journal die at its decision.
func (b *bed) diesDeciding(executed bool) left {
	b.t.Helper()
	keys, refs := largeKeys(keysOfTheDead)
	dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(executed)), inSmallTransactions)
	return left{dead.diesIn(b.t, unitofwork.Work{Keys: keys}, deposit(refs, 7)), b.tables()}
}

// leftBy has what the dead left, which is the same each time and is made once.
var leftBy = map[bool]func(*testing.T) left{true: leftOnce(true), false: leftOnce(false)}

func leftOnce(executed bool) func(*testing.T) left {
	var once sync.Once
	var what left
	return func(t *testing.T) left {
		t.Helper()
		once.Do(func() { inBed(t, func(_ *testing.T, b *bed) { what = b.diesDeciding(executed) }) })
		return what
	}
}

// FuzzUnitTable: whatever was done to what a dead unit left in the unit table, to its
// locks, or to the records that it is to write: records are written only by a journal
// that is, byte for byte, what was decided, and only those whose lock the unit has and
// whose stamp is older; what is committed and not done keeps its journal and its
// locks; what is none of holdall's is left alone; and there is an answer.
func FuzzUnitTable(f *testing.F) {
	replaced := func(old, new string) []byte { // in the journal
		return []byte{ofUnits, 0, 2, 3, byte(slices.Index(pieces, old)), byte(slices.Index(pieces, new)), 0}
	}
	digested := []byte{ofUnits, 0, 3}
	for act := range uint8(5) {
		add := func(decided bool, harm ...[]byte) {
			f.Add(append([]byte{byte(len(harm))}, slices.Concat(harm...)...), decided, act)
		}
		add(true)
		add(false)
		if testing.Short() && act%5 != 1 { // who recovers and who wants the keys, one after the other
			continue
		}
		for op := range byte(6) {
			add(true, []byte{ofUnits, 0, op, 1, 0, 1})
			add(act%2 == 0, []byte{ofUnits, 1, op, 3, 2, 5, 2, 3, 4}, nil) // what the first leaves of it is a second
		}
		for i := range byte(4) {
			add(true, []byte{ofUnits, i, 0, 1, 1, 0, 2, 1, 0}) // another state
		}
		add(true, replaced(`{"N":"7"}`, `{"N":"8"}`)) // another amount
		add(true, replaced(`"locks":"locks"`, `"locks":"other"`), digested)
		for row := range byte(keysOfTheDead + 2) { // families have rows, too
			add(true, []byte{ofLocks, row, 0}) // it is gone
			for attribute := range byte(4) {
				add(true, []byte{ofLocks, row, 1, 1, 1, attribute, 0})
			}
		}
		for stamp := range byte(len(stamps) + 1) {
			add(true, []byte{ofRecords, 1, stamp})
			add(false, []byte{ofRecords, 1, stamp})
			add(true, []byte{ofLocks, 1, 0}, []byte{ofRecords, 1, stamp})
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, decided bool, act uint8) {
		dead := leftBy[decided](t)
		inBed(t, func(t *testing.T, b *bed) {
			for table, items := range dead.tables {
				for _, item := range items {
					b.putItem(table, item)
				}
			}
			from := arbitrary.New(input)
			for range from.Below(4) {
				b.harm(from, dead)
			}
			before := b.tables()
			err := b.meets(dead, act)
			b.answered(err)
			b.onlyWhatWasDecided(dead, before)
			b.foreignersKept(before["units"], act)
			if reflect.DeepEqual(before, dead.tables) && act%5 < 3 {
				require.NoError(t, err)
				sum, n := b.total()
				require.Equal(t, decided, n == keysOfTheDead)
				require.Equal(t, decided, sum == 7*keysOfTheDead)
			}
		})
	})
}

// meets has somebody come by the dead unit.
func (b *bed) meets(dead left, act uint8) error {
	keys, _ := largeKeys(keysOfTheDead)
	heir := b.client("heir", nil, inSmallTransactions)
	ctx := b.t.Context()
	waits := func() error {
		set, err := heir.locks.Acquire(ctx, keys[1:3], func(o *lockset.Options) { o.Wait = lockset.For(3 * lease) })
		if err == nil {
			err = set.Release(ctx)
		}
		return err
	}
	switch act % 5 {
	case 0:
		_, err := heir.Recover(ctx)
		return err
	case 1:
		_, err := heir.Recover(ctx)
		return errors.Join(err, waits())
	case 2:
		return errors.Join(waits(), func() error { _, err := heir.Recover(ctx); return err }())
	case 3:
		ref := fmt.Sprintf("unit:%s:%s:%d:%s:%s", dead.unit, dead.token(), 946684800, "x", keys[0])
		_, err := heir.Outcome(ctx, ref)
		_, err2 := heir.Outcome(ctx, "x")
		return errors.Join(err, err2)
	default:
		return heir.Do(ctx, unitofwork.Work{Keys: transferKeys, ID: "x"}, transfer(1))
	}
}

// answered: every error is of a type that says what to do.
func (b *bed) answered(err error) {
	if err == nil {
		return
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			b.answered(e)
		}
		return
	}
	for _, kind := range []any{
		new(*unitofwork.JournalError), new(*unitofwork.UnappliedError), new(*unitofwork.EntryError), new(*unitofwork.IDError), new(*unitofwork.CommitError),
		new(*locks.ConfigError), new(*lockrow.RowError), new(*lockset.TableError), new(*lockset.HeldError),
	} {
		if errors.As(err, kind) {
			return
		}
	}
	b.t.Fatalf("%T: %v", err, err)
}

// remains are what the unit table has of a unit.
type remains struct{ record, journal, entry attributes }

func (l left) remains(units []attributes) remains {
	part := func(unit, part string) attributes {
		return itemOf(units, attributes{"unit": text(unit), "part": text(part)})
	}
	return remains{part(l.unit, "record"), part(l.unit, "journal/000000"), part("open", l.unit)}
}

// itemOf returns the item with a key.
func itemOf(items []attributes, key attributes) attributes {
	for _, item := range items {
		with := maps.Clone(item)
		maps.Copy(with, key)
		if reflect.DeepEqual(item, with) {
			return item
		}
	}
	return nil
}

// isDecided reports whether the record is the decision to do what the journal says.
func (r remains) isDecided() bool {
	digest, _ := r.record["digest"].(*types.AttributeValueMemberB)
	sum := sha256.Sum256(bodyOf(r.journal))
	return digest != nil && valueOf(r.record["state"]) == "committed" && bytes.Equal(digest.Value, sum[:])
}

// isOver reports whether the record says that nothing is to be done any more, or
// nothing has been decided.
func (r remains) isOver() bool {
	state := valueOf(r.record["state"])
	return r.record == nil || state == "aborted" || state == "done"
}

// onlyWhatWasDecided holds the tables, key by key, against what the unit had decided.
func (b *bed) onlyWhatWasDecided(dead left, before map[string][]attributes) {
	t, found := b.t, dead.remains(before["units"])
	decided := found.isDecided()
	if !bytes.Equal(bodyOf(found.journal), bodyOf(dead.remains(dead.tables["units"]).journal)) {
		var head struct{ Locks string }
		_ = json.NewDecoder(bytes.NewReader(bodyOf(found.journal))).Decode(&head)
		if decided && head.Locks == "locks" {
			return // somebody has decided something else
		}
		decided = false
	}
	keys, refs := largeKeys(keysOfTheDead)
	for i, key := range keys {
		was, is := itemOf(before["locks"], attributes{"key": text(string(key))}), b.row(key)
		its := attributes{"Customer": text(refs[i].T.Customer), "ID": text(refs[i].T.ID)}
		old, record := itemOf(before["accounts"], its), itemOf(b.db.Items("accounts"), its)
		marked := valueOf(was["unit"]) == dead.unit && was["pending"] != nil && valueOf(was["isReleased"]) != "1"
		switch {
		case !reflect.DeepEqual(old, record):
			require.True(t, decided, "%q was written, and that was not decided", key)
			require.Equal(t, dead.unit, valueOf(was["unit"]), "%q was written without its lock", key)
			require.True(t, old["_fence"] == nil || isLess(old["_fence"], dead.token()), "%v was written over", old)
			its["Balance"], its["_fence"] = number("7"), number(dead.token())
			require.Equal(t, its, record)
		case found.isOver(), reflect.DeepEqual(record["_fence"], number(dead.token())):
		case !marked && is["fence"] != nil && !isLess(is["fence"], dead.token()) && valueOf(is["unit"]) != dead.unit:
			// Others have had the key since, as far as its row tells; a hand has it so.
		default:
			require.Equal(t, found, dead.remains(b.db.Items("units")), "%q was to be written", key)
			if marked {
				require.Equal(t, was["unit"], is["unit"], "%q was freed", key)
				require.Equal(t, was["pending"], is["pending"])
			}
		}
	}
}

// isLess reports whether a value is a number less than another.
func isLess(v types.AttributeValue, than string) bool {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	a, err := strconv.ParseFloat(n.Value, 64)
	limit, err2 := strconv.ParseFloat(than, 64)
	return err == nil && err2 == nil && a < limit
}

// foreignersKept: rows that are no unit's are as they were, and none is made up.
func (b *bed) foreignersKept(before []attributes, act uint8) {
	kept := map[string]attributes{}
	of := func(items []attributes) map[string]attributes {
		some := map[string]attributes{}
		for _, item := range items {
			if unit := valueOf(item["unit"]); unit == "other" || strings.HasPrefix(unit, "id:") {
				some[unit+" "+valueOf(item["part"])] = item
			}
		}
		return some
	}
	maps.Copy(kept, of(before))
	after := of(b.db.Items("units"))
	if act%5 == 4 && kept["id:x record"] == nil {
		delete(after, "id:x record") // the ID that was committed
	}
	require.Equal(b.t, kept, after)
}

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
