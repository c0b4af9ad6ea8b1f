package assumptions

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// meeting is requests of two kinds that are sent at the same time and have one item in common.
type meeting struct {
	name string
	// Either sends one; i tells the senders apart. One that counts adds 1 to the item's n.
	one, other  func(i int) error
	countsOne   bool
	countsOther bool
	together    bool // all of them may be carried out at the same time
}

// conflicts: requests that meet a transaction under way are refused as busy, or carried out, and
// nothing else; and what is refused is not carried out. Transactions that only have a condition on
// one item do not refuse each other.
func conflicts(b *bed) finding {
	table := b.records()
	var met []string
	for _, m := range b.meetings(table) {
		b.put(table, item{"id": text("hot"), "n": number(0)})
		const senders = 4
		rounds := b.times(2, 5, 15)
		var mu sync.Mutex
		kinds, counted := map[requests.Kind]int{}, int64(0)
		send := func(do func(int) error, counts bool, i int) {
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			kinds[requests.KindOf(err)]++
			if err == nil && counts {
				counted++
			}
			if kind := requests.KindOf(err); kind != requests.Done && kind != requests.Busy {
				b.t.Errorf("%s: %s: %v", m.name, kind, err)
			}
		}
		for range rounds {
			var sending sync.WaitGroup
			for i := range senders {
				sending.Go(func() { send(m.one, m.countsOne, i) })
				sending.Go(func() { send(m.other, m.countsOther, senders+i) })
			}
			sending.Wait()
		}
		require.Equal(b.t, counted, n(b.get(table, id("hot"))), "%s: what was refused was carried out, or the other way round: %v", m.name, kinds)
		if m.together && kinds[requests.Busy] > 0 {
			b.t.Errorf("%s: %d of %d refused each other, so units that only read one record do, too", m.name, kinds[requests.Busy], 2*senders*rounds)
		}
		if kinds[requests.Busy] > 0 {
			met = append(met, fmt.Sprintf("%s: %d of %d", m.name, kinds[requests.Busy], 2*senders*rounds))
		}
	}
	require.False(b.t, b.t.Failed())
	if len(met) == 0 {
		return open("no request met another's transaction under way")
	}
	return confirmed("busy, and not carried out: %s", strings.Join(met, "; "))
}

func (b *bed) meetings(table string) []meeting {
	add := func(i int) error {
		return b.transact("", update(table, id("hot"), "ADD n :v", "", number(1)), update(table, id(fmt.Sprint("own", i)), "ADD n :v", "", number(1)))
	}
	holds := func(i int) error {
		return b.transact("", check(table, id("hot"), "attribute_exists(n)"), update(table, id(fmt.Sprint("own", i)), "ADD n :v", "", number(1)))
	}
	single := func(int) error {
		_, err := b.Client.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
			TableName: &table, Key: id("hot"), UpdateExpression: aws.String("ADD n :v"), ExpressionAttributeValues: item{":v": number(1)},
		})
		return err
	}
	read := func(int) error {
		_, err := b.Client.TransactGetItems(b.t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: &table, Key: id("hot")}},
		}})
		return err
	}
	return []meeting{
		{"transactions that write", add, add, true, true, false},
		{"one that writes and one that checks", add, holds, true, false, false},
		{"transactions that check", holds, holds, false, false, true},
		{"one that writes and an UpdateItem", add, single, true, true, false},
		{"one that writes and a transactional read", add, read, true, false, false},
		{"one that writes and a statement", add, func(int) error { return b.statement(table, "hot") }, true, false, false},
	}
}

// statement renews an item as a heartbeat renews a row: alone in a batch.
func (b *bed) statement(table, key string) error {
	out, err := b.Client.BatchExecuteStatement(b.t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
		{Statement: aws.String(fmt.Sprintf(`UPDATE "%s" SET "seen"=? WHERE "id"=?`, table)), Parameters: []types.AttributeValue{number(1), text(key)}},
	}})
	if err != nil {
		return err
	}
	switch failed := out.Responses[0].Error; {
	case failed == nil:
		return nil
	case failed.Code == types.BatchStatementErrorCodeEnumTransactionConflict:
		return &types.TransactionConflictException{Message: failed.Message}
	default:
		return fmt.Errorf("the statement: %s: %s", failed.Code, aws.ToString(failed.Message))
	}
}

