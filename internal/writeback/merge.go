package writeback

import (
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// Merge returns the item to write for a record that was read as raw, was encoded as known right
// after it was decoded, and is encoded as now.
//
//   - What encodes as it did keeps its raw value, bit for bit, and an attribute that was absent stays absent.
//   - What encodes differently is written: of a map, what differs in it; of a list, all of it, but an element
//     that encodes as one that was read keeps the raw value of that one. A list that encodes as a set stays a list.
//   - What does not encode any more is removed. What never did stays.
//
// Names keep the spelling that was read. None of the items is changed. The error is a *[FieldError] if a field that was
// removed would be read from an attribute with another spelling of its name.
func (c *Codec) Merge(raw, known, now Item) (Item, error) {
	m := func(item Item) types.AttributeValue { return &types.AttributeValueMemberM{Value: item} }
	merged := c.merge(c.typ, m(raw), m(known), m(now))
	if found := c.revealed(c.typ, m(raw), merged, ""); found != nil {
		return nil, found
	}
	return merged.(*types.AttributeValueMemberM).Value, nil
}

// Same reports whether two items are the same one to DynamoDB, but for the attribute except.
func Same(a, b Item, except string) bool {
	without := func(item Item) Item {
		if _, there := item[except]; there {
			item = maps.Clone(item)
			delete(item, except)
		}
		return item
	}
	return maps.EqualFunc(without(a), without(b), same)
}

// merge returns a value as [Codec.Merge] does. The type is nil for what a custom type has within.
func (c *Codec) merge(t reflect.Type, raw, known, now types.AttributeValue) types.AttributeValue {
	custom := t == nil || c.isCustom(base(t))
	switch {
	case reflect.DeepEqual(known, now), custom && same(known, now): // a method may encode a set in any order
		return raw
	case t == nil:
		return c.mergeWithin(nil, raw, known, now)
	}
	if t = base(t); !custom {
		return c.mergeWithin(t, raw, known, now)
	}
	// Which attribute belongs to which part of the value is the custom type's business.
	if merged := c.mergeWithin(nil, raw, known, now); merged == now || c.readsAs(t, merged, now) {
		return merged
	}
	return c.overwrite(raw, known, now)
}

// mergeWithin merges what a value has within.
func (c *Codec) mergeWithin(t reflect.Type, raw, known, now types.AttributeValue) types.AttributeValue {
	switch now := now.(type) {
	case *types.AttributeValueMemberM:
		raw, wasMap := raw.(*types.AttributeValueMemberM)
		known, knewMap := known.(*types.AttributeValueMemberM)
		if wasMap && knewMap {
			return &types.AttributeValueMemberM{Value: c.mergeMaps(t, raw.Value, known.Value, now.Value)}
		}
	case *types.AttributeValueMemberL:
		raw, wasList := raw.(*types.AttributeValueMemberL)
		known, knewList := known.(*types.AttributeValueMemberL)
		if wasList && knewList {
			return &types.AttributeValueMemberL{Value: c.mergeLists(t, raw.Value, known.Value, now.Value)}
		}
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return c.mergeSets(t, raw, known, now)
	}
	if same(known, now) {
		return raw
	}
	return now
}

func (c *Codec) mergeMaps(t reflect.Type, raw, known, now Item) Item {
	names := c.namesOf(t, raw, known, now)
	merged := maps.Clone(raw)
	for name, value := range now {
		as := names.of(name)
		knownValue, wasKnown := known[name]
		rawValue, wasThere := raw[as]
		switch {
		case wasKnown && wasThere:
			merged[as] = c.merge(c.within(t, name), rawValue, knownValue, value)
		case wasKnown && same(knownValue, value): // it stays absent
		default:
			merged[as] = value
		}
	}
	for name := range known {
		if _, still := now[name]; !still {
			delete(merged, names.of(name))
		}
	}
	return merged
}

// namesOf finds the spelling of an item's names. What a custom type calls its attributes is seen
// only in what it encodes.
func (c *Codec) namesOf(t reflect.Type, raw, known, now Item) spelling {
	var meaning func(string) (string, bool)
	if t != nil {
		meaning = c.meaning(t)
	} else {
		meaning = fieldsOf(known, now).meaning
	}
	if meaning == nil {
		return nil
	}
	names, _ := spelled(raw, meaning)
	return names
}

func (c *Codec) mergeLists(t reflect.Type, raw, known, now []types.AttributeValue) []types.AttributeValue {
	var beyond []types.AttributeValue // what an array has no room for
	if t != nil && t.Kind() == reflect.Array && len(raw) > t.Len() {
		raw, beyond = raw[:t.Len()], raw[t.Len():]
	}
	if len(known) != len(raw) { // elements that are empty may have been left out
		if slices.EqualFunc(known, now, same) {
			return slices.Concat(raw, beyond)
		}
		known = c.oneByOne(t, raw)
	}
	was, is := encodings(known[:min(len(known), len(raw))]), encodings(now)
	stays := func(i int) bool { return i < len(was) && i < len(is) && was[i] == is[i] }
	merged := slices.Clone(now)
	keep := func(i, from int) { // their sets may be in another order
		merged[i] = c.merge(c.within(t, ""), raw[from], known[from], now[i])
	}
	moved := map[string][]int{} // the places of what was read and is elsewhere now, by what it encodes as
	for i, as := range was {
		if stays(i) {
			keep(i, i)
		} else {
			moved[as] = append(moved[as], i)
		}
	}
	for i, as := range is {
		if from := moved[as]; len(from) > 0 && !stays(i) {
			keep(i, from[0])
			moved[as] = from[1:]
		}
	}
	return slices.Concat(merged, beyond)
}

// oneByOne returns what each element of a list encodes as by itself, up to the first that does not.
func (c *Codec) oneByOne(t reflect.Type, raw []types.AttributeValue) (known []types.AttributeValue) {
	if t == nil {
		return nil
	}
	for _, value := range raw {
		as, err := c.again(c.within(t, ""), value)
		if err != nil {
			break
		}
		known = append(known, as)
	}
	return known
}

// mergeSets keeps of a set every element that encodes as one that is still there: several may encode as one.
// A list has an order and may have duplicates, which would be lost if it became a set.
func (c *Codec) mergeSets(t reflect.Type, raw, known, now types.AttributeValue) types.AttributeValue {
	elements, kind := elementsOf(now)
	readAs, kindKnown := elementsOf(known)
	if kind != kindKnown || hasMoreDuplicates(elements, readAs) {
		return now
	}
	if list, is := raw.(*types.AttributeValueMemberL); is {
		return &types.AttributeValueMemberL{Value: c.mergeLists(t, list.Value, readAs, elements)}
	}
	read, kindRead := elementsOf(raw)
	switch {
	case same(known, now):
		return raw
	case kind != kindRead || len(read) != len(readAs):
		return now
	}
	still, before := timesOf(elements), timesOf(readAs)
	var merged []types.AttributeValue
	for i, e := range readAs {
		if still[text(e)] > 0 {
			merged = append(merged, read[i])
		}
	}
	for _, e := range elements {
		if before[text(e)] == 0 {
			merged = append(merged, e)
		}
	}
	return setOf(kind, merged)
}

// hasMoreDuplicates reports whether an element is in a set twice, and was not there as often before. DynamoDB
// refuses such a set. What was read has duplicates if the type has one value for several of DynamoDB's.
func hasMoreDuplicates(now, before []types.AttributeValue) bool {
	was := timesOf(before)
	for as, n := range timesOf(now) {
		if n > max(1, was[as]) {
			return true
		}
	}
	return false
}

// timesOf counts how often each of these values is there, by its text.
func timesOf(values []types.AttributeValue) map[string]int {
	times := map[string]int{}
	for _, v := range values {
		times[text(v)]++
	}
	return times
}

// readsAs reports whether a value of a custom type, once it is read, encodes as wanted.
func (c *Codec) readsAs(t reflect.Type, value, wanted types.AttributeValue) bool {
	as, err := c.again(t, value)
	return err == nil && same(as, wanted)
}

// again returns what a value encodes as once it is decoded.
func (c *Codec) again(t reflect.Type, value types.AttributeValue) (types.AttributeValue, error) {
	out := reflect.New(t)
	if err := c.decoder.Decode(c.exact(t, actions.CopyValue(value)), out.Interface()); err != nil {
		return nil, err
	}
	return c.encoder.Encode(out.Interface())
}

// overwrite writes all that encodes, and keeps what never did.
func (c *Codec) overwrite(raw, known, now types.AttributeValue) types.AttributeValue {
	read, wasMap := raw.(*types.AttributeValueMemberM)
	before, knewMap := known.(*types.AttributeValueMemberM)
	after, isMap := now.(*types.AttributeValueMemberM)
	if !wasMap || !knewMap || !isMap {
		return now
	}
	names := c.namesOf(nil, read.Value, before.Value, after.Value)
	merged := maps.Clone(read.Value)
	for name := range before.Value {
		delete(merged, names.of(name))
	}
	for name, value := range after.Value {
		merged[names.of(name)] = value
	}
	return &types.AttributeValueMemberM{Value: merged}
}
