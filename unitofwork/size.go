package unitofwork

// Pure: decides, does no I/O.

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// actionSize is what an action adds to its transaction, in bytes, as far as the
// caller can know: of an update, not the record as it stands.
func actionSize(item types.TransactWriteItem) int {
	switch {
	case item.Put != nil:
		return itemSize(item.Put.Item)
	case item.Update != nil:
		return itemSize(item.Update.Key) + itemSize(item.Update.ExpressionAttributeValues)
	case item.Delete != nil:
		return itemSize(item.Delete.Key)
	default:
		return itemSize(item.ConditionCheck.Key)
	}
}

// sizeOf is the size of what is staged, as far as the caller can know.
func sizeOf(writes []write) int {
	size := 0
	for _, w := range writes {
		size += actionSize(w.item)
	}
	return size
}

// itemSize is the size of an item as DynamoDB counts it, to within a few bytes of
// each number ("DynamoDB item sizes and formats" in AWS's guide).
func itemSize(item map[string]types.AttributeValue) int {
	size := 0
	for name, v := range item {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	size := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		size = len(v.Value)
	case *types.AttributeValueMemberN:
		size = numberSize(v.Value)
	case *types.AttributeValueMemberB:
		size = len(v.Value)
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			size += len(s)
		}
	case *types.AttributeValueMemberNS:
		for _, n := range v.Value {
			size += numberSize(n)
		}
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			size += len(b)
		}
	case *types.AttributeValueMemberL:
		size = 3
		for _, e := range v.Value {
			size += 1 + valueSize(e)
		}
	case *types.AttributeValueMemberM:
		size = 3 + len(v.Value) + itemSize(v.Value)
	default: // a truth value, or null
		size = 1
	}
	return size
}

// numberSize: two digits to a byte, and a byte.
func numberSize(digits string) int { return (len(digits)+1)/2 + 1 }
