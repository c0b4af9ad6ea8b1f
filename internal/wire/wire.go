// Package wire speaks DynamoDB's protocol, AWS JSON 1.0 over HTTP, for an engine that has the
// methods of *dynamodb.Client: so any client in any language can use it, and the SDK's own
// without a network.
package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	contentType = "application/x-amz-json-1.0"
	namespace   = "com.amazonaws.dynamodb.v20120810#"
	target      = "DynamoDB_20120810."
	// longest is how long a request may be, as DynamoDB documents it.
	longest = 16 << 20
)

// Handler serves an engine: every method of it that is one of *dynamodb.Client, by its name. It
// checks no signature: whoever reaches it may do everything.
func Handler(engine any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := serve(r, engine)
		if err != nil {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		w.Header()["Date"] = a.date // the engine's own time, or none: net/http would tell this machine's
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // who does not read it is gone
	})
}

// answer is what is sent back.
type answer struct {
	status int
	body   []byte
	date   []string // the Date header; nil if the engine does not tell the time
}

// serve returns an error if there is no answer: nobody waits for it any more, or it is the engine's
// that it got lost.
func serve(r *http.Request, engine any) (answer, error) {
	refused := func(code, message string) (answer, error) {
		return answer{status: http.StatusBadRequest, body: failure(code, message, nil)}, nil
	}
	if r.Method != http.MethodPost {
		return refused("UnknownOperationException", "")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, longest+1))
	switch {
	case err != nil:
		return refused("SerializationException", "the request could not be read")
	case len(body) > longest:
		return answer{status: http.StatusRequestEntityTooLarge}, nil
	}
	operation, is := strings.CutPrefix(r.Header.Get("X-Amz-Target"), target)
	method := reflect.ValueOf(engine).MethodByName(operation)
	if !is || !method.IsValid() || !isOperation(operation) {
		return refused("UnknownOperationException", fmt.Sprintf("%q is not served here", r.Header.Get("X-Amz-Target")))
	}
	in := reflect.New(method.Type().In(1).Elem())
	if err := decode(body, in.Interface()); err != nil {
		code := "SerializationException"
		if strings.HasPrefix(err.Error(), "Supplied AttributeValue") || errors.Is(err, errNesting) {
			code = "ValidationException"
		}
		return refused(code, err.Error())
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(r.Context()), in})
	if err, _ := out[1].Interface().(error); err != nil {
		return failed(err)
	}
	body, err = encode(out[0].Interface())
	return answer{http.StatusOK, body, dateOf(out[0].Elem().FieldByName("ResultMetadata").Interface())}, err
}

// dateOf is the Date header of an answer with this metadata.
func dateOf(metadata any) []string {
	if metadata, is := metadata.(middleware.Metadata); is {
		if date, told := awsmiddleware.GetServerTime(metadata); told {
			return []string{date.UTC().Format(http.TimeFormat)}
		}
	}
	return nil
}

// isOperation reports whether the SDK's client has a method of this name that sends a request.
func isOperation(name string) bool {
	method, has := reflect.TypeFor[*dynamodb.Client]().MethodByName(name)
	return has && method.Type.NumIn() == 4 && method.Type.NumOut() == 2
}

// failed is the answer to a request that the engine has refused.
func failed(err error) (answer, error) {
	var response *smithyhttp.ResponseError
	var api smithy.APIError
	var invalid smithy.InvalidParamsError
	a := answer{status: http.StatusBadRequest}
	if errors.As(err, &response) && response.HTTPStatusCode() != 0 {
		a.status, a.date = response.HTTPStatusCode(), response.Response.Header["Date"]
	}
	switch {
	case a.status == http.StatusRequestEntityTooLarge:
	case errors.As(err, &api):
		a.body = failure(api.ErrorCode(), api.ErrorMessage(), api)
	case errors.As(err, &invalid): // which the SDK's client finds before it sends anything
		a.body = failure("ValidationException", invalid.Error(), nil)
	default:
		return a, err
	}
	return a, nil
}

// failure is an error on the wire, with what its type has besides a message.
func failure(code, message string, modelled any) []byte {
	members := map[string]any{}
	if plain, is := writeError(modelled); is {
		members = plain
	}
	members["__type"] = namespace + code
	members["message"] = message
	if code == "TransactionCanceledException" {
		members["Message"] = message
	}
	answer, err := json.Marshal(members)
	if err != nil { // every member comes from encode
		panic(err)
	}
	return answer
}

func writeError(modelled any) (map[string]any, bool) {
	v := reflect.ValueOf(modelled)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !strings.HasPrefix(v.Elem().Type().PkgPath(), "github.com/aws/aws-sdk-go-v2/service/dynamodb") {
		return nil, false
	}
	plain, _ := write(v)
	members := plain.(map[string]any)
	delete(members, "Message")
	delete(members, "ErrorCodeOverride")
	return members, true
}

// Transport has the SDK's client talk to an engine without a network: within the call, on its
// goroutine. An answer that the engine loses is the error that it says.
type Transport struct{ Engine any }

// Do implements aws.HTTPClient.
func (t Transport) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a, err := serve(r, t.Engine)
	if err != nil {
		return nil, cmp.Or(r.Context().Err(), err)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Header: http.Header{"Content-Type": {contentType}, "Date": a.date}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}
