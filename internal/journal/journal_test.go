package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/expressions"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

type values = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

const (
	ofUnit  = "0123456789012345678901"
	ofToken = fencing.Token(1_700_000_000_000_000)
)

// everyType has values of every type that DynamoDB has, and of every kind that is
// easily lost on the way through text.
func everyType() values {
	deep := textValue("end")
	for range 15 { // DynamoDB allows 32 levels
		deep = &types.AttributeValueMemberM{Value: values{"": &types.AttributeValueMemberL{Value: []types.AttributeValue{deep}}}}
	}
	return values{
		"S": textValue("text"), "empty": textValue(""), "quotes": textValue(`"a" 'b' \ </script> & %s`),
		"control": textValue("\x00\t\n\u2028\x7f"), "other": textValue("żółw 🐢 \ufffd"),
		"N": Number(42), "exact": &types.AttributeValueMemberN{Value: "1234567890.12345678901234567890123456"},
		"exponent": &types.AttributeValueMemberN{Value: "-1.5E-100"}, "trailing": &types.AttributeValueMemberN{Value: "1.50"},
		"large": &types.AttributeValueMemberN{Value: "9007199254740993"},
		"B":     &types.AttributeValueMemberB{Value: []byte{0, 1, 254, 255}}, "no bytes": &types.AttributeValueMemberB{Value: []byte{}},
		"yes": &types.AttributeValueMemberBOOL{Value: true}, "no": &types.AttributeValueMemberBOOL{Value: false},
		"null": &types.AttributeValueMemberNULL{Value: true},
		"SS":   &types.AttributeValueMemberSS{Value: []string{"a", "", "b\"c"}},
		"NS":   &types.AttributeValueMemberNS{Value: []string{"1", "2.50", "-3E10"}},
		"BS":   &types.AttributeValueMemberBS{Value: [][]byte{{0}, {1, 2}}},
		"L":    &types.AttributeValueMemberL{Value: []types.AttributeValue{textValue("x"), Number(1), &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
		"M":    &types.AttributeValueMemberM{Value: values{"a.b": textValue("dots"), `"q"`: Number(1), "": textValue("no name")}},
		"deep": deep, "a.name.with dots": textValue("x"), `a"name'with quotes`: textValue("x"), "S ": textValue("x"),
	}
}

// journalOf is a journal of two steps with a put, an update, a deletion, and one
// step under which nothing is written.
func journalOf(t testing.TB, item values) *Journal {
	t.Helper()
	plan := must(plans.New("a/b/c", "a/x", "only read", ordering.Join(`with "quotes"`, "50%")))(t)
	s := actions.NewStamper("_fence", ofToken)
	key := values{"ID": textValue("1"), "sort key": Number(2)}
	put := NewWrite("things", "ID=1", s.OnlyNewer(types.TransactWriteItem{Put: &types.Put{TableName: aws.String("things"), Item: item}}))
	update, err := s.Stamp(types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("things"), Key: key, UpdateExpression: aws.String("SET #a.#b = :v, c = if_not_exists(c, :w) REMOVE d[0]"),
		ConditionExpression:       aws.String("attribute_exists(#only)"),
		ExpressionAttributeNames:  map[string]string{"#a": "a.b", "#b": `"q"`, "#only": "in the condition"},
		ExpressionAttributeValues: values{":v": &types.AttributeValueMemberM{Value: item}, ":w": Number(7)},
	}})
	require.NoError(t, err)
	del, err := s.Stamp(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("other.things"), Key: key}})
	require.NoError(t, err)
	return &Journal{Unit: ofUnit, Locks: "locks", Token: ofToken, Fence: "_fence", Plan: plan, Writes: [][]Write{
		{put}, {NewWrite("things", "the update", s.OnlyNewer(update)), NewWrite("other.things", `a "deletion"`, s.OnlyNewer(del))}, nil, nil,
	}}
}

func written(t testing.TB, j *Journal) []byte {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, j.Encode(&text))
	return text.Bytes()
}

// Whoever does what a journal says does what its unit would have done.
func TestAJournalIsReadAsItWasWritten(t *testing.T) {
	j := journalOf(t, everyType())
	read := must(decode(ofUnit, bytes.NewReader(written(t, j))))(t)
	require.Equal(t, j.Unit, read.Unit)
	require.Equal(t, j.Token, read.Token)
	require.Equal(t, j.Fence, read.Fence)
	require.Equal(t, j.Plan.Keys(), read.Plan.Keys())
	for i, step := range j.Plan {
		require.ElementsMatch(t, step.Intents, read.Plan[i].Intents)
		require.Equal(t, step.Rows(), read.Plan[i].Rows())
	}
	require.Equal(t, j.Writes, read.Writes)
	again := must(decode(ofUnit, bytes.NewReader(written(t, read))))(t)
	require.Equal(t, read, again)
}

