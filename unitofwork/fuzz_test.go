package unitofwork

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// FuzzConfig: whatever a configuration says, it is refused with the name of a field,
// or IDs are remembered for longer than clocks may be wrong.
func FuzzConfig(f *testing.F) {
	for _, d := range []int64{0, 1, -1, int64(20 * 24 * time.Hour), int64(28 * 24 * time.Hour), math.MaxInt64, math.MaxInt64/2 + 1, math.MinInt64} {
		f.Add("units", "", d, int64(0), 0)
		f.Add("locks", "_fence", d, d, 100)
		f.Add("", "a.b", int64(0), d, 101)
	}
	f.Fuzz(func(t *testing.T, table, fence string, ids, retention int64, size int) {
		locks, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "locks", Retention: time.Duration(retention)})
		if err != nil {
			require.ErrorAs(t, err, new(*lockset.ConfigError))
			return
		}
		given := Config{Table: table, FenceAttribute: fence, IDRetention: time.Duration(ids), TransactionSize: size}
		c, err := New(locks, given)
		if err != nil {
			var config *lockset.ConfigError
			require.ErrorAs(t, err, &config)
			require.NotEmpty(t, config.Field)
			return
		}
		require.NotEqual(t, "locks", c.cfg.Table)
		require.NotEmpty(t, c.cfg.FenceAttribute)
		require.True(t, c.cfg.TransactionSize >= 1 && c.cfg.TransactionSize <= MaxActions)
		require.GreaterOrEqual(t, float64(c.cfg.IDRetention)*1.001, 2*float64(c.lock.Retention), "%+v", given)
	})
}

// FuzzValue: an item that is taken for plain, DynamoDB takes. What is not is tried
// before anything is decided.
func FuzzValue(f *testing.F) {
	for i := range byte(12) {
		f.Add([]byte{4, 8, 0, i, 1, 8, 1, i, 2, 8, 2, 9, i, 3, i}, "name", "text")
		f.Add([]byte{1, 8, 0, 1, i}, strings.Repeat("n", 255), "1e5")
	}
	for which := range byte(5) {
		for twice := range byte(2) {
			f.Add([]byte{0, which, 5, 0}, "text", []string{"text", "1"}[twice])
			f.Add([]byte{0, which}, "1", []string{"1", "1.0"}[twice])
		}
	}
	db := memdynamo.New(memdynamo.Config{})
	recordsOf(f, db, "things", types.ScalarAttributeTypeS)
	f.Fuzz(func(t *testing.T, input []byte, name, word string) {
		from := arbitrary.New(input)
		words := []string{name, word, "a", "1", "", "-0", "1e5", "007", "\xff"}
		item := from.Change(map[string]types.AttributeValue{"ID": textValue("1")}, words, words, "ID")
		switch from.Below(5) {
		case 1:
			item["N"] = &types.AttributeValueMemberN{Value: word}
		case 2:
			item["NS"] = &types.AttributeValueMemberNS{Value: []string{word, name}}
		case 3:
			item["SS"] = &types.AttributeValueMemberSS{Value: []string{word, name}}
		case 4:
			v := from.Value(words)
			for range from.Below(40) {
				v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
			}
			item["deep"] = v
		}
		if !isPlain(item) {
			return
		}
		sent := onTheWire(&types.AttributeValueMemberM{Value: item}).(*types.AttributeValueMemberM)
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("things"), Item: sent.Value})
		require.NoError(t, err, "plain, and refused: %v", item)
	})
}

// onTheWire is a value as the SDK sends it: what is no text becomes text.
func onTheWire(v types.AttributeValue) types.AttributeValue {
	asText := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return textValue(asText(v.Value))
	case *types.AttributeValueMemberSS:
		sent := &types.AttributeValueMemberSS{}
		for _, s := range v.Value {
			sent.Value = append(sent.Value, asText(s))
		}
		return sent
	case *types.AttributeValueMemberL:
		sent := &types.AttributeValueMemberL{}
		for _, e := range v.Value {
			sent.Value = append(sent.Value, onTheWire(e))
		}
		return sent
	case *types.AttributeValueMemberM:
		sent := &types.AttributeValueMemberM{Value: values{}}
		for name, e := range v.Value {
			sent.Value[asText(name)] = onTheWire(e)
		}
		return sent
	}
	return v
}

func recordsOf(t testing.TB, db *memdynamo.DB, name string, of types.ScalarAttributeType) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: of}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
}

// FuzzNumber: two numbers have one text if, and only if, they are one key to
// DynamoDB. So a unit knows whether it writes a record twice.
func FuzzNumber(f *testing.F) {
	for _, pair := range [][2]string{{"1", "1.0"}, {"-0", "0"}, {"1e3", "1000"}, {"12345678901234567890123456789012345678", "1.2345678901234567890123456789012345678e37"},
		{"1E0001", "10"}, {"1", "2"}, {"1e-130", ".1e-129"}, {"+5", "05"}, {"1e125", "10e124"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 90 || len(b) > 90 {
			return // longer than numberText looks at
		}
		db := memdynamo.New(memdynamo.Config{})
		recordsOf(t, db, "numbers", types.ScalarAttributeTypeN)
		for _, n := range []string{a, b} {
			item := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberN{Value: n}}
			if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("numbers"), Item: item}); err != nil {
				return
			}
		}
		require.Equal(t, len(db.Items("numbers")) == 1, numberText(a) == numberText(b), "%q and %q are %s and %s", a, b, numberText(a), numberText(b))
	})
}

