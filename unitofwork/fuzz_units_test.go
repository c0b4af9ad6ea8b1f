package unitofwork_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// left is what a unit has left that died as it was about to decide, or just had.
type left struct {
	unit   string
	tables map[string][]attributes
}

const keysOfTheDead = 4

// diesDeciding has an owner of a small unit with a journal die at its decision.
func (b *bed) diesDeciding(executed bool) left {
	b.t.Helper()
	keys, refs := largeKeys(keysOfTheDead)
	dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(executed)), inSmallTransactions)
	units, over := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		_ = dead.Do(context.WithoutCancel(b.t.Context()), keys, func(ctx context.Context, u *unitofwork.Unit) error {
			units <- u.Nonce()
			return deposit(refs, 7)(ctx, u)
		})
	}()
	<-dead.net.Dead()
	<-over
	return left{<-units, b.tables()}
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

var (
	unitAttributes = []string{"state", "rows", "digest", "body", "last", "key", "locks", "at", "expiresAt", "committedBy"}
	journalWords   = []string{
		"committed", "aborted", "done", "", "locks", "units", "1", "customer:c000", "customer:c000/account:a0", "no//key", "open", "record", "journal/000000",
	}
	// What a journal's text is changed with.
	pieces = []string{
		"", "0", "-1", "9", `"`, "{", "}", "\n", "null", "[]", `"a"`, `""`, `"version":1`, `"unit":`, `"steps":4`, `"steps":1000000000`, `"writes":0`,
		`"intents":["customer:c000/account:a0/and/longer"]`, `"intents":[]`, `"step":0`, `"step":9`, `"table":"locks"`, `"table":"nowhere"`, `"put":{}`, `"key":{}`,
		`"update":"SET a = :v"`, `"locks":"other"`, "customer:c000", "customer:c001", "account:a0", `{"N":"7"}`, `{"S":1}`, `"fence":"ID"`, `{"N":"8"}`,
	}
)

// harm does something to the unit table, as a hand, a bug or another program might.
func (b *bed) harm(from *arbitrary.Source, unit string) {
	items := b.db.Items("units")
	if len(items) == 0 {
		return
	}
	item := items[from.Below(len(items))]
	switch from.Below(6) {
	case 0:
		item = from.Change(item, unitAttributes, append([]string{unit}, journalWords...), "unit", "part")
	case 1:
		b.delete("units", map[string]string{"unit": valueOf(item["unit"]), "part": valueOf(item["part"])})
		return
	case 2:
		item = b.rowOfUnit(unit, "journal/000000")
		if item == nil {
			return
		}
		item["body"] = &types.AttributeValueMemberB{Value: changedText(from, bodyOf(item))}
	case 3: // who does this knows what a digest is
		if record := b.rowOfUnit(unit, "record"); record != nil {
			body := sha256.Sum256(bodyOf(b.rowOfUnit(unit, "journal/000000")))
			record["digest"] = &types.AttributeValueMemberB{Value: body[:]}
			item = record
		}
	case 4: // a row in the place of another
		item["unit"], item["part"] = text(arbitrary.Pick(from, unit, "open", "id:x", "other")), text(arbitrary.Pick(from, "record", "journal/000000", "journal/000001", unit, "id:x"))
	default:
		item = from.Change(attributes{"state": text("committed")}, unitAttributes, journalWords)
		item["unit"] = text(arbitrary.Pick(from, "id:x", "open", unit, "other", "open"))
		item["part"] = text(arbitrary.Pick(from, "record", "id:x", "journal/000001", "else", "cccccccccccccccccccccc"))
	}
	_, _ = b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("units"), Item: item}) // refused is no harm
}

