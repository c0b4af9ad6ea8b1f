package requests

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithy "github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// serverTime is the time at which an answer says that it was sent. Of an error the SDK
// keeps the HTTP response, and no metadata.
func serverTime(out any, err error) (server time.Time, told bool) {
	if err != nil {
		var response *smithyhttp.ResponseError
		if !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil {
			return time.Time{}, false
		}
		server, err = smithyhttp.ParseTime(response.Response.Header.Get("Date"))
		return server, err == nil
	}
	return middleware.GetServerTime(metadataOf(out))
}

// metadataOf returns the metadata of an answer.
func metadataOf(out any) smithy.Metadata {
	switch o := out.(type) {
	case *dynamodb.GetItemOutput:
		return o.ResultMetadata
	case *dynamodb.UpdateItemOutput:
		return o.ResultMetadata
	case *dynamodb.TransactGetItemsOutput:
		return o.ResultMetadata
	case *dynamodb.TransactWriteItemsOutput:
		return o.ResultMetadata
	case *dynamodb.QueryOutput:
		return o.ResultMetadata
	case *dynamodb.ScanOutput:
		return o.ResultMetadata
	case *dynamodb.BatchExecuteStatementOutput:
		return o.ResultMetadata
	case *dynamodb.DescribeTableOutput:
		return o.ResultMetadata
	case *dynamodb.DescribeTimeToLiveOutput:
		return o.ResultMetadata
	}
	return smithy.Metadata{}
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
