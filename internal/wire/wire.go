// Package wire speaks DynamoDB's protocol, AWS JSON 1.0 over HTTP, for an engine that has the
// methods of *dynamodb.Client: so any client in any language can use it, and the SDK's own
// without a network.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
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
		status, answer := serve(r, engine)
		if answer == nil { // the caller is gone
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(answer)), 10))
		w.WriteHeader(status)
		_, _ = w.Write(answer) // who does not read it is gone
	})
}

// serve returns no answer if the caller does not wait for it any more.
func serve(r *http.Request, engine any) (status int, answer []byte) {
	if r.Method != http.MethodPost {
		return http.StatusBadRequest, failure("UnknownOperationException", "", nil)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, longest+1))
	switch {
	case err != nil:
		return http.StatusBadRequest, failure("SerializationException", "the request could not be read", nil)
	case len(body) > longest:
		return http.StatusRequestEntityTooLarge, []byte{}
	}
	operation, is := strings.CutPrefix(r.Header.Get("X-Amz-Target"), target)
	method := reflect.ValueOf(engine).MethodByName(operation)
	if !is || !method.IsValid() || !isOperation(operation) {
		return http.StatusBadRequest, failure("UnknownOperationException", fmt.Sprintf("%q is not served here", r.Header.Get("X-Amz-Target")), nil)
	}
	in := reflect.New(method.Type().In(1).Elem())
	if err := decode(body, in.Interface()); err != nil {
		code := "SerializationException"
		if strings.HasPrefix(err.Error(), "Supplied AttributeValue") {
			code = "ValidationException"
		}
		return http.StatusBadRequest, failure(code, err.Error(), nil)
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(r.Context()), in})
	if err, _ := out[1].Interface().(error); err != nil {
		return failed(r.Context(), err)
	}
	answer, err = encode(out[0].Interface())
	if err != nil {
		return http.StatusInternalServerError, failure("InternalServerError", err.Error(), nil)
	}
	return http.StatusOK, answer
}

// isOperation reports whether the SDK's client has a method of this name that sends a request.
func isOperation(name string) bool {
	method, has := reflect.TypeFor[*dynamodb.Client]().MethodByName(name)
	return has && method.Type.NumIn() == 4 && method.Type.NumOut() == 2
}

// failed is the answer to a request that the engine has refused.
func failed(ctx context.Context, err error) (status int, answer []byte) {
	var response interface{ HTTPStatusCode() int }
	var api smithy.APIError
	var invalid smithy.InvalidParamsError
	switch {
	case ctx.Err() != nil:
		return 0, nil
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge, []byte{}
	case errors.As(err, &api):
		status = http.StatusBadRequest
		if response != nil && response.HTTPStatusCode() != 0 {
			status = response.HTTPStatusCode()
		}
		return status, failure(api.ErrorCode(), api.ErrorMessage(), api)
	case errors.As(err, &invalid): // which the SDK's client finds before it sends anything
		return http.StatusBadRequest, failure("ValidationException", invalid.Error(), nil)
	}
	return http.StatusInternalServerError, failure("InternalServerError", err.Error(), nil)
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

// Transport has the SDK's client talk to a handler without a network: within the call, on its
// goroutine.
type Transport struct{ Handler http.Handler }

// Do implements aws.HTTPClient.
func (t Transport) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := &response{header: http.Header{}}
	if aborted(func() { t.Handler.ServeHTTP(w, r) }) {
		return nil, context.Cause(r.Context())
	}
	return w.answer(r), nil
}

func aborted(serve func()) (aborted bool) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // as http.Server does
			aborted = true
		} else if p != nil {
			panic(p)
		}
	}()
	serve()
	return false
}

// response keeps what a handler writes.
type response struct {
	header http.Header
	status int
	body   []byte
}

func (w *response) Header() http.Header    { return w.header }
func (w *response) WriteHeader(status int) { w.status = status }
func (w *response) Write(b []byte) (int, error) {
	w.body = append(w.body, b...)
	return len(b), nil
}

func (w *response) answer(r *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status, Header: w.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(string(w.body))), ContentLength: int64(len(w.body)), Request: r,
	}
}