// What is carried out later was checked before: its only condition is the stamp.
func TestWhatAJournalSaysHasNoConditionButTheStamp(t *testing.T) {
	read := must(decode(ofUnit, bytes.NewReader(written(t, journalOf(t, everyType())))))(t)
	for _, ws := range read.Writes {
		for _, w := range ws {
			check := actions.Condition(w.Item, w.Table, values{"ID": textValue("1")}).ConditionCheck
			require.Equal(t, expressions.Newer, *check.ConditionExpression)
			require.Equal(t, map[string]string{expressions.Name: "_fence"}, check.ExpressionAttributeNames)
			require.Equal(t, values{expressions.Value: Number(int64(ofToken))}, check.ExpressionAttributeValues)
			require.Equal(t, types.ReturnValuesOnConditionCheckFailureAllOld, check.ReturnValuesOnConditionCheckFailure)
		}
	}
}

func TestWhatIsNoJournalIsRefused(t *testing.T) {
	whole := string(written(t, journalOf(t, values{"ID": textValue("1")})))
	lines := strings.SplitAfter(whole, "\n")
	replaced := func(old, with string) string {
		require.Contains(t, whole, old)
		return strings.Replace(whole, old, with, 1)
	}
	plan := must(plans.New("a", "b"))(t)
	twoSteps := string(written(t, &Journal{Unit: ofUnit, Locks: "locks", Token: ofToken, Fence: "_fence", Plan: plan, Writes: make([][]Write, 2)}))
	_, err := decode(ofUnit, strings.NewReader(twoSteps))
	require.NoError(t, err, "there may be nothing to write")
	for name, text := range map[string]string{
		"nothing":                    "",
		"text":                       "hello",
		"another version":            replaced(`"version":1`, `"version":2`),
		"no version":                 replaced(`"version":1,`, ``),
		"another unit":               replaced(ofUnit, "x"),
		"a field nobody knows":       replaced(`"version":1`, `"version":1,"more":1`),
		"a write that has one":       replaced(`"step":0`, `"step":0,"condition":"x"`),
		"no token":                   replaced(ofToken.String(), "0"),
		"a token that is none":       replaced(ofToken.String(), "-5"),
		"no fence":                   replaced(`"fence":"_fence"`, `"fence":""`),
		"no steps":                   replaced(`"steps":4`, `"steps":0`),
		"fewer than none":            replaced(`"steps":4`, `"steps":-1`),
		"more steps than there are":  replaced(`"steps":4`, `"steps":5`),
		"less steps than there are":  replaced(`"steps":4`, `"steps":3`),
		"more writes than there are": replaced(`"writes":3`, `"writes":4`),
		"less writes than there are": replaced(`"writes":3`, `"writes":2`),
		"fewer writes than none":     replaced(`"writes":3`, `"writes":-1`),
		"a key that is none":         replaced(`"key":"a/x"`, `"key":"a//x"`),
		"an intent that is none":     replaced(`"intents":["a"`, `"intents":[""`),
		"a step that is not there":   replaced(`"step":1`, `"step":4`),
		"a step before the first":    replaced(`"step":1`, `"step":-1`),
		"a write without a table":    replaced(`"table":"things"`, `"table":""`),
		"a deletion without a key":   replaced(`"record":"a \"deletion\"","key":{`, `"record":"a \"deletion\"","names":{`),
		"a value of another type":    replaced(`{"S":"1"}`, `{"S":1}`),
		"a first line alone":         strings.NewReplacer(`"steps":4`, `"steps":0`, `"writes":3`, `"writes":0`).Replace(lines[0]),
		"no lock table":              replaced(`"locks":"locks"`, `"locks":""`),
		"steps in another order":     strings.Replace(twoSteps, `{"key":"a"}`+"\n"+`{"key":"b"}`, `{"key":"b"}`+"\n"+`{"key":"a"}`, 1),
		"half":                       whole[:len(whole)/2],
		"without its last line":      strings.Join(lines[:len(lines)-2], ""),
		"without its last byte":      whole[:len(whole)-3],
		"without its first line":     strings.Join(lines[1:], ""),
		"a line twice":               whole + lines[len(lines)-2],
		"more behind it":             whole + "x",
		"a zero behind it":           whole + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			require.NotContains(t, []string{whole, twoSteps}, text)
			_, err := decode(ofUnit, strings.NewReader(text))
			require.Error(t, err)
		})
	}
}

