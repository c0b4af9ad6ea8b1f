package requests

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// Limits of DynamoDB ("Quotas in Amazon DynamoDB" in AWS's guide). That a request
// has 16 MB at most is documented of BatchWriteItem; DynamoDB Local, which is AWS's
// own, refuses any that is larger.
const (
	MaxActions    = 100       // of a transaction, of reads too
	MaxStatements = 25        // of a BatchExecuteStatement
	MaxItem       = 400 << 10 // bytes of an item
	MaxStored     = 4 << 20   // bytes of all items of a transaction
	MaxSent       = 16 << 20  // bytes of a request
)

// Size is what actions of a transaction come to, against each of its limits.
type Size struct {
	Actions int
	Stored  int // bytes, as far as the caller can know: of an update, not the record as it stands
	Sent    int // bytes on the wire, in JSON
}

// Room is how far a transaction is filled. What stands in the records that it
// meets, and in lock rows, counts as well and cannot be known; nor is all that is
// sent around the actions counted. What is too large all the same is halved.
var Room = Size{Actions: MaxActions, Stored: MaxStored - 256<<10, Sent: MaxSent - 512<<10}

// Plus is the size of both.
func (s Size) Plus(t Size) Size {
	return Size{s.Actions + t.Actions, s.Stored + t.Stored, s.Sent + t.Sent}
}

// Minus is what t leaves of s.
func (s Size) Minus(t Size) Size {
	return Size{s.Actions - t.Actions, s.Stored - t.Stored, s.Sent - t.Sent}
}

// Fits reports whether s exceeds room in nothing.
func (s Size) Fits(room Size) bool {
	return s.Actions <= room.Actions && s.Stored <= room.Stored && s.Sent <= room.Sent
}

// Cut cuts what is to be sent into runs that fit into room, as long as can be. One
// that does not fit is a run by itself.
func Cut[T any](all []T, room Size, size func(T) Size) (runs [][]T) {
	begin, sum := 0, Size{}
	for i, x := range all {
		s := size(x)
		if i > begin && !sum.Plus(s).Fits(room) {
			runs = append(runs, all[begin:i])
			begin, sum = i, Size{}
		}
		sum = sum.Plus(s)
	}
	if begin < len(all) {
		runs = append(runs, all[begin:])
	}
	return runs
}

// Halve does all at once, or, if that is refused for what may be only one's fault or
// too much at once, one half after the other, and so on. It ends with the first
// other error.
func Halve[T any](all []T, divisible func(error) bool, do func([]T) error) error {
	err := do(all)
	if len(all) < 2 || !divisible(err) {
		return err
	}
	half := len(all) / 2
	if err := Halve(all[:half], divisible, do); err != nil {
		return err
	}
	return Halve(all[half:], divisible, do)
}

// around is what is sent of an action beside its values, at most: the names of its
// fields, their punctuation, what it is to return.
const around = 224

// SizeOf is the size of one action.
func SizeOf(item types.TransactWriteItem) Size {
	of := expressions.In(item)
	s := Size{Actions: 1, Sent: around}
	for _, text := range []**string{of.Table, of.Condition, of.Update} {
		if text != nil {
			s.Sent += quoted(aws.ToString(*text))
		}
	}
	for placeholder, name := range *of.Names {
		s.Sent += quoted(placeholder) + quoted(name) + len(`:,`)
	}
	values := itemSize(*of.Values)
	if of.Update == nil { // only an update may store them
		values.Stored = 0
	}
	return s.Plus(values).Plus(itemSize(*of.Item))
}

// sizeSent is how large a request is that has values of the caller's; 0 of any other.
func sizeSent(in any) (bytes int) {
	if in, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
		for _, item := range in.TransactItems {
			bytes += SizeOf(item).Sent
		}
	}
	return bytes
}

// ItemSize is the size of an item in bytes as DynamoDB stores it, to within a few
// of each number ("DynamoDB item sizes and formats" in AWS's guide).
func ItemSize(item map[string]types.AttributeValue) int { return itemSize(item).Stored }

// ValueSize is that of one value.
func ValueSize(v types.AttributeValue) int { return valueSize(v).Stored }

func itemSize(item map[string]types.AttributeValue) (s Size) {
	for name, v := range item {
		s = s.Plus(Size{Stored: len(name), Sent: quoted(name) + len(`:,`)}).Plus(valueSize(v))
	}
	return s
}

func valueSize(v types.AttributeValue) (s Size) {
	add := func(stored, sent int) { s.Stored, s.Sent = s.Stored+stored, s.Sent+sent }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		add(len(v.Value), len(`{"S":}`)+quoted(v.Value))
	case *types.AttributeValueMemberN:
		add(numberSize(v.Value), len(`{"N":}`)+quoted(v.Value))
	case *types.AttributeValueMemberB:
		add(len(v.Value), len(`{"B":}`)+encoded(v.Value))
	case *types.AttributeValueMemberSS:
		add(0, len(`{"SS":[]}`))
		for _, t := range v.Value {
			add(len(t), quoted(t)+len(`,`))
		}
	case *types.AttributeValueMemberNS:
		add(0, len(`{"NS":[]}`))
		for _, n := range v.Value {
			add(numberSize(n), quoted(n)+len(`,`))
		}
	case *types.AttributeValueMemberBS:
		add(0, len(`{"BS":[]}`))
		for _, b := range v.Value {
			add(len(b), encoded(b)+len(`,`))
		}
	case *types.AttributeValueMemberL:
		add(3, len(`{"L":[]}`))
		for _, e := range v.Value {
			of := valueSize(e)
			add(1+of.Stored, of.Sent+len(`,`))
		}
	case *types.AttributeValueMemberM:
		of := itemSize(v.Value)
		add(3+len(v.Value)+of.Stored, len(`{"M":{}}`)+of.Sent)
	default: // a truth value, or null
		add(1, len(`{"NULL":false}`))
	}
	return s
}

// numberSize: two digits to a byte, and a byte; a number has 38 digits at most.
func numberSize(digits string) int { return min((len(digits)+1)/2+1, 21) }

func encoded(b []byte) int { return len(`""`) + base64.StdEncoding.EncodedLen(len(b)) }

// quoted is how long a text is in the SDK's JSON, at most: control characters, and what
// is no UTF-8, are written as \u and four digits.
func quoted(text string) int {
	const escaped = len(`\u0000`)
	n := len(`""`) + len(text)
	for i, r := range text {
		switch {
		case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
			n++
		case r < ' ', r == '\x7f':
			n += escaped - 1
		case r == '\u2028', r == '\u2029':
			n += escaped - utf8.RuneLen(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			n += escaped - 1
		}
	}
	return n
}
