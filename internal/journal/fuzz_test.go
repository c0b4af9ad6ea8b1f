package journal

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
)

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
	names := []string{attrState, attrRows, attrDigest, attrCommittedBy, attrBody, attrLast, AttrUnit, AttrPart}
	words := []string{"committed", "aborted", "done", "", "1", string(sum[:])}
	f.Fuzz(func(t *testing.T, input []byte) {
		from := arbitrary.New(input)
		item := from.Change(arbitrary.Pick(from,
			values{attrState: textValue("committed"), attrRows: Number(3), attrDigest: digest},
			values{attrState: textValue("aborted")},
			values{attrCommittedBy: textValue(ofUnit), attrDigest: digest},
			values{attrBody: &types.AttributeValueMemberB{Value: []byte("x")}, attrLast: &types.AttributeValueMemberBOOL{Value: true}},
		), names, words)
		item[AttrUnit] = textValue("u")
		is := func(name, kind string) bool {
			return fmt.Sprintf("%T", item[name]) == "*types.AttributeValueMember"+kind
		}
		const s, n, b, boolean = "S", "N", "B", "BOOL"

		whole := is(attrDigest, b) && requests.ValueSize(item[attrDigest]) == sha256.Size
		found, err := ParseIDRecord(item)
		require.Equal(t, whole && is(attrCommittedBy, s) && requests.ValueSize(item[attrCommittedBy]) > 0, err == nil)
		require.Equal(t, err == nil, found != nil)

		v, err := ParseDecision(item)
		state := ""
		if is(attrState, s) {
			state = item[attrState].(*types.AttributeValueMemberS).Value
		}
		switch state {
		case "aborted", "done":
			require.NoError(t, err)
		case "committed":
			require.Equal(t, whole && v.Rows > 0, err == nil, "%v", err)
			require.True(t, err != nil || is(attrRows, n))
		default:
			require.Error(t, err)
		}
		body, _, ok := ParseRow(item)
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
		j, err := decode(ofUnit, bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NotEmpty(t, j.Plan)
		require.Len(t, j.Writes, len(j.Plan))
		plan, err := plans.New(j.Plan.Keys()...)
		require.NoError(t, err)
		require.Equal(t, plan.Keys(), j.Plan.Keys(), "a plan that no unit has")
		for i, step := range plan { // what frees rows relies on it
			require.ElementsMatch(t, step.Intents, j.Plan[i].Intents, "those of %q", step.Key)
		}
		var rewritten bytes.Buffer
		if err := j.Encode(&rewritten); err != nil { // a value of a type that the SDK does not know
			return
		}
		again, err := decode(ofUnit, &rewritten)
		require.NoError(t, err)
		require.Equal(t, j.Writes, again.Writes)
		for _, chain := range j.Batches(requests.MaxActions) {
			require.NotEmpty(t, chain)
		}
	})
}
