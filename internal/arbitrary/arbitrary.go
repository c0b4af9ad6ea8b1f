// Package arbitrary makes items of DynamoDB out of the bytes of a fuzz target: any
// item, and above all those that are almost right.
package arbitrary

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Source gives out the bytes of an input, and zeros once they are used up.
type Source struct{ rest []byte }

// New returns a source of an input's bytes.
func New(input []byte) *Source { return &Source{input} }

// Byte returns the next byte.
func (s *Source) Byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// Below returns a number below n, which is at most 256.
func (s *Source) Below(n int) int { return int(s.Byte()) % n }

// Int64 returns any number.
func (s *Source) Int64() (n int64) {
	for range 8 {
		n = n<<8 | int64(s.Byte())
	}
	return n
}

// Pick returns one of some.
func Pick[E any](s *Source, of ...E) E { return of[s.Below(len(of))] }

// Text returns up to fifteen characters.
func (s *Source) Text() string {
	n := min(s.Below(16), len(s.rest))
	text := strings.ToValidUTF8(string(s.rest[:n]), "\ufffd")
	s.rest = s.rest[n:]
	return text
}

// Digits returns a number as DynamoDB has it, often one near a limit.
func (s *Source) Digits() string {
	if s.Below(4) == 0 {
		return strconv.FormatInt(s.Int64(), 10)
	}
	return Pick(s, "0", "1", "-1", "2", "1000", "10000", "1700000000000000", "990000000000000", "7881299347898368", "7881299347898369",
		"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", "0.1", "-0.5", "1E+100",
		"99999999999999999999999999999999999999", "1E-100", "9223372036854", "9223372036855")
}

// Value returns a value of any type; words are texts that are likely to mean
// something.
func (s *Source) Value(words []string) types.AttributeValue { return s.value(words, 3) }

func (s *Source) text(words []string) string {
	if s.Below(4) == 0 || len(words) == 0 {
		return s.Text()
	}
	return Pick(s, words...)
}

func (s *Source) texts(words []string) (all []string) {
	for range 1 + s.Below(3) {
		all = append(all, s.text(words))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *Source) value(words []string, depth int) types.AttributeValue {
	kinds := 10
	if depth == 0 {
		kinds = 8
	}
	switch s.Below(kinds) {
	case 0:
		return &types.AttributeValueMemberS{Value: s.text(words)}
	case 1:
		return &types.AttributeValueMemberN{Value: s.Digits()}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(s.text(words))}
	case 3:
		return &types.AttributeValueMemberBOOL{Value: s.Byte()%2 == 1}
	case 4:
		return &types.AttributeValueMemberNULL{Value: true}
	case 5:
		return &types.AttributeValueMemberSS{Value: s.texts(words)}
	case 6:
		return &types.AttributeValueMemberNS{Value: []string{s.Digits()}}
	case 7:
		return &types.AttributeValueMemberBS{Value: [][]byte{[]byte(s.text(words))}}
	case 8:
		var all []types.AttributeValue
		for range s.Below(4) {
			all = append(all, s.value(words, depth-1))
		}
		return &types.AttributeValueMemberL{Value: all}
	default:
		all := map[string]types.AttributeValue{}
		for range s.Below(3) {
			all[s.text(words)] = s.value(words, depth-1)
		}
		return &types.AttributeValueMemberM{Value: all}
	}
}

// Retyped returns a value that looks like another and is of another type.
func (s *Source) Retyped(v types.AttributeValue) types.AttributeValue {
	var text string
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		text = v.Value
	case *types.AttributeValueMemberN:
		text = v.Value
	case *types.AttributeValueMemberB:
		text = string(v.Value)
	case *types.AttributeValueMemberSS:
		text = strings.Join(v.Value, " ")
	}
	switch s.Below(6) {
	case 0:
		return &types.AttributeValueMemberS{Value: strings.ToValidUTF8(text, "\ufffd")}
	case 1:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			text = "1"
		}
		return &types.AttributeValueMemberN{Value: text}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	case 3:
		return &types.AttributeValueMemberSS{Value: []string{strings.ToValidUTF8(text, "\ufffd")}}
	case 4:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
	default:
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"S": v}}
	}
}

// Change returns an item in which some of these attributes are other ones. It
// never touches keep.
func (s *Source) Change(item map[string]types.AttributeValue, names, words []string, keep ...string) map[string]types.AttributeValue {
	item = maps.Clone(item)
	for range s.Below(5) {
		name := s.text(names)
		if slices.Contains(keep, name) || name == "" {
			continue
		}
		switch s.Below(6) {
		case 0:
			delete(item, name)
		case 1:
			item[name] = s.Value(words)
		case 2:
			item[name] = &types.AttributeValueMemberS{Value: s.text(words)}
		case 3:
			item[name] = &types.AttributeValueMemberN{Value: s.Digits()}
		case 4:
			if v := item[name]; v != nil {
				item[name] = s.Retyped(v)
			}
		default:
			if v := item[Pick(s, names...)]; v != nil {
				item[name] = v
			}
		}
	}
	return item
}
