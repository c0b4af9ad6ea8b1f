package unitofwork

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/writeback"
)

// fillKey sets the key attributes of a record. The error says which value is not of the type that T
// writes there: DynamoDB would refuse it, and say less.
func (t *Table[T]) fillKey(codec *writeback.Codec, key map[string]types.AttributeValue, record *T) error {
	err := codec.Decode(key, record)
	if err != nil {
		*record = *new(T)
	}
	wanted := writtenKey(codec, record)
	for _, name := range t.keyNames() {
		given, want := requests.TypeOf(key[name]), requests.TypeOf(wanted[name])
		if want != "" && given != want {
			return fmt.Errorf("key attribute %q: %s is of type %s, and %T has type %s there: %s, not %s", name, actions.ValueText(key[name]), given,
				*record, want, actions.KindOf(wanted[name]), actions.KindOf(key[name]))
		}
		if err == nil {
			continue
		}
		if alone := codec.Decode(map[string]types.AttributeValue{name: key[name]}, new(T)); alone != nil {
			return fmt.Errorf("key attribute %q: %s is of type %s, which %T cannot have there: %w", name, actions.ValueText(key[name]), given, *record, alone)
		}
	}
	return err
}

// writtenKey returns what T writes for a record that has its key alone: nothing if it cannot be
// written so.
func writtenKey[T any](codec *writeback.Codec, record *T) (item map[string]types.AttributeValue) {
	defer func() {
		if recover() != nil { // an encoder of the user's that needs more of the record
			item = nil
		}
	}()
	item, err := codec.TryEncode(record)
	if err != nil {
		return nil
	}
	return item
}
