package simulation

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Names of tables. Records live in several, so that units cross them; the log
// has one item per committed unit, put by the commit itself.
const (
	lockTable = "locks"
	unitTable = "units"
	logTable  = "log"
)

var recordTables = []string{"customers", "accounts", "history"}

// record is what units read and write: how often it was written since it was
// made, and by whom last.
type record struct {
	ID   string
	N    int
	Last string
}

// records are those of one table; each is guarded by the key it is named after.
func records(table string) *unitofwork.Table[record] {
	return &unitofwork.Table[record]{
		Name: table, PartitionKey: "ID",
		Guard: func(r *record) ordering.Key { return ordering.Key(r.ID) },
	}
}

// tableOf is where the record of a key lives.
func tableOf(k ordering.Key) string {
	return recordTables[strings.Count(string(k), "/")%len(recordTables)]
}

// world is the course under way.
type world struct {
	settings Settings
	plan     *Plan
	start    time.Time
	until    time.Duration

	db      *memdynamo.DB
	windows *faults.Windows
	done    chan struct{} // closed when nothing goes wrong any more

	story     story
	history   history
	rows      lockRows
	decisions decisions

	downstream downstream

	mu       sync.Mutex // guards what follows
	counts   Counts
	instants []time.Duration
}

func newWorld(s Settings, p *Plan) *world {
	w := &world{settings: s, plan: p, start: time.Now(), until: p.Length, done: make(chan struct{})}
	if s.Until > 0 {
		w.until = min(s.Until, p.Length)
	}
	w.story.on, w.story.start = s.Story, w.start
	w.history.start = w.start
	w.counts.Faults = map[string]int{}
	w.history.byMarker, w.history.byUnit, w.history.tokens = map[string]*try{}, map[string]*try{}, map[string]fencing.Token{}
	w.history.units, w.history.w = map[string]*unit{}, w
	w.downstream.own, w.downstream.below = map[ordering.Key]fencing.Token{}, map[ordering.Key]fencing.Token{}
	w.decisions.next = make(chan struct{})
	w.rows.of, w.rows.history, w.rows.plan = map[string]lockRow{}, &w.history, p
	if w.rows.untaken = 3 * p.Poll; p.Poll == 0 {
		w.rows.untaken = 3 * p.Lease / 50
	}
	if w.rows.grace = p.Grace; p.Grace == 0 {
		w.rows.grace = p.Lease / 4
	}
	w.db = memdynamo.New(memdynamo.Config{Date: w.date})
	ctx := context.Background()
	must(lockset.CreateTable(ctx, w.db, lockset.Config{Table: lockTable}))
	must(unitofwork.CreateTable(ctx, w.db, unitofwork.Config{Table: unitTable}))
	keys := map[string][]string{lockTable: {"key"}, unitTable: {"unit", "part"}}
	for _, name := range append(slices.Clone(recordTables), logTable) {
		keys[name] = []string{"ID"}
		_, err := w.db.CreateTable(ctx, newtable.Input(name, "ID"))
		must(err)
	}
	w.windows = faults.NewWindows(keys)
	return w
}

// date is the clock of one of DynamoDB's hosts: which of them answers is drawn anew for each moment.
func (w *world) date() time.Time {
	now := time.Now()
	if w.plan.Dates == 0 {
		return now
	}
	return now.Add(faults.UpTo(draw(w.plan.Seed, "date", now.UnixNano()), w.plan.Dates))
}

// must is for what only a mistake in this package can make fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// event notes that something began or went wrong.
func (w *world) event() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instants = append(w.instants, time.Since(w.start))
}

// strikes notes a fault.
func (w *world) strikes(name string) {
	w.event()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Faults[name]++
}

func (w *world) count(note func(*Counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note(&w.counts)
}

func (w *world) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts.Requests
}

// tables is the engine, observed: when did which commit land, and for the story
// what was asked of the tables and what they answered. It stands behind the
// faults, where the truth is.
type tables struct {
	*memdynamo.DB
	w   *world
	who string
}

