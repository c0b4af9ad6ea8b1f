package simulation

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/memdynamo"
)

// lockRows looks at every row of the lock table after every write to it: some
// promises of the tables hold at each moment, whoever writes what.
type lockRows struct {
	history *history

	mu sync.Mutex // held while a row is read, so that rows are seen in the order of their writes
	of map[string]lockRow
}

// lockRow is what a row was when it was last written.
type lockRow struct {
	unit, rvn string
	fence     int64
}

func (l *lockRows) written(db *memdynamo.DB, table *string, key map[string]types.AttributeValue) {
	if *table != lockTable {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: table, Key: key, ConsistentRead: aws.Bool(true)})
	must(err)
	name := keyText(key)
	if out.Item == nil { // it has expired since
		return
	}
	now, wrong := checkRow(l.of[name], out.Item)
	for _, what := range wrong {
		l.history.problem("row %s: %s: %s", name, what, row(out.Item))
	}
	l.of[name] = now
}

// checkRow returns what is wrong with a row, which was before.
func checkRow(before lockRow, item map[string]types.AttributeValue) (now lockRow, wrong []string) {
	has := func(name string) bool { _, ok := item[name]; return ok }
	now = lockRow{unit: text(firstOf(item["unit"], &types.AttributeValueMemberS{})), rvn: text(firstOf(item["recordVersionNumber"], &types.AttributeValueMemberS{}))}
	fence, _ := item["fence"].(*types.AttributeValueMemberN)
	if fence != nil {
		now.fence, _ = strconv.ParseInt(fence.Value, 10, 64)
	}
	below, _ := item["below"].(*types.AttributeValueMemberSS)
	for _, check := range []struct {
		broken bool
		what   string
	}{
		{now.fence <= 0, "it has no fence"},
		{now.fence < before.fence, "its fence has fallen from " + strconv.FormatInt(before.fence, 10)},
		{has("unit") == has("isReleased"), "it is held and free, or neither"},
		{now.unit != "" && now.unit == before.unit && now.rvn < before.rvn, "the unit's RVN has fallen from " + before.rvn},
		{has("unit") && below != nil, "it is held and has intents"},
		{below != nil && has("expiresAt"), "it has intents and may expire"},
		{below != nil && len(below.Value) > 64, "it has more than 64 intents"},
		{has("unit") && !has("expiresAt"), "it is held and never expires"},
	} {
		if check.broken {
			wrong = append(wrong, check.what)
		}
	}
	return now, wrong
}

// expire deletes what has expired, and forgets the rows that went with it. Their
// fences are not forgotten: the next one must be higher all the same.
func (l *lockRows) expire(db *memdynamo.DB) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := db.Expire(time.Now())
	if n == 0 {
		return 0
	}
	left := map[string]bool{}
	for _, item := range db.Items(lockTable) {
		left[text(item["key"])] = true
	}
	for name, was := range l.of {
		if !left[name] {
			l.of[name] = lockRow{fence: was.fence}
		}
	}
	return n
}
