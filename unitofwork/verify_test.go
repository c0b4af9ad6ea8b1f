package unitofwork

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
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
	other := values{"N": number(1)}
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
