package unitofwork_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Each of these values comes out different if the SDK encodes what it has decoded: types, digits
// and attributes are lost, or appear. A Put of another field leaves them as they are.
func TestWhatTheSDKWouldEncodeOtherwise(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a float64 rounds a number":              fieldStays[float64]("a long number"),
		"a string makes a text of a number":      fieldStays[string]("a number"),
		"an interface makes a list of a set":     fieldStays[any]("a set"),
		"an interface, within a map":             fieldStays[any]("a map"),
		"a map of interfaces":                    fieldStays[map[string]any]("a map"),
		"a list of maps of interfaces":           fieldStays[[]map[string]any]("a list"),
		"a []string makes a list of a set":       fieldStays[[]string]("a set"),
		"a []string writes NULL for nothing":     fieldStays[[]string]("nothing"),
		"a []byte writes NULL for nothing":       fieldStays[[]byte]("nothing"),
		"a *string writes NULL for nothing":      fieldStays[*string]("nothing"),
		"an int64 writes 0 for NULL":             fieldStays[int64]("NULL"),
		"a bool writes false for NULL":           fieldStays[bool]("NULL"),
		"a string writes an empty text for NULL": fieldStays[string]("NULL"),
		"a time loses trailing zeros":            fieldStays[time.Time]("a time"),
		"a time writes Z for its offset":         fieldStays[time.Time]("an offset"),
		"a struct drops what it does not know":   fieldStays[[]street]("a list"),
		"a number set merges close numbers":      stays("numbers", func(r *numberSet) { r.Count++ }),
		"a unixtime appears, in the year 1":      stays("nothing", func(r *unixTime) { r.Count++ }),
	} {
		t.Run(name, test)
	}
}

func fieldStays[F any](kind string) func(*testing.T) {
	return stays(kind, func(r *counting[F]) { r.Count++ })
}

func stays[R any](kind string, count func(*R)) func(*testing.T) {
	return func(t *testing.T) {
		var decoded R
		require.NoError(t, attributevalue.UnmarshalMap(itemWith(kind), &decoded))
		again, err := attributevalue.MarshalMap(decoded)
		require.NoError(t, err)
		require.NotEqual(t, itemWith(kind)["F"], again["F"], "the SDK keeps this one by itself")
		for _, work := range []unitofwork.Work{{}, {Lock: true, Keys: []ordering.Key{customerKey("1")}}} {
			inBed(t, func(t *testing.T, b *bed) {
				item := itemWith(kind)
				b.putItem("customers", item)
				require.NoError(t, b.client("c", nil).freely(t.Context(), work, counts(count)))
				item["Count"] = number("2")
				require.Equal(t, item, b.customerItem("1"))
			})
		}
	}
}

// named is a record whose attribute other programs may spell otherwise.
type named struct {
	ID    string
	Name  string `dynamodbav:"name"`
	Count int
}

// A record that has a name in another case keeps it, also when its value changes: an index on that
// name goes on to find the record.
func TestANameInAnotherCaseStays(t *testing.T) {
	for name, change := range map[string]func(*named){"not touched": func(*named) {}, "changed": func(r *named) { r.Name = "Bea" }} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				item := itemWith("nothing")
				item["Name"] = text("Ann")
				b.putItem("customers", item)
				want := named{Name: "Ann"}
				change(&want)
				require.NoError(t, b.client("c", nil).freely(t.Context(), unitofwork.Work{}, counts(func(r *named) {
					require.Equal(t, "Ann", r.Name)
					change(r)
					r.Count++
				})))
				item["Count"], item["Name"] = number("2"), text(want.Name)
				require.Equal(t, item, b.customerItem("1"))
			})
		})
	}
}
