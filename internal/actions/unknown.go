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
	apart  map[string]types.AttributeValue // beside another spelling that the struct knows
	within map[string]Unknown              // of attributes that the struct knows in part, by its names
}

// UnknownOf returns what of an item is missing in what a struct that was read from it
// is written as. Names that differ in case alone are one, as they are to the SDK when it
// reads into a struct, unless the item has both. The attribute except is left out.
func UnknownOf(read, known map[string]types.AttributeValue, except string) Unknown {
	var u Unknown
	for name, value := range read {
		if name == except {
			continue
		}
		knownAs, same := find(known, name)
		if same == nil {
			u.whole = put(u.whole, name, value)
			continue
		}
		if _, both := read[knownAs]; both && knownAs != name {
			u.apart = put(u.apart, name, value)
			continue
		}
		all, isMap := value.(*types.AttributeValueMemberM)
		some, both := same.(*types.AttributeValueMemberM)
		if !isMap || !both {
			continue
		}
		if inside := UnknownOf(all.Value, some.Value, ""); !inside.none() {
			u.within = put(u.within, knownAs, inside)
		}
	}
	return u
}

// put makes the map if there is none: nearly always there is nothing for it.
func put[V any](into map[string]V, name string, value V) map[string]V {
	if into == nil {
		into = map[string]V{}
	}
	into[name] = value
	return into
}

// HasAllOf reports whether an item has every attribute of another, which has no maps within.
// Then there is nothing to be kept of that, as with most records.
func HasAllOf(item, other map[string]types.AttributeValue, except string) bool {
	for name, value := range other {
		if name == except {
			continue
		}
		if _, isMap := value.(*types.AttributeValueMemberM); isMap {
			return false
		}
		if _, there := item[name]; !there {
			return false
		}
	}
	return true
}

func (u Unknown) none() bool { return len(u.whole)+len(u.apart)+len(u.within) == 0 }

// AddTo returns an item with what the struct does not know. What the item has itself
// stays; what it lacks although the struct knows it, the caller has removed. The item
// is not changed.
func (u Unknown) AddTo(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	if u.none() {
		return item
	}
	all := maps.Clone(item)
	for name, value := range u.whole {
		if _, there := find(item, name); there == nil {
			all[name] = value
		}
	}
	for name, value := range u.apart {
		if _, there := item[name]; !there {
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

// find returns an attribute, by its name or else by another spelling; nil if there is none.
func find(item map[string]types.AttributeValue, name string) (as string, value types.AttributeValue) {
	if value, ok := item[name]; ok {
		return name, value
	}
	for n, value := range item {
		if strings.EqualFold(n, name) {
			return n, value
		}
	}
	return "", nil
}
