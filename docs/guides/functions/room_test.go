package functions

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
)

const request = 10 * time.Millisecond // how long one takes

// However the context's end and a fault meet: a payment has returned before the room is over, and
// much sooner if DynamoDB can be reached.
func TestRoom(t *testing.T) {
	short := func(f holdalltest.Fault) bool { // DynamoDB answers what is sent after that
		switch f {
		case "request-lost", "answer-lost", "late", "twice", "throttled",
			"conflict", "server-error", "server-error-after", "denied", "slow", silent:
			return true
		}
		return false
	}
	every := request
	if testing.Short() {
		every = 5 * request
	}
	for _, fault := range append(holdalltest.Faults(), silent) {
		if fault == "crash" || fault == "crash-after" {
			continue // the dead need no room
		}
		t.Run(string(fault), func(t *testing.T) {
			var longest time.Duration
			for _, lock := range []bool{false, true} {
				for at := 1; at <= 5; at++ {
					for ends := request / 2; ends < 8*request; ends += every {
						longest = max(longest, afterItsEnd(t, fault, at, ends, lock))
					}
				}
			}
			t.Logf("%v after the end of its context", longest)
			f, err := New(holdalltest.DynamoDB().Client(), lease)
			require.NoError(t, err)
			require.Less(t, longest, f.room)
			if short(fault) {
				require.Less(t, longest, lease/10+10*request)
			} else {
				require.GreaterOrEqual(t, longest, lease)
			}
		})
	}
}

// silent is a request that nobody ever answers, on a connection that nobody has closed.
const silent holdalltest.Fault = "no answer"

// afterItsEnd is how long a payment goes on after its context has ended.
func afterItsEnd(t *testing.T, fault holdalltest.Fault, at int, ends time.Duration, lock bool) (longer time.Duration) {
	t.Run(fmt.Sprintf("request %d, ends after %v, lock=%v", at, ends, lock), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := memory(t, "alice", "bob")
			db.SetLatency(request)
			p := mute{Process: db.Process("instance"), sent: new(atomic.Int64)}
			if p.at = int64(at); fault != silent {
				p.at = 0
				p.Next(func(r holdalltest.Request) bool { return r.N == at }, fault)
			}
			f, err := New(p, lease)
			require.NoError(t, err)
			f.lock = lock
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			began := time.Now()
			_ = f.pay(ctx, messageOf(Payment{"p1", "alice", "bob", 1}))
			longer = time.Since(began) - ends
			time.Sleep(3 * time.Minute) // what was paused has ended
		})
	})
	return longer
}

// mute is a process one of whose requests is never answered.
type mute struct {
	*holdalltest.Process
	at   int64
	sent *atomic.Int64
}

func (m mute) hang(ctx context.Context) error {
	if m.sent.Add(1) != m.at {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (m mute) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	if err := m.hang(ctx); err != nil {
		return nil, err
	}
	return m.Process.TransactGetItems(ctx, in, o...)
}

func (m mute) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := m.hang(ctx); err != nil {
		return nil, err
	}
	return m.Process.TransactWriteItems(ctx, in, o...)
}

func (m mute) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := m.hang(ctx); err != nil {
		return nil, err
	}
	return m.Process.UpdateItem(ctx, in, o...)
}
