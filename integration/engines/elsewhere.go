package engines

import (
	"crypto/rand"
	"os"
	"testing"
)

// What names a DynamoDB elsewhere for the tests of a process: integration/aws sets it for
// those that it starts.
const (
	ElsewhereEndpoint = "HOLDALL_ELSEWHERE_ENDPOINT" // where it answers; without it there is none
	ElsewherePrefix   = "HOLDALL_ELSEWHERE_PREFIX"   // begins the names of all tables
	ElsewhereKey      = "HOLDALL_ELSEWHERE_KEY"      // the access key under which it is asked
	ElsewhereKind     = "HOLDALL_ELSEWHERE_KIND"     // what is known of it: that of an engine, or that it is AWS
)

// KindEmbedded is internal/memdynamo, where an engine elsewhere may be that.
const KindEmbedded Kind = "embedded"

// KindAWS is DynamoDB itself.
const KindAWS Kind = "aws"

// Elsewhere is the DynamoDB on which the tests of this process are to run instead of all
// engines; nil if none is named. Nobody here starts or ends it, and its Server is nil.
func Elsewhere(t testing.TB) *Engine {
	t.Helper()
	endpoint := os.Getenv(ElsewhereEndpoint)
	if endpoint == "" {
		return nil
	}
	prefix, key, kind := os.Getenv(ElsewherePrefix), os.Getenv(ElsewhereKey), Kind(os.Getenv(ElsewhereKind))
	if prefix == "" || key == "" || kind == "" {
		t.Fatalf("engines: %s needs %s, %s and %s", ElsewhereEndpoint, ElsewherePrefix, ElsewhereKey, ElsewhereKind)
	}
	return &Engine{
		Kind: kind, Name: kind.String(), Endpoint: endpoint, Client: clientOf(endpoint, key),
		Prefix: prefix + "t" + rand.Text()[:10] + "-",
	}
}
