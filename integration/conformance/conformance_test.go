package conformance

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// Every engine, or the DynamoDB elsewhere that was named.
func TestEngines(t *testing.T) {
	if e := engines.Elsewhere(t); e != nil {
		Run(t, e.Client, e.Prefix, Of(e.Kind)...)
		return
	}
	t.Run("dynamodb-local", func(t *testing.T) { RunSlow(t, engines.DynamoDBLocal(t).Client, OfDynamoDBLocal...) })
	t.Run("dynoxide", func(t *testing.T) { Run(t, engines.Dynoxide(t).Client, "", OfDynoxide...) })
	t.Run("embedded", func(t *testing.T) {
		sent := recorder{API: memdynamo.New(memdynamo.Config{}), expressions: map[string]bool{}}
		Run(t, sent, "", OfMemdynamo...)
		t.Run("every expression of the protocol", sent.complete)
	})
}

// What the embedded engine answers, the SDK's own client reads as it was.
func TestWire(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{
		Region: "local", Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}, BaseEndpoint: aws.String("http://dynamodb"),
		HTTPClient: wire.Transport{Engine: memdynamo.New(memdynamo.Config{})},
	})
	RunCarried(t, client, OfMemdynamo...)
}

// The page for users of that engine names every way in which it differs.
func TestThePageNamesTheDifferences(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	for _, d := range OfMemdynamo {
		require.Contains(t, string(page), string(d))
	}
}