// rowsOf packs a journal.
func rowsOf(t testing.TB, j *Journal) (bodies [][]byte, digest []byte) {
	t.Helper()
	ended := false
	p := NewWriter(func(n int, body []byte, last bool) error {
		require.Equal(t, len(bodies), n, "rows are numbered")
		require.False(t, ended, "nothing comes after the last")
		bodies, ended = append(bodies, body), last
		return nil
	})
	require.NoError(t, j.Encode(p))
	digest = must(p.Close())(t)
	require.True(t, ended)
	require.Equal(t, len(bodies), p.Rows)
	return bodies, digest
}

func TestAJournalIsCutIntoRows(t *testing.T) {
	for name, size := range map[string]int{
		"small": 10, "an item near the limit of an item": 399 << 10, "of several rows": 3 * rowSize,
	} {
		t.Run(name, func(t *testing.T) {
			item := everyType()
			item["long"] = textValue(strings.Repeat(`x"`, size/2))
			item["binary"] = &types.AttributeValueMemberB{Value: bytes.Repeat([]byte{7}, size/3)}
			j := journalOf(t, item)
			bodies, digest := rowsOf(t, j)
			whole := bytes.Join(bodies, nil)
			require.Len(t, whole, len(written(t, j)))
			require.Len(t, bodies, (len(whole)+rowSize-1)/rowSize)
			for i, body := range bodies {
				require.NotEmpty(t, body)
				require.LessOrEqual(t, len(body), rowSize)
				row := PutRow("units", ofUnit, i, body, true)
				require.Less(t, requests.ItemSize(row.ExpressionAttributeValues)+requests.ItemSize(row.Key), requests.MaxItem)
			}
			sum := sha256.Sum256(whole)
			require.Equal(t, sum[:], digest)

			read := must(Read(ofUnit, bodies, digest))(t)
			require.Equal(t, j.Writes, read.Writes)
			_, err := Read(ofUnit, bodies, nil)
			require.NoError(t, err, "without a digest, any that is whole")
		})
	}
}

// A row ends where a journal does: there is no empty last one.
func TestAJournalThatFillsItsRows(t *testing.T) {
	length := func(n int) int { return len(written(t, journalOf(t, values{"t": textValue(strings.Repeat("x", n))}))) }
	base := length(1000)
	n := 1000
	for perByte := length(1001) - base; length(n) < rowSize; {
		n += max((rowSize-length(n))/perByte, 1)
	}
	for ; length(n) > rowSize; n-- {
	}
	bodies, _ := rowsOf(t, journalOf(t, values{"t": textValue(strings.Repeat("x", n))}))
	require.Len(t, bodies, 1)
	require.Greater(t, len(bodies[0]), rowSize-4)
	bodies, _ = rowsOf(t, journalOf(t, values{"t": textValue(strings.Repeat("x", n+4))}))
	require.Len(t, bodies, 2)
}

// What is not what was decided is not carried out, whatever it looks like.
func TestAJournalThatIsNotWhatWasDecided(t *testing.T) {
	item := everyType()
	item["long"] = textValue(strings.Repeat("x", 2*rowSize))
	j := journalOf(t, item)
	bodies, digest := rowsOf(t, j)
	require.Greater(t, len(bodies), 3)
	other := journalOf(t, values{"ID": textValue("2")})
	otherBodies, otherDigest := rowsOf(t, other)
	require.NotEqual(t, digest, otherDigest)
	changed := func(f func(bodies [][]byte)) [][]byte {
		copied := make([][]byte, len(bodies))
		for i := range bodies {
			copied[i] = bytes.Clone(bodies[i])
		}
		f(copied)
		return copied
	}
	for name, bodies := range map[string][][]byte{
		"another journal of the unit": otherBodies,
		"one byte of an item":         changed(func(b [][]byte) { b[1][100] = 'y' }),
		"two rows in another order":   changed(func(b [][]byte) { b[1], b[2] = b[2], b[1] }),
		"a row less":                  bodies[:len(bodies)-1],
		"without the first":           bodies[1:],
		"a row twice":                 changed(func(b [][]byte) { b[2] = b[1] }),
		"a space behind it":           changed(func(b [][]byte) { b[len(b)-1] = append(b[len(b)-1], ' ') }),
		"no rows":                     nil,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(ofUnit, bodies, digest)
			require.Error(t, err)
		})
	}
	_, err := Read(ofUnit, changed(func(b [][]byte) { b[1][100] = 'y' }), nil)
	require.NoError(t, err, "the digest alone tells")
}

// What cannot be written down is known before anything is decided.
func TestAJournalThatCannotBeStored(t *testing.T) {
	full := fmt.Errorf("no answer")
	p := NewWriter(func(int, []byte, bool) error { return full })
	err := journalOf(t, values{"t": textValue(strings.Repeat("x", 2*rowSize))}).Encode(p)
	require.ErrorIs(t, err, full)
}

