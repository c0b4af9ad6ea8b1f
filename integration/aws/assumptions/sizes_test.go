package assumptions

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// isTooLarge is what the library takes an answer for.
func isTooLarge(err error) bool {
	return requests.KindOf(err) == requests.Invalid && requests.IsTooLarge(&requests.TableError{Err: err})
}

// tooLargeStored: a transaction of more than 4 MB of items is refused so that holdall cuts it;
// what is written, what is updated and what is read.
func tooLargeStored(b *bed) finding {
	table := b.records()
	const items = 12
	var inserts, updates []types.TransactWriteItem
	var gets []types.TransactGetItem
	for i := range items {
		key := id(fmt.Sprint(i))
		row := item{"id": key["id"], "data": text(strings.Repeat("x", 370_000))}
		b.put(table, row)
		inserts = append(inserts, insert(table, item{"id": text(fmt.Sprint("new", i)), "data": row["data"]}))
		updates = append(updates, update(table, key, "SET n = :v", "", number(1)))
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key}})
	}
	err := b.transact("", inserts...)
	require.True(b.t, isTooLarge(err), "of writes: %v", err)
	require.Nil(b.t, b.get(table, id("new0")))
	var taken []string
	if err := b.transact("", updates...); err == nil {
		taken = append(taken, "small updates of large items")
	} else {
		require.True(b.t, isTooLarge(err), "of updates: %v", err)
		require.Zero(b.t, n(b.get(table, id("0"))))
	}
	if _, err := b.Client.TransactGetItems(b.t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: gets}); err == nil {
		taken = append(taken, "reads")
	} else {
		require.True(b.t, isTooLarge(err), "of reads: %v", err)
	}
	if len(taken) > 0 {
		return open("refused as too large, but for %s, which are taken here", strings.Join(taken, " and "))
	}
	return confirmed("writes, updates and reads are each refused as too large")
}

// tooLargeSent: a request of more than 16 MB is refused without being looked at, or not answered
// at all; and it is not carried out.
func tooLargeSent(b *bed) finding {
	table := b.records()
	var inserts []types.TransactWriteItem
	for i := range 8 { // 3.2 MB as stored; as JSON a control character is six bytes
		inserts = append(inserts, insert(table, item{"id": text(fmt.Sprint(i)), "data": text(strings.Repeat("\x01", 399_000))}))
	}
	err := b.transact("", inserts...)
	require.Error(b.t, err)
	// An engine may close the connection on whoever uses it next.
	_, _ = b.Client.GetItem(b.t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: id("0")})
	require.Nil(b.t, b.get(table, id("0")))
	if errors.As(err, new(*smithyhttp.RequestSendError)) {
		return confirmed("not answered: %v", err)
	}
	require.True(b.t, isTooLarge(err), "%v", err)
	return confirmed("refused: %v", err)
}