// FuzzRef: any text is a reference that names a unit in one way, or an IDError.
func FuzzRef(f *testing.F) {
	f.Add("unit:aaaa:1700000000000000:1700000000:payment%2F7:a/b:c", "id")
	f.Add("unit::1:1::a", "unit:x")
	f.Add("unit:u:9007199254740993:-5:%zz:a", strings.Repeat("x", 1025))
	f.Add("unit:u:9007199254740993:-5::a", "")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, s, id string) {
		err := checkID(id)
		if err != nil {
			require.ErrorAs(t, err, new(*IDError))
		}
		r, refErr := parseRef(s)
		if refErr != nil {
			require.ErrorAs(t, refErr, new(*IDError))
			return
		}
		require.True(t, r.token.Valid() && r.unit != "")
		require.NoError(t, r.key.Validate())
		again, refErr := parseRef(r.String())
		require.NoError(t, refErr)
		require.Equal(t, r, again)
		if r.id = id; err == nil {
			again, refErr = parseRef(r.String())
			require.NoError(t, refErr)
			require.Equal(t, r, again)
		}
	})
}

// FuzzRecord: of any item, what is read as a record of an ID, of a decision, or as a
// row of a journal has all that one has.
func FuzzRecord(f *testing.F) {
	for i := range byte(6) {
		f.Add([]byte{i, 2, 3, 0, i, 2, 1, i, 3})
		f.Add([]byte{i})
	}
	f.Add([]byte{2, 1, 1, 2, 1, 2, 1, 4}) // a digest of one byte
	sum := sha256.Sum256(nil)
	digest := &types.AttributeValueMemberB{Value: sum[:]}
	names := []string{attrState, attrRows, attrDigest, attrCommittedBy, attrBody, attrLast, attrUnit, attrPart}
	words := []string{"committed", "aborted", "done", "", "1", string(sum[:])}
	f.Fuzz(func(t *testing.T, input []byte) {
		from := arbitrary.New(input)
		item := from.Change(arbitrary.Pick(from,
			values{attrState: textValue("committed"), attrRows: number(3), attrDigest: digest},
			values{attrState: textValue("aborted")},
			values{attrCommittedBy: textValue(ofUnit), attrDigest: digest},
			values{attrBody: &types.AttributeValueMemberB{Value: []byte("x")}, attrLast: &types.AttributeValueMemberBOOL{Value: true}},
		), names, words)
		item[attrUnit] = textValue("u")
		is := func(name, kind string) bool {
			return fmt.Sprintf("%T", item[name]) == "*types.AttributeValueMember"+kind
		}
		const s, n, b, boolean = "S", "N", "B", "BOOL"

		whole := is(attrDigest, b) && requests.ValueSize(item[attrDigest]) == sha256.Size
		found, err := parseRecord(item)
		require.Equal(t, whole && is(attrCommittedBy, s) && requests.ValueSize(item[attrCommittedBy]) > 0, err == nil)
		require.Equal(t, err == nil, found != nil)

		v, err := parseVerdict(item)
		state := ""
		if is(attrState, s) {
			state = item[attrState].(*types.AttributeValueMemberS).Value
		}
		switch state {
		case "aborted", "done":
			require.NoError(t, err)
		case "committed":
			require.Equal(t, whole && v.rows > 0, err == nil, "%v", err)
			require.True(t, err != nil || is(attrRows, n))
		default:
			require.Error(t, err)
		}
		body, _, ok := parseJournalRow(item)
		require.Equal(t, is(attrBody, b) && is(attrLast, boolean), ok)
		require.True(t, ok || body == nil)
	})
}

// FuzzJournal: nothing that stands in a journal's rows makes its reader panic, and
// what it takes for a journal has a plan, and reads the same when it is written again.
func FuzzJournal(f *testing.F) {
	f.Add(written(f, journalOf(f, everyType())))
	f.Add(written(f, journalOf(f, values{})))
	f.Add([]byte(`{"version":1,"unit":"0123456789012345678901","locks":"l","token":1,"fence":"f","steps":1,"writes":1}` + "\n" + `{"key":"a"}` + "\n" +
		`{"step":0,"table":"t","record":"r","key":{"ID":{"S":"1"}},"update":"SET #a = :v","names":{"#a":"b"},"values":{":v":{"N":"1"}}}`))
	f.Add([]byte(`{"version":1,"unit":"0123456789012345678901","token":1,"fence":"f","steps":1,"writes":1}` +
		"\n" + `{"key":"a"}` + "\n" + `{"step":0,"table":"t","record":"r","put":null,"key":null,"update":"","names":null,"values":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := readJournal(ofUnit, bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NotEmpty(t, j.plan)
		require.Len(t, j.writes, len(j.plan))
		plan, err := ordering.NewPlan(j.plan.Keys()...)
		require.NoError(t, err)
		require.Equal(t, plan.Keys(), j.plan.Keys(), "a plan that no unit has")
		for i, step := range plan { // what frees rows relies on it
			require.ElementsMatch(t, step.Intents, j.plan[i].Intents, "those of %q", step.Key)
		}
		var rewritten bytes.Buffer
		if err := j.write(&rewritten); err != nil { // a value of a type that the SDK does not know
			return
		}
		again, err := readJournal(ofUnit, &rewritten)
		require.NoError(t, err)
		require.Equal(t, j.writes, again.writes)
		for _, chain := range j.parts(MaxActions) {
			require.NotEmpty(t, chain)
		}
	})
}
