package unitofwork

// Pure: decides, does no I/O.

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of values, as AWS's guide has them ("Quotas in Amazon DynamoDB").
const (
	maxNesting   = 32
	maxDigits    = 38
	maxSortKey   = 1024
	maxPartition = 2048
)

// kinds tells items apart that DynamoDB may take or refuse for the types of their
// attributes, or for values that a key cannot have: an empty one, or a long one.
func kinds(item map[string]types.AttributeValue) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(item)) {
		kind, size := fmt.Sprintf("%T", item[name]), valueSize(item[name])
		fmt.Fprintf(&text, "%q %s %t %t %t;", name, kind, size == 0, size > maxSortKey, size > maxPartition)
	}
	return text.String()
}

// checkItem says what in an item DynamoDB would refuse whatever the table.
func checkItem(item map[string]types.AttributeValue) error {
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if err := checkValue(item[name], 1); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}

func checkValue(v types.AttributeValue, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("it is nested more than %d levels deep", maxNesting)
	}
	switch v := v.(type) {
	case nil:
		return errors.New("it has no value")
	case *types.AttributeValueMemberN:
		return checkNumber(v.Value)
	case *types.AttributeValueMemberNS:
		for _, n := range v.Value {
			if err := checkNumber(n); err != nil {
				return err
			}
		}
		return checkSet(v.Value)
	case *types.AttributeValueMemberSS:
		return checkSet(v.Value)
	case *types.AttributeValueMemberBS:
		texts := make([]string, len(v.Value))
		for i, b := range v.Value {
			texts[i] = string(b)
		}
		return checkSet(texts)
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			if err := checkValue(e, depth+1); err != nil {
				return err
			}
		}
	case *types.AttributeValueMemberM:
		for _, e := range v.Value {
			if err := checkValue(e, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSet(values []string) error {
	if len(values) == 0 {
		return errors.New("a set is empty")
	}
	sorted := slices.Sorted(slices.Values(values))
	if len(slices.Compact(sorted)) < len(values) {
		return errors.New("a set has a value twice")
	}
	return nil
}

var number38 = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)

// checkNumber refuses what is no number, or has too many digits. Its magnitude is
// DynamoDB's to judge.
func checkNumber(text string) error {
	if !number38.MatchString(text) {
		return fmt.Errorf("%q is not a number", text)
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	digits := strings.Trim(strings.NewReplacer("+", "", "-", "", ".", "").Replace(mantissa), "0")
	if len(digits) > maxDigits {
		return fmt.Errorf("%q has more than %d digits", text, maxDigits)
	}
	return nil
}
