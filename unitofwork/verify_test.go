package unitofwork

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/journal"
)

// Of each table with several puts one key is rehearsed, and none of it twice in one
// transaction; of a table with a single put none, for nothing else could be its record.
func TestWhichKeysAreRehearsed(t *testing.T) {
	put := func(table, id string, more values) write {
		item := values{"ID": textValue(id)}
		for name, v := range more {
			item[name] = v
		}
		return write{table: table, record: id, key: values{"ID": textValue(id)}, item: types.TransactWriteItem{
			Put: &types.Put{TableName: aws.String(table), Item: item},
		}}
	}
	update := write{table: "a", record: "u", key: values{"ID": textValue("u")}, item: types.TransactWriteItem{
		Update: &types.Update{TableName: aws.String("a"), Key: values{"ID": textValue("u")}},
	}}
	del := func(id string, key values) write {
		return write{table: "a", record: id, key: key, item: types.TransactWriteItem{
			Delete: &types.Delete{TableName: aws.String("a"), Key: key},
		}}
	}
	check := write{table: "a", record: "c", key: values{"ID": textValue("c")}, item: types.TransactWriteItem{
		ConditionCheck: &types.ConditionCheck{TableName: aws.String("a"), Key: values{"ID": textValue("c")}},
	}}
	d1, d2 := del("1", values{"ID": textValue("1")}), del("2", values{"ID": textValue("2")})
	other := values{"N": journal.Number(1)}
	strange := values{"N": &types.AttributeValueMemberN{Value: "1e3"}}
	for name, c := range map[string]struct {
		writes         []write
		examples, keys []string // by record
		apart          []string
	}{
		"nothing":                      {nil, nil, nil, nil},
		"one put":                      {[]write{put("a", "1", nil)}, []string{"1"}, nil, nil},
		"one put, and an update":       {[]write{put("a", "1", nil), update}, []string{"1", "u"}, nil, nil},
		"two that are alike":           {[]write{put("a", "1", nil), put("a", "2", nil)}, []string{"1"}, []string{"2"}, nil},
		"three that are alike":         {[]write{put("a", "1", nil), put("a", "2", nil), put("a", "3", nil)}, []string{"1"}, []string{"2"}, nil},
		"two that are not":             {[]write{put("a", "1", nil), put("a", "2", other)}, []string{"1", "2"}, nil, []string{"2"}},
		"two that are not, and a like": {[]write{put("a", "1", nil), put("a", "2", other), put("a", "3", other)}, []string{"1", "2"}, []string{"3"}, nil},
		"one in each of two tables":    {[]write{put("a", "1", nil), put("b", "2", nil)}, []string{"1", "2"}, nil, nil},
		"two in one, one in another":   {[]write{put("a", "1", nil), put("a", "2", other), put("b", "3", nil)}, []string{"1", "2", "3"}, nil, []string{"2"}},
		"three alike, and one that is not": {
			[]write{put("a", "1", nil), put("a", "2", nil), put("a", "3", other), put("a", "4", other)}, []string{"1", "3"}, []string{"2"}, nil},
		"two of whose values nobody knows": {[]write{put("a", "1", strange), put("a", "2", strange)}, []string{"1", "2"}, nil, []string{"2"}},
		"deletes that are alike":           {[]write{d1, d2}, []string{"1"}, nil, nil},
		"deletes that are not":             {[]write{d1, del("n", values{"ID": journal.Number(1)})}, []string{"1", "n"}, nil, nil},
		"a delete like a put":              {[]write{put("a", "1", nil), d2}, []string{"1", "2"}, nil, nil},
		"updates that look alike":          {[]write{update, update}, []string{"u", "u"}, nil, nil},
		"checks":                           {[]write{check, check}, nil, nil, nil},
		"a check between puts":             {[]write{put("a", "1", nil), check, put("a", "2", nil)}, []string{"1"}, []string{"2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			examples, apart := examplesOf(c.writes)
			var whole, keys, alone []string
			for _, w := range examples {
				if w.item.ConditionCheck != nil {
					keys = append(keys, w.record)
				} else {
					whole = append(whole, w.record)
				}
			}
			for _, w := range apart {
				require.NotNil(t, w.item.ConditionCheck)
				alone = append(alone, w.record)
			}
			require.Equal(t, c.examples, whole)
			require.Equal(t, c.keys, keys)
			require.Equal(t, c.apart, alone)
		})
	}
}
