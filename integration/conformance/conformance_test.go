package conformance

import (
	"os"
	"testing"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
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
