package requests_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// A server that expects TLS may cut the connection before its words are read. Once they are, nothing
// that was sent there has reached DynamoDB.
func TestNoSendingReachesAnEndpointThatExpectsTLS(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			if n > 2 {
				const says = "Client sent an HTTP request to an HTTPS server.\n"
				_, _ = fmt.Fprintf(conn, "HTTP/1.0 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s", len(says), says)
			}
			_ = conn.Close()
		}
	}()
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""), BaseEndpoint: aws.String("http://" + listener.Addr().String()),
	})
	caller := &requests.Caller{DB: db, Attempt: 5 * time.Second, Patience: time.Minute}
	sent, err := caller.Update(t.Context(), "id", &types.Update{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "v"}}, UpdateExpression: aws.String("REMOVE a"),
	})
	require.ErrorContains(t, err, "begin the endpoint with https://")
	require.Zero(t, sent.Unanswered)
}