// must returns what a call without an error has returned.
func must[V any](v V, err error) func(testing.TB, ...any) V {
	return func(t testing.TB, said ...any) V {
		t.Helper()
		require.NoError(t, err, said...)
		return v
	}
}

// The digest of an ID's record tells any two uses of an ID apart, however their keys
// and payloads run into each other.
func TestTheDigestTellsUsesOfAnIDApart(t *testing.T) {
	seen := map[string]int{}
	for i, use := range []struct {
		keys    []ordering.Key
		payload string
	}{
		{[]ordering.Key{"a"}, ""}, {[]ordering.Key{"a"}, "b"}, {[]ordering.Key{"a", "b"}, ""}, {[]ordering.Key{"ab"}, ""},
		{[]ordering.Key{"a", "bc"}, ""}, {[]ordering.Key{"ab", "c"}, ""}, {[]ordering.Key{"a", "b", "c"}, ""}, {[]ordering.Key{"a", "b"}, "c"},
		{[]ordering.Key{"a/b"}, ""}, {[]ordering.Key{"a"}, "/b"},
	} {
		plan := must(plans.New(use.keys...))(t)
		sum := string(Digest(plan, []byte(use.payload)))
		require.NotContains(t, seen, sum, "%d is like %d", i, seen[sum])
		seen[sum] = i
	}
}

// A repetition may come from a later version: the digest of the same use is the same
// for as long as records of IDs are kept.
func TestTheDigestIsTheSameInEveryVersion(t *testing.T) {
	plan := must(plans.New("customer:2/account:a", "customer:1/account:a"))(t)
	require.Equal(t, "7f33b87e3f377adb0622332fb4e9765349c271c1040fd01319caafd2d8c073c4", hex.EncodeToString(Digest(plan, []byte("30"))))
}

// The record of an ID says who committed, what, and when, and how long it stays.
func TestTheRecordOfAnID(t *testing.T) {
	now := time.UnixMilli(1_900_000_000_123)
	put := PutIDRecord("units", "p", "me", []byte("sum"), now, time.Hour).Put
	require.Equal(t, values{
		"unit": textValue("id:p"), "part": textValue("record"), "committedBy": textValue("me"), "digest": &types.AttributeValueMemberB{Value: []byte("sum")},
		"committedAt": Number(1_900_000_000_123), "expiresAt": Number(1_900_003_600),
	}, put.Item)
	require.Equal(t, types.ReturnValuesOnConditionCheckFailureAllOld, put.ReturnValuesOnConditionCheckFailure)

	item := maps.Clone(put.Item)
	item["digest"] = &types.AttributeValueMemberB{Value: make([]byte, 32)}
	found := must(ParseIDRecord(item))(t)
	require.Equal(t, &IDRecord{"me", make([]byte, 32)}, found)
	found = must(ParseIDRecord(nil))(t)
	require.Nil(t, found)
}

func TestTheFirstRowTellsTheSizeOfAJournal(t *testing.T) {
	plan := must(plans.New("a", "b/c"))(t)
	j := &Journal{Unit: "u", Locks: "locks", Token: 7, Fence: "_fence", Plan: plan, Writes: make([][]Write, len(plan))}
	j.Writes[1] = []Write{NewWrite("t", "r", types.TransactWriteItem{Delete: &types.Delete{Key: map[string]types.AttributeValue{"k": Number(1)}}})}
	var text bytes.Buffer
	require.NoError(t, j.Encode(&text))

	row := text.Bytes()[:bytes.IndexByte(text.Bytes(), '\n')+5] // cut anywhere after the first line
	head := must(HeadOf("u", row))(t)
	require.Equal(t, Head{Version: 1, Unit: "u", Locks: "locks", Token: 7, Fence: "_fence", Steps: len(plan), Writes: 1}, head)

	_, err := HeadOf("another", row)
	require.ErrorContains(t, err, `unit "u"`)
	_, err = HeadOf("u", row[:10])
	require.Error(t, err)
}

func TestNotedAtIsForPeople(t *testing.T) {
	require.Equal(t, time.UnixMilli(1700000000123), NotedAt(map[string]types.AttributeValue{"at": Number(1700000000123)}))
	for _, v := range []types.AttributeValue{nil, Number(-1), Number(0), Number(latestNoted + 1), &types.AttributeValueMemberS{Value: "now"}} {
		require.Zero(t, NotedAt(map[string]types.AttributeValue{"at": v}))
	}
	require.Zero(t, NotedAt(nil))
}

// Errors about the keys of tables know a unit table by the keys that are written.
func TestTheKeysOfAUnitTable(t *testing.T) {
	require.Equal(t, AttrUnit, requests.UnitHash)
	require.Equal(t, AttrPart, requests.UnitRange)
}
