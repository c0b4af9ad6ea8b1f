package conformance

import (
	"os"
	"testing"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

func TestDynamoDBLocal(t *testing.T) { Run(t, engines.DynamoDBLocal(t).Client, OfDynamoDBLocal...) }

func TestDynoxide(t *testing.T) { Run(t, engines.Dynoxide(t).Client, OfDynoxide...) }

func TestMemdynamo(t *testing.T) { Run(t, memdynamo.New(memdynamo.Config{}), OfMemdynamo...) }
