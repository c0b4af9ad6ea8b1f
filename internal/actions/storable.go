package actions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// ValueError says which value of an action DynamoDB would refuse, or the SDK change on its way.
type ValueError struct {
	What string // "attribute", "key attribute", "value" or "name"
	Path []Step // to the value; the first is the name of the attribute, or a placeholder
	Why  string
}

// Step is a name of a map, or, if that is empty, an index of a list or a set.
type Step struct {
	Name  string
	Index int
}

func (s Step) String() string {
	if s.Name == "" {
		return "[" + strconv.Itoa(s.Index) + "]"
	}
	return "[" + s.Name + "]"
}

func (e *ValueError) Error() string {
	text := e.What
	for i, step := range e.Path {
		if i == 0 {
			text += " " + step.Name
		} else {
			text += step.String()
		}
	}
	return text + ": " + e.Why
}

func (e *ValueError) within(step Step) *ValueError {
	e.Path = slices.Insert(e.Path, 0, step)
	return e
}

// CheckStorable says which value of an action cannot be stored or sent: a text that is not UTF-8, a number that
// DynamoDB does not have, a set with duplicates, a value that is nested too deeply. If there are several, it
// says the first in order, so that the error does not depend on the order of maps.
func CheckStorable(item types.TransactWriteItem, key map[string]types.AttributeValue) error {
	e := expressions.In(item)
	wrong := firstSaid(*e.Names, func(placeholder, name string) *ValueError {
		if !utf8.ValidString(name) {
			return &ValueError{"name", []Step{{Name: placeholder}}, notText("it")}
		}
		return nil
	})
	if wrong != nil {
		return wrong
	}
	attributes := map[string]types.AttributeValue(nil)
	if item.Put != nil {
		attributes = item.Put.Item
	}
	for _, in := range []struct {
		what   string
		values map[string]types.AttributeValue
	}{{"key attribute", key}, {"attribute", attributes}, {"value", *e.Values}} {
		if wrong := wrongIn(in.values, 0); wrong != nil {
			wrong.What = in.what
			return wrong
		}
	}
	return nil
}

func notText(what string) string {
	return what + " is not valid UTF-8: the SDK would replace what is not, and two texts could become one; store it as bytes"
}

// wrongIn returns the first wrong value of an item or a map that is in depth others.
func wrongIn(values map[string]types.AttributeValue, depth int) *ValueError {
	return firstSaid(values, func(name string, value types.AttributeValue) *ValueError {
		if !utf8.ValidString(name) {
			return &ValueError{Why: notText(fmt.Sprintf("the key %q", name))}
		}
		if wrong := wrongValue(value, depth); wrong != nil {
			return wrong.within(Step{Name: name})
		}
		return nil
	})
}

// firstSaid returns what look says of the first name, in order, of which it says anything. It looks at all of
// them, rather than sort them: hardly any record has a wrong one.
func firstSaid[V any, Said comparable](of map[string]V, look func(name string, value V) Said) Said {
	var none, first Said
	at := ""
	for name, value := range of {
		if said := look(name, value); said != none && (first == none || name < at) {
			first, at = said, name
		}
	}
	return first
}

// wrongValue returns what of a value that is in depth maps and lists cannot be stored.
func wrongValue(value types.AttributeValue, depth int) *ValueError {
	switch value.(type) {
	case *types.AttributeValueMemberL, *types.AttributeValueMemberM:
		if depth++; depth >= maxNesting {
			return &ValueError{Why: tooDeep}
		}
	}
	why := ""
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		if !utf8.ValidString(v.Value) {
			why = notText("the text")
		}
	case *types.AttributeValueMemberN:
		why = wrongNumber(v.Value)
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			why = "DynamoDB has no NULL that is false"
		}
	case *types.AttributeValueMemberSS:
		return wrongSet(v.Value, func(s string) (id, why string) {
			if !utf8.ValidString(s) {
				return s, notText("the text")
			}
			return s, ""
		})
	case *types.AttributeValueMemberNS:
		return wrongSet(v.Value, func(n string) (id, why string) { return NumberText(n), wrongNumber(n) })
	case *types.AttributeValueMemberBS:
		return wrongSet(v.Value, func(b []byte) (id, why string) { return string(b), "" })
	case *types.AttributeValueMemberL:
		for i, e := range v.Value {
			if wrong := wrongValue(e, depth); wrong != nil {
				return wrong.within(Step{Index: i})
			}
		}
	case *types.AttributeValueMemberM:
		return wrongIn(v.Value, depth)
	}
	if why == "" {
		return nil
	}
	return &ValueError{Why: why}
}

