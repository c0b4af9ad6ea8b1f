package requests

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// serverTime is the time at which an answer says that it was sent. Of an error the SDK
// keeps the HTTP response, and no metadata.
func serverTime(out any, err error) (server time.Time, told bool) {
	if err == nil {
		metadata, _ := fieldOf(out, "ResultMetadata").(middleware.Metadata)
		return awsmiddleware.GetServerTime(metadata)
	}
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil {
		return time.Time{}, false
	}
	server, err = smithyhttp.ParseTime(response.Response.Header.Get("Date"))
	return server, err == nil
}

// fieldOf returns a field that answers of the SDK have; nil of one that has none.
func fieldOf(out any, name string) any {
	field := reflect.ValueOf(out).Elem().FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// OffBy is by how much a clock is ahead of the server's at least, or behind it if that is
// negative: it shows now, and the answer with the server's time took so long.
func OffBy(server, now time.Time, took time.Duration) time.Duration {
	switch sent := now.Add(-took); {
	case sent.After(server):
		return sent.Sub(server)
	case now.Before(server):
		return now.Sub(server)
	}
	return 0
}

// skewCodes say that a request was signed at a time too far from DynamoDB's, as a code does of
// which that is one reason among others (AWS General Reference, "Troubleshoot Signature Version 4
// signing"). The SDK learns the time from that answer, and signs the next sending by it.
var skewCodes = []string{"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"}

func isSignedAtAnotherTime(err error) bool {
	var api smithy.APIError
	return hasCode(err, skewCodes...) || hasCode(err, signatureCodes...) && errors.As(err, &api) &&
		(strings.Contains(api.ErrorMessage(), "Signature expired") || strings.Contains(api.ErrorMessage(), "Signature not yet current"))
}

// stamp is a time as signatures have it.
var stamp = regexp.MustCompile(`\d{8}T\d{6}Z`)

const stampLayout = "20060102T150405Z"

// clockText says by how much this machine's clock is wrong, as an answer shows it by its message or
// its Date header.
func clockText(err error) string {
	signed, server, told := signedAt(err)
	switch off := server.Sub(signed).Round(time.Second); {
	case !told || off == 0:
		return "this machine's clock is wrong"
	case off > 0:
		return fmt.Sprintf("this machine's clock is %v behind AWS's", off)
	default:
		return fmt.Sprintf("this machine's clock is %v ahead of AWS's", -off)
	}
}

// signedAt returns when a request was signed by this machine's clock, and DynamoDB's time when it
// was refused for that. Messages name the former, the limit, and DynamoDB's time.
func signedAt(err error) (signed, server time.Time, told bool) {
	if stamps := stamp.FindAllString(Said(err), -1); len(stamps) > 1 {
		signed, err := time.Parse(stampLayout, stamps[0])
		server, otherErr := time.Parse(stampLayout, stamps[len(stamps)-1])
		return signed, server, err == nil && otherErr == nil
	}
	server, told = serverTime(nil, err)
	var response *smithyhttp.ResponseError
	if !told || !errors.As(err, &response) || response.Response.Request == nil {
		return time.Time{}, time.Time{}, false
	}
	signed, err = time.Parse(stampLayout, response.Response.Request.Header.Get("X-Amz-Date"))
	return signed, server, err == nil
}
