package actions

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Unknown is what an item has beside what a caller's struct knows of it, at any depth
// of maps. The elements of a list are the struct's as a whole.
type Unknown struct {
	whole  map[string]types.AttributeValue
	within map[string]Unknown // of attributes that the struct knows in part
}

// UnknownOf returns what of an item is missing in what a struct that was read from it
// is written as. Names that differ in case alone are one, as they are to the SDK when it
// reads into a struct.
func UnknownOf(read, known map[string]types.AttributeValue) Unknown {
	u := Unknown{map[string]types.AttributeValue{}, map[string]Unknown{}}
	for name, value := range read {
		same, ok := find(known, name)
		if !ok {
			u.whole[name] = value
			continue
		}
		all, isMap := value.(*types.AttributeValueMemberM)
		some, both := same.(*types.AttributeValueMemberM)
		if !isMap || !both {
			continue
		}
		if inside := UnknownOf(all.Value, some.Value); len(inside.whole)+len(inside.within) > 0 {
			u.within[name] = inside
		}
	}
	return u
}

// AddTo returns an item with what the struct does not know. What the item has itself
// stays; what it lacks although the struct knows it, the caller has removed. The item
// is not changed.
func (u Unknown) AddTo(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	if len(u.whole)+len(u.within) == 0 {
		return item
	}
	all := maps.Clone(item)
	for name, value := range u.whole {
		if _, ok := find(item, name); !ok {
			all[name] = value
		}
	}
	for name, inside := range u.within {
		if some, ok := item[name].(*types.AttributeValueMemberM); ok {
			all[name] = &types.AttributeValueMemberM{Value: inside.AddTo(some.Value)}
		}
	}
	return all
}

func find(item map[string]types.AttributeValue, name string) (types.AttributeValue, bool) {
	if value, ok := item[name]; ok {
		return value, true
	}
	for n, value := range item {
		if strings.EqualFold(n, name) {
			return value, true
		}
	}
	return nil, false
}