// readsBeside: a transactional read shows all of another's transaction or nothing, and whatever
// was answered before it was sent. Plain reads may show half; that is counted.
func readsBeside(b *bed) finding {
	r := &beside{bed: b, table: b.records(), written: 1}
	require.NoError(b.t, r.write(1))
	var reading sync.WaitGroup
	reading.Go(func() { r.untilOver(r.lookAtOnce) })
	reading.Go(func() { r.untilOver(r.lookAtOnce) })
	reading.Go(func() { r.untilOver(r.lookAtEach) })
	for i := int64(2); i < int64(b.times(20, 100, 300)); {
		err := r.write(i)
		if requests.KindOf(err) == requests.Busy {
			continue
		}
		if err != nil {
			b.t.Error(err)
		}
		r.mu.Lock()
		r.written = i
		r.mu.Unlock()
		i++
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	reading.Wait()
	require.False(b.t, b.t.Failed())
	if r.busy+r.half+r.late == 0 {
		return open("%d transactional reads saw all or nothing; none met a transaction under way", r.looks)
	}
	return confirmed("%d transactional reads saw all or nothing, or (%d) were refused as busy; plain reads saw half %d times, and an old item after the answer %d times",
		r.looks, r.busy, r.half, r.late)
}

// beside is one who writes two items, and others who read them meanwhile.
type beside struct {
	*bed
	table string

	mu                      sync.Mutex
	written                 int64 // answered
	over                    bool
	looks, busy, half, late int
}

func (r *beside) write(i int64) error {
	return r.transact("", update(r.table, id("a"), "SET n = :v", "", number(i)), update(r.table, id("b"), "SET n = :v", "", number(i)))
}

// untilOver has somebody look again and again, who is told what was answered before.
func (r *beside) untilOver(look func(least int64)) {
	for {
		r.mu.Lock()
		least, over := r.written, r.over
		r.mu.Unlock()
		if over {
			return
		}
		look(least)
	}
}

func (r *beside) lookAtOnce(least int64) {
	seen, err := r.both(r.table)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
	switch {
	case requests.KindOf(err) == requests.Busy:
		r.busy++
	case err != nil:
		r.t.Error(err)
	case seen[0] != seen[1] || seen[0] < least:
		r.t.Errorf("a transactional read saw %v after %d was answered", seen, least)
	}
}

func (r *beside) lookAtEach(least int64) {
	second, err := r.one("b")
	if err != nil {
		r.t.Error(err)
		return
	}
	first, err := r.one("a")
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first < second { // b had the write, and a, which was read later, had not
		r.half++
	}
	if second < least {
		r.late++
	}
}

func (r *beside) one(key string) (int64, error) {
	out, err := r.Client.GetItem(r.t.Context(), &dynamodb.GetItemInput{TableName: &r.table, Key: id(key), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	return n(out.Item), nil
}

// both reads two items as of one moment.
func (b *bed) both(table string) (seen []int64, err error) {
	out, err := b.Client.TransactGetItems(b.t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: &table, Key: id("a")}}, {Get: &types.Get{TableName: &table, Key: id("b")}},
	}})
	if err != nil {
		return nil, err
	}
	return []int64{n(out.Responses[0].Item), n(out.Responses[1].Item)}, nil
}

// statements: of a batch each is carried out or refused by itself, in order, and one that finds
// another item than it wants, or none, says so.
func statements(b *bed) finding {
	table := b.records()
	for _, s := range []string{"ours", "also ours"} {
		b.put(table, item{"id": text(s), "unit": text("me")})
	}
	b.put(table, item{"id": text("theirs"), "unit": text("you")})
	keys := []string{"ours", "theirs", "nothing", "also ours"}
	var all, deletions []types.BatchStatementRequest
	for _, key := range keys {
		all = append(all, types.BatchStatementRequest{
			Statement:  aws.String(fmt.Sprintf(`UPDATE "%s" SET "seen"=? WHERE "id"=? AND "unit"=?`, table)),
			Parameters: []types.AttributeValue{number(1), text(key), text("me")},
		})
		deletions = append(deletions, types.BatchStatementRequest{
			Statement: aws.String(fmt.Sprintf(`DELETE FROM "%s" WHERE "id"=?`, table)), Parameters: []types.AttributeValue{text(key)},
		})
	}
	out, err := b.Client.BatchExecuteStatement(b.t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: all})
	require.NoError(b.t, err)
	require.Len(b.t, out.Responses, len(keys))
	for i, key := range keys {
		want := requests.Done
		if !slices.Contains([]string{"ours", "also ours"}, key) {
			want = requests.Refused
		}
		require.Equal(b.t, want, requests.KindOfStatement(out.Responses[i].Error), key)
		require.Equal(b.t, want == requests.Done, b.get(table, id(key))["seen"] != nil, key)
	}
	require.Nil(b.t, b.get(table, id("nothing")), "a renewal has made an item")

	out, err = b.Client.BatchExecuteStatement(b.t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: deletions})
	require.NoError(b.t, err)
	for i, key := range keys {
		require.Nil(b.t, out.Responses[i].Error, "deleting %q: %v", key, out.Responses[i].Error)
		require.Nil(b.t, b.get(table, id(key)))
	}
	return confirmed("each by itself; ConditionalCheckFailed also where there is no item; deletions of what is not there succeed")
}

// absentAttributes: what is not there equals nothing, contains nothing and has no size.
func absentAttributes(b *bed) finding {
	table := b.records()
	b.put(table, item{"id": text("without"), "other": text("x")})
	for condition, holds := range map[string]bool{
		"attribute_not_exists(a[0])": true, "a[0] = :v": false, "a <> :v": true, "a = :v": false, "a < :v": false, "a >= :v": false,
		"contains(a, :v)": false, "NOT contains(a, :v)": true, "size(a) < :one": false, "NOT size(a) < :one": true,
		"attribute_not_exists(a) OR a < :v": true, "attribute_exists(a) AND a < :v": false,
	} {
		for _, key := range []string{"without", "nothing"} {
			in := update(table, id(key), "SET seen = :v", condition, text("x")).Update
			if strings.Contains(condition, ":one") {
				in.ExpressionAttributeValues[":one"] = number(1)
			}
			_, err := b.Client.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
				TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
				ExpressionAttributeValues: in.ExpressionAttributeValues,
			})
			want := requests.Refused
			if holds {
				want = requests.Done
			}
			require.Equal(b.t, want, requests.KindOf(err), "%s on %q: %v", condition, key, err)
			if key == "nothing" && holds {
				_, err := b.Client.DeleteItem(b.t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: id(key)})
				require.NoError(b.t, err)
			}
		}
	}
	return confirmed("on an item without the attribute, and on none")
}
