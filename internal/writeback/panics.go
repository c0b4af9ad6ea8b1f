package writeback

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// reflecting turns panics of package reflect, which the SDK does not prevent, into errors. Any other
// panic, such as one of the program's own methods, continues.
func reflecting(call func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		text := fmt.Sprint(p)
		if _, is := p.(*reflect.ValueError); !is && !strings.HasPrefix(text, "reflect") {
			panic(p)
		}
		err = &panicError{text: text}
	}()
	return call()
}

// panicError is a panic of the SDK's that [reflecting] has caught.
type panicError struct {
	text string
	says string // what the program can do about it; empty if the value that caused it is not known
}

func (e *panicError) Error() string {
	if e.says == "" {
		return "attributevalue panics: " + e.text
	}
	return e.says
}

// cannotStore returns an error of the encoder, or, if it is a panic, one that says what to use in place of a type.
func cannotStore(t reflect.Type, err error) error {
	p := (*panicError)(nil)
	if !errors.As(err, &p) {
		return err
	}
	says := fmt.Sprintf("attributevalue cannot store a %v (%s); use another type, or one with a MarshalDynamoDBAttributeValue", t, p.text)
	if isBytes(t) {
		says = fmt.Sprintf("attributevalue cannot store a %v, because %v is not byte; use a []byte", t, t.Elem())
	}
	return &panicError{p.text, says}
}

// cannotRead returns an error of the decoder, or, if it is a panic, one that says what to use in place of a type.
func cannotRead(t reflect.Type, v types.AttributeValue, err error) error {
	p := (*panicError)(nil)
	if !errors.As(err, &p) {
		return err
	}
	says := fmt.Sprintf("attributevalue cannot read %s into a %v (%s); use another type, or one with an UnmarshalDynamoDBAttributeValue", actions.KindOf(v), t, p.text)
	if b, is := v.(*types.AttributeValueMemberB); is && t.Kind() == reflect.Array && isBytes(t) {
		says = fmt.Sprintf("attributevalue cannot read %d bytes into a %v, which has %d; use a []byte", len(b.Value), t, t.Len())
	}
	return &panicError{p.text, says}
}

// isBytes reports whether the SDK stores a type as bytes.
func isBytes(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8
}