// rowOfUnit returns a row of a unit.
func (b *bed) rowOfUnit(unit, part string) attributes {
	for _, item := range b.db.Items("units") {
		if valueOf(item["unit"]) == unit && valueOf(item["part"]) == part {
			return item
		}
	}
	return nil
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

// FuzzUnitTable: whatever is in the unit table, records are written only by a
// journal that is, byte for byte, what was decided, and then all of them; nothing of
// a unit is freed that is committed and not done; what is none of holdall's is left
// alone; and there is an answer.
func FuzzUnitTable(f *testing.F) {
	for op := range byte(6) {
		for act := range uint8(5) {
			f.Add([]byte{1, 0, op, 1, 0, 1}, true, act)
			f.Add([]byte{2, 1, op, 3, 2, 5, 2, 3, 4}, act%2 == 0, act)
		}
	}
	seven, eight := slices.Index(pieces, `{"N":"7"}`), slices.Index(pieces, `{"N":"8"}`)
	for act := range uint8(5) {
		f.Add([]byte{1, 0, 2, 3, byte(seven), byte(eight), 0}, true, act) // another amount
		for i := range byte(4) {
			f.Add([]byte{1, i, 0, 1, 1, 0, 2, 1, 0}, true, act) // another state
		}
		f.Add([]byte{0}, true, act)
		f.Add([]byte{0}, false, act)
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
				b.harm(from, dead.unit)
			}
			before := b.tables()
			err := b.meets(dead, act)
			b.answered(err)
			b.onlyWhatWasDecided(dead, decided, before)
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
		ref := fmt.Sprintf("unit:%s:%s:%d:%s:%s", dead.unit, valueOfN(dead.tables["locks"], string(keys[0])), 946684800, "x", keys[0])
		_, err := heir.Outcome(ctx, ref)
		_, err2 := heir.Outcome(ctx, "x")
		return errors.Join(err, err2)
	default:
		return heir.Do(ctx, transferKeys, transfer(1), func(o *unitofwork.Options) { o.ID = "x" })
	}
}

// valueOfN is the fence of a row.
func valueOfN(rows []attributes, key string) string {
	for _, row := range rows {
		if n, ok := row["fence"].(*types.AttributeValueMemberN); ok && valueOf(row["key"]) == key {
			return n.Value
		}
	}
	return ""
}

// answered: every error is of a type that says what to do, but for entries that are
// none, which are named.
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
		new(*unitofwork.JournalError), new(*unitofwork.UnappliedError), new(*unitofwork.IDError), new(*unitofwork.CommitError),
		new(*lockset.ConfigError), new(*lockset.RowError), new(*lockset.TableError), new(*lockset.HeldError),
	} {
		if errors.As(err, kind) {
			return
		}
	}
	require.ErrorContains(b.t, err, "not one that we understand", "%T", err)
}

// onlyWhatWasDecided holds the tables against what the unit had decided, if its
// record and its journal are as they were.
func (b *bed) onlyWhatWasDecided(dead left, decided bool, before map[string][]attributes) {
	t := b.t
	after := b.tables()
	row := func(items []attributes, part string) attributes {
		for _, item := range items {
			if valueOf(item["unit"]) == dead.unit && valueOf(item["part"]) == part {
				return item
			}
		}
		return nil
	}
	record, journal := row(before["units"], "record"), row(before["units"], "journal/000000")
	digest, _ := record["digest"].(*types.AttributeValueMemberB)
	sum := sha256.Sum256(bodyOf(journal))
	if digest != nil && bytes.Equal(digest.Value, sum[:]) && !bytes.Equal(bodyOf(journal), bodyOf(row(dead.tables["units"], "journal/000000"))) {
		return // somebody has decided something else
	}
	_, n := b.total()
	if n > 0 {
		require.True(t, decided && valueOf(record["state"]) == "committed", "written, and not decided")
		require.Equal(t, bodyOf(row(dead.tables["units"], "journal/000000")), bodyOf(journal), "written by another journal")
		b.allOf(n)
		return
	}
	if state := valueOf(record["state"]); record != nil && state != "aborted" && state != "done" { // done by nobody, or not understood
		for _, was := range before["locks"] {
			if was["unit"] != nil {
				is := b.row(ordering.Key(valueOf(was["key"])))
				require.Equal(t, was["unit"], is["unit"], "%v was freed", was["key"])
				require.Equal(t, was["pending"], is["pending"])
			}
		}
		require.Equal(t, record, row(after["units"], "record"))
		require.Equal(t, journal, row(after["units"], "journal/000000"))
	}
}

func (b *bed) allOf(n int) {
	sum, _ := b.total()
	require.Equal(b.t, keysOfTheDead, n, "all of it, or nothing")
	require.Equal(b.t, int64(7*keysOfTheDead), sum, "once")
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