var tooDeep = fmt.Sprintf("it is nested more deeply than the %d levels that DynamoDB allows", maxNesting)

// wrongSet returns which element of a set is wrong, or there twice.
func wrongSet[E any](set []E, look func(E) (id, why string)) *ValueError {
	if len(set) == 0 {
		return &ValueError{Why: "the set is empty, and DynamoDB has no empty sets"}
	}
	places := make(map[string]int, len(set))
	for i, element := range set {
		id, why := look(element)
		if first, twice := places[id]; twice && why == "" {
			why = fmt.Sprintf("it is the same as element %d, and DynamoDB refuses a set with duplicates", first)
		}
		if why != "" {
			return (&ValueError{Why: why}).within(Step{Index: i})
		}
		places[id] = i
	}
	return nil
}

// wrongNumber says why DynamoDB refuses a number; empty if it takes it.
func wrongNumber(text string) string {
	if isShortNumber(text) {
		return ""
	}
	n, ok := parseNumber(text)
	switch {
	case !ok:
		return fmt.Sprintf("%s is not a number that DynamoDB can store", shown(text))
	case n.digits == "":
		return ""
	case n.first > maxExponent:
		return fmt.Sprintf("%s is too large: DynamoDB stores numbers below 1e%d", n, maxExponent+1)
	case n.first < minExponent:
		return fmt.Sprintf("%s is too close to 0: DynamoDB stores numbers from 1e%d", n, minExponent)
	case len(n.digits) > maxDigits:
		return fmt.Sprintf("%s has %d significant digits, and DynamoDB stores %d", n, len(n.digits), maxDigits)
	}
	return ""
}

// isShortNumber reports whether a text has so few digits, and nothing else, that DynamoDB takes it: nearly every
// number has.
func isShortNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	digits := strings.Replace(text, ".", "", 1)
	return len(text) <= maxDigits && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// decimal is the absolute value of a number.
type decimal struct {
	digits string // those that count: neither the first nor the last is 0; empty for 0
	first  int    // the exponent of the first
}

// parseNumber reads a number as DynamoDB does.
func parseNumber(text string) (decimal, bool) {
	mantissa, exponent := strings.TrimLeft(text, "+-"), 0
	if len(text)-len(mantissa) > 1 {
		return decimal{}, false
	}
	if at := strings.IndexAny(mantissa, "eE"); at >= 0 {
		e := mantissa[at+1:]
		n, err := strconv.Atoi(e)
		if unsigned := strings.TrimLeft(e, "+-"); err != nil && (unsigned == "" || strings.Trim(unsigned, "0123456789") != "" || len(e)-len(unsigned) > 1) {
			return decimal{}, false
		}
		exponent, mantissa = max(min(n, 1<<24), -1<<24), mantissa[:at] // a longer one is beyond all numbers as well
	}
	whole, part, _ := strings.Cut(mantissa, ".")
	digits := whole + part
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, false
	}
	counted := strings.TrimLeft(digits, "0")
	return decimal{strings.TrimRight(counted, "0"), exponent + len(whole) - 1 - (len(digits) - len(counted))}, true
}

// String writes a number in short: it may have hundreds of digits.
func (d decimal) String() string {
	const few = 6
	text := d.digits[:1]
	if len(d.digits) > 1 {
		text += "." + d.digits[1:min(len(d.digits), few)]
	}
	if len(d.digits) > few {
		text += "…"
	}
	return fmt.Sprintf("%se%d", text, d.first)
}

// shown writes what is not a number: as it is if a float prints so, and else in quotes.
func shown(text string) string {
	switch text {
	case "NaN", "+Inf", "-Inf", "Inf":
		return text
	}
	const enough = 40
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return strconv.Quote(text)
}