func (t *tables) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := t.DB.TransactWriteItems(ctx, in, opts...)
	if err == nil {
		for _, item := range in.TransactItems {
			switch {
			case item.Put != nil && *item.Put.TableName == logTable:
				token, err := strconv.ParseInt(text(item.Put.Item["_fence"]), 10, 64)
				must(err)
				t.w.history.landed(text(item.Put.Item["ID"]), fencing.Token(token), time.Now())
			case item.Update != nil && decides(item.Update):
				t.w.history.decided(text(item.Update.Key["unit"]), time.Now())
				t.w.count(func(c *Counts) { c.Journals++ })
			case item.Update != nil:
				t.w.rows.written(t.DB, item.Update.TableName, item.Update.Key)
				t.w.mayBury(item.Update.UpdateExpression, item.Update.Key, item.Update.ExpressionAttributeValues)
			}
		}
	}
	t.w.story.answered(t.who, in, err)
	return out, err
}

// decides reports whether a write makes a unit with a journal committed.
func decides(u *types.Update) bool {
	state, ok := u.ExpressionAttributeValues[":state"]
	return ok && *u.TableName == unitTable && text(state) == "committed"
}

func (t *tables) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := t.DB.UpdateItem(ctx, in, opts...)
	if err == nil {
		t.w.rows.written(t.DB, in.TableName, in.Key)
		t.w.mayBury(in.UpdateExpression, in.Key, in.ExpressionAttributeValues)
	}
	t.w.story.answered(t.who, in, err)
	return out, err
}

// mayBury notes a write by which a row's unit was buried, alone or together with its intents.
func (w *world) mayBury(update *string, key, values map[string]types.AttributeValue) {
	rvn, named := values[":rvn"]
	if _, takes := values[":owner"]; named && !takes && strings.Contains(*update, "REMOVE #unit") {
		unit, _, _ := strings.Cut(text(rvn), ".")
		w.history.buried(unit, ordering.Key(keyText(key)), time.Now())
	}
}

func (t *tables) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := t.DB.GetItem(ctx, in, opts...)
	if err == nil {
		t.w.story.showed(t.who, out.Item)
	}
	return out, err
}

func (t *tables) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out, err := t.DB.BatchExecuteStatement(ctx, in, opts...)
	if err == nil {
		for i, response := range out.Responses {
			if response.Error == nil && strings.HasPrefix(*in.Statements[i].Statement, "UPDATE") {
				t.w.rows.written(t.DB, new(lockTable), map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: keyOf(in.Statements[i])}})
			}
		}
		t.w.story.renewed(t.who, in, out)
	}
	return out, err
}

// reap deletes what has expired, as early as a table may.
func (w *world) reap() {
	for {
		select {
		case <-w.done:
			return
		case <-time.After(reapEvery):
		}
		if n := w.rows.expire(w.db); n > 0 {
			w.strikes(rowExpired)
			w.story.tell("DynamoDB", "deletes %d expired items", n)
		}
	}
}

// reapEvery is a second, and odd enough to fall together with nothing else.
const reapEvery = time.Second + 13*time.Nanosecond

// stored is what the tables hold at the end.
type stored struct {
	records map[string]storedRecord
	log     map[string]bool
}

type storedRecord struct {
	record
	Fence fencing.Token `dynamodbav:"_fence"`
}

func (w *world) stored() stored {
	s := stored{records: map[string]storedRecord{}, log: map[string]bool{}}
	for _, table := range recordTables {
		for _, item := range w.db.Items(table) {
			var r storedRecord
			must(attributevalue.UnmarshalMap(item, &r))
			s.records[r.ID] = r
		}
	}
	for _, item := range w.db.Items(logTable) {
		s.log[item["ID"].(*types.AttributeValueMemberS).Value] = true
	}
	return s
}
