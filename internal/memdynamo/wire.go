package memdynamo

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// maxRequest is how many bytes a request has at most.
const maxRequest = 16 << 20

// errTooLong is the answer to a request that has more: its length is looked at
// before anything that is in it, and the answer has no form of DynamoDB's.
var errTooLong = &smithy.GenericAPIError{Code: "UnknownError", Message: "UnknownError"}

// checkLength refuses a transaction that the client could not send as one request.
func checkLength(in *dynamodb.TransactWriteItemsInput) error {
	if roughLength(in) <= maxRequest {
		return nil
	}
	if sentLength(in) > maxRequest {
		return errTooLong
	}
	return nil
}

var errMeasured = errors.New("measured")

// counting takes the length of what a client would send.
type counting struct{ bytes int64 }

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	c.bytes = r.ContentLength
	return nil, errMeasured
}

// sentLength is how many bytes the SDK's own client sends for a transaction.
func sentLength(in *dynamodb.TransactWriteItemsInput) int64 {
	var c counting
	_, _ = dynamodb.New(dynamodb.Options{
		Region: "memdynamo", HTTPClient: &c, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{},
	}).TransactWriteItems(context.Background(), in)
	return c.bytes
}

// What a byte, and a value or an action beside its bytes, may come to at most.
const (
	perByte   = 6
	perValue  = 20
	perAction = 1 << 10
)

// roughLength is at least what would be sent, at little cost.
func roughLength(in *dynamodb.TransactWriteItemsInput) int {
	n := perAction
	for i := range in.TransactItems {
		writesIn(&in.TransactItems[i], func(_ string, _ any, x request) {
			n += perAction + roughItem(x.values) + roughItem(x.item)
			for placeholder, name := range x.names {
				n += perByte*(len(placeholder)+len(name)) + perValue
			}
			for _, s := range []*string{x.table, x.cond, x.update} {
				n += perByte * len(aws.ToString(s))
			}
		})
	}
	return n
}

func roughItem(item map[string]types.AttributeValue) (n int) {
	for name, v := range item {
		n += perByte*len(name) + perValue + roughValue(v)
	}
	return n
}

func roughValue(v types.AttributeValue) int {
	n := perValue
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		n += perByte * len(v.Value)
	case *types.AttributeValueMemberN:
		n += perByte * len(v.Value)
	case *types.AttributeValueMemberB:
		n += perByte * len(v.Value)
	case *types.AttributeValueMemberSS:
		n += perByte*sumLen(v.Value) + perValue*len(v.Value)
	case *types.AttributeValueMemberNS:
		n += perByte*sumLen(v.Value) + perValue*len(v.Value)
	case *types.AttributeValueMemberBS:
		n += perByte*sumLen(v.Value) + perValue*len(v.Value)
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			n += roughValue(e)
		}
	case *types.AttributeValueMemberM:
		n += roughItem(v.Value)
	}
	return n
}
