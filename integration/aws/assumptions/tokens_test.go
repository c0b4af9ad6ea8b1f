package assumptions

import (
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// tokenRemembered: a transaction that was carried out is answered so when it is sent once more,
// five minutes later, and is not carried out again; although its conditions do not hold any more.
func tokenRemembered(b *bed) finding {
	table, token := b.records(), uuid.NewString()
	send := func() error {
		return b.transact(token, update(table, id("a"), "SET n = :v", "attribute_not_exists(n)", number(1)))
	}
	require.NoError(b.t, send())
	b.put(table, item{"id": text("a"), "n": number(7)}) // others have had the row
	time.Sleep(b.patience())
	require.NoError(b.t, send(), "it was forgotten that it was carried out")
	require.EqualValues(b.t, 7, n(b.get(table, id("a"))), "it was carried out twice")
	if !b.onAWS() {
		return open("remembered for %v; five minutes were not waited for", b.patience())
	}
	return confirmed("remembered for %v", b.patience())
}

// tokenAtOnce: a transaction that is sent several times at once is carried out once, and every
// answer says what holdall takes it for.
func tokenAtOnce(b *bed) finding {
	table := b.records()
	const copies = 8
	rounds := int64(b.times(2, 5, 20))
	kinds := map[requests.Kind]int{}
	for range rounds {
		token := uuid.NewString()
		var mu sync.Mutex
		var sending sync.WaitGroup
		for range copies {
			sending.Go(func() {
				err := b.transact(token, update(table, id("a"), "ADD n :v", "", number(1)))
				mu.Lock()
				defer mu.Unlock()
				kinds[requests.KindOf(err)]++
			})
		}
		sending.Wait()
	}
	require.Equal(b.t, rounds, n(b.get(table, id("a"))), "%v", kinds)
	require.Equal(b.t, int(rounds)*copies, kinds[requests.Done]+kinds[requests.InProgress]+kinds[requests.Busy], "%v", kinds)
	if kinds[requests.InProgress]+kinds[requests.Busy] == 0 {
		return open("carried out once each time; but none of %d sendings met another under way", int(rounds)*copies)
	}
	return confirmed("carried out once each time; of %d sendings %d were told that another was in progress, and %d of a conflict",
		int(rounds)*copies, kinds[requests.InProgress], kinds[requests.Busy])
}

// tokenAfterRefusal: a transaction that was refused is tried anew under its token.
func tokenAfterRefusal(b *bed) finding {
	table, token := b.records(), uuid.NewString()
	send := func() error {
		return b.transact(token, update(table, id("a"), "SET n = :v", "attribute_not_exists(n)", number(1)))
	}
	b.put(table, item{"id": text("a"), "n": number(7)})
	require.Equal(b.t, requests.Refused, requests.KindOf(send()))
	b.put(table, id("a"))
	require.NoError(b.t, send())
	require.EqualValues(b.t, 1, n(b.get(table, id("a"))))
	return confirmed("refused, and then carried out under the same token")
}

// reasons: a transaction that is refused has a reason for each action, in order, and the items
// that refused.
func reasons(b *bed) finding {
	table := b.records()
	taken := item{"id": text("taken"), "n": number(7)}
	b.put(table, taken)
	free := func(s string) types.TransactWriteItem {
		return update(table, id(s), "SET n = :v", "attribute_not_exists(n)", number(1))
	}
	err := b.transact("", free("a"), free("taken"), free("b"), check(table, id("nothing"), "attribute_exists(n)"), insert(table, id("c")))
	var canceled *types.TransactionCanceledException
	require.ErrorAs(b.t, err, &canceled)
	var codes []string
	for _, r := range canceled.CancellationReasons {
		codes = append(codes, requests.Code(r))
	}
	require.Equal(b.t, requests.Refused, requests.KindOf(err))
	require.Len(b.t, codes, 5)
	all := []string{"None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed", "None"}
	named := 0
	for i, code := range codes {
		if code != "None" {
			require.Equal(b.t, all[i], code, "%d of %v", i, codes)
			named++
		}
	}
	if codes[1] != "None" {
		require.Equal(b.t, taken, canceled.CancellationReasons[1].Item)
	}
	require.Nil(b.t, canceled.CancellationReasons[3].Item)
	require.Nil(b.t, b.get(table, id("a")), "a part of it was carried out")
	return confirmed("one for each of 5 actions, in order; %d of the 2 that refused are named", named)
}

// rehearsal: of a transaction beside a condition that does not hold, an action that cannot be
// carried out is reported all the same.
func rehearsal(b *bed) finding {
	table := b.records()
	b.put(table, item{"id": text("a"), "n": text("none")})
	never := check(table, id("b"), "attribute_exists(id) AND attribute_not_exists(id)")
	for name, bad := range map[string]types.TransactWriteItem{
		"a sum with a text":            update(table, id("a"), "ADD n :v", "", number(1)),
		"a sum with what is not there": update(table, id("c"), "SET n = n + :v", "", number(1)),
		"an item that has not the key": insert(table, item{"other": text("c")}),
		"a key of another type":        insert(table, item{"id": number(1)}),
		"an expression that is none":   update(table, id("c"), "SET n = = :v", "", number(1)),
	} {
		good := update(table, id("good"), "SET n = :v", "", number(1))
		for _, actions := range [][]types.TransactWriteItem{{good, bad, never}, {never, bad, good}} {
			err := b.transact("", actions...)
			require.True(b.t, requests.IsInvalidWrite(err), "%s is not reported: %v", name, err)
		}
		var canceled *types.TransactionCanceledException
		err := b.transact("", good, never)
		require.True(b.t, errors.As(err, &canceled) && !requests.IsInvalidWrite(err), "what can be carried out is not reported: %v", err)
	}
	require.Nil(b.t, b.get(table, id("good")), "a rehearsal was carried out")
	return confirmed("reported before and behind the condition")
}
