package engines

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Lease returns a lease, in whole seconds, for a test in which leases expire in real time because real
// processes hold them. It is the least one given, or longer where the engine answers slowly at present:
// a tenth of it, which is the default AttemptTimeout, is several times as long as the slowest answer.
// Tests without other processes need none of that: see [Virtual].
func (e *Engine) Lease(t testing.TB, least time.Duration) time.Duration {
	t.Helper()
	const senders, each, timesSlowest = 4, 5, 40
	var mu sync.Mutex
	var slowest time.Duration
	var failed error
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for range each {
				began := time.Now()
				_, err := e.Client.ListTables(context.WithoutCancel(t.Context()), &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
				took := time.Since(began)
				mu.Lock()
				slowest = max(slowest, took)
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	if failed != nil {
		t.Fatalf("%s: %v", e.Name, failed)
	}
	lease := max(least, (timesSlowest*slowest).Truncate(time.Second)+time.Second)
	if lease > least {
		t.Logf("%s takes up to %v to answer: the lease is %v", e.Name, slowest.Round(time.Millisecond), lease)
	}
	return lease
}
