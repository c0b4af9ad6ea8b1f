package memdynamo

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// dates are the metadata of answers by the Date header that these have. Answers of one
// second share them. It is safe for concurrent use.
type dates struct {
	mu   sync.Mutex
	date time.Time
	last middleware.Metadata
}

// of returns the metadata that the SDK makes of a Date header.
func (d *dates) of(date time.Time) middleware.Metadata {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.date.Equal(date) {
		response := &smithyhttp.Response{Response: &http.Response{Header: headerOf(date)}}
		answered := middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		})
		_, d.last, _ = (&awsmiddleware.RecordResponseTiming{DisableClockSkewCorrection: true}).HandleDeserialize(
			context.Background(), middleware.DeserializeInput{}, answered)
		d.date = date
	}
	return d.last
}

// headerOf is the header of an answer with this date; the zero time leaves it out.
func headerOf(date time.Time) http.Header {
	header := http.Header{}
	if !date.IsZero() {
		header.Set("Date", date.UTC().Format(http.TimeFormat))
	}
	return header
}

// setMetadata sets the metadata of an answer. Every output of the SDK has the field.
func setMetadata(out any, metadata middleware.Metadata) {
	reflect.ValueOf(out).Elem().FieldByName("ResultMetadata").Set(reflect.ValueOf(metadata))
}
