package faults

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Windows is what the tables know of transactions that were decided and are
// not yet visible everywhere: DynamoDB is serializable, but not strictly so.
// While a window is open on a row,
//
//   - a plain read of it, a strongly consistent one too, shows the old item;
//   - a write of it alone is refused with TransactionConflict;
//   - a transaction that touches it is cancelled with TransactionConflict, and
//     the same transaction sent again is not;
//
// while the transaction's other rows show the new item already.
//
// Query and Scan show the old item too, and not the fresh insert; but what the
// transaction deleted is gone, and with a filter, a projection or an index they
// show what the engine shows. Reads and writes that go past the wrappers see
// and disturb everything: share one Windows among all owners of the tables.
type Windows struct {
	keys map[string][]string // hash and range key, by table

	mu     sync.Mutex
	open   map[string]*window // by row
	busy   map[string]int     // writes of the row that the engine has now
	tokens map[string]int     // transactions under way
}

// window hides the rows of one transaction.
type window struct {
	token string
	old   map[string]map[string]types.AttributeValue // by row; nil until read
	until time.Time                                  // zero until decided
}

// NewWindows takes the key attributes of every table: hash key, then range key
// if there is one.
func NewWindows(keys map[string][]string) *Windows {
	return &Windows{keys: keys, open: map[string]*window{}, busy: map[string]int{}, tokens: map[string]int{}}
}

// row names a row by its key; "" if there is no telling.
func (s *Windows) row(table *string, key map[string]types.AttributeValue) string {
	if len(key) == 0 {
		return ""
	}
	names := make([]string, 0, 2)
	for name := range key {
		names = append(names, name)
	}
	slices.Sort(names)
	b := append(make([]byte, 0, 128), aws.ToString(table)...)
	for _, name := range names {
		b = append(append(append(b, 0), name...), '=')
		switch v := key[name].(type) {
		case *types.AttributeValueMemberS:
			b = strconv.AppendQuote(append(b, 'S'), v.Value)
		case *types.AttributeValueMemberN: // 1 and 1.0 are two rows here; nobody writes both
			b = append(append(b, 'N'), v.Value...)
		case *types.AttributeValueMemberB:
			b = hex.AppendEncode(append(b, 'B'), v.Value)
		default:
			return ""
		}
	}
	return string(b)
}

// keyOf takes the key out of an item; nil if the table is unknown here.
func (s *Windows) keyOf(table *string, item map[string]types.AttributeValue) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{}
	for _, name := range s.keys[aws.ToString(table)] {
		v, ok := item[name]
		if !ok {
			return nil
		}
		key[name] = v
	}
	return key
}

// key is that of a part's row.
func (s *Windows) key(p part) map[string]types.AttributeValue {
	if p.action == opPut {
		return s.keyOf(p.table, p.item)
	}
	return p.item
}

// rows names the rows of a request's parts.
func (s *Windows) rows(of []part) []string {
	rows := make([]string, len(of))
	for i, p := range of {
		rows[i] = s.row(p.table, s.key(p))
	}
	return rows
}

// at returns the window open on a row. The lock is held.
func (s *Windows) at(row string) *window {
	win := s.open[row]
	if win != nil && !win.until.IsZero() && !time.Now().Before(win.until) {
		delete(s.open, row)
		return nil
	}
	return win
}

// oldItem is what a plain read of the row is shown instead, if anything.
func (s *Windows) oldItem(table *string, key map[string]types.AttributeValue) (map[string]types.AttributeValue, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 { // nearly always: naming the row is what costs
		return nil, false
	}
	row := s.row(table, key)
	win := s.at(row)
	if win == nil || win.old == nil {
		return nil, false
	}
	old := win.old[row]
	return *clone(&old), true
}

// blocked returns the positions of the rows on which windows are open.
func (s *Windows) blocked(rows []string) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blockedFor(rows, "")
}

func (s *Windows) blockedFor(rows []string, token string) (at []int) {
	for i, row := range rows {
		win := s.at(row)
		if win == nil || token != "" && win.token == token {
			continue
		}
		at = append(at, i)
	}
	return at
}

// enter lets a write of these rows go to the engine, or returns the positions
// of those that are in a window, or says that its token is under way.
func (s *Windows) enter(rows []string, token string) (at []int, underWay bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && (s.tokens[token] > 0 || s.undecided(rows, token)) {
		return nil, true
	}
	if at := s.blockedFor(rows, token); len(at) > 0 {
		return at, false
	}
	for _, row := range rows {
		s.busy[row]++
	}
	return nil, false
}

// undecided: the transaction of this token is with the engine now.
func (s *Windows) undecided(rows []string, token string) bool {
	for _, row := range rows {
		if win := s.at(row); win != nil && win.token == token && win.until.IsZero() {
			return true
		}
	}
	return false
}

// leave ends what enter began.
func (s *Windows) leave(rows []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		if s.busy[row]--; s.busy[row] == 0 {
			delete(s.busy, row)
		}
	}
}

// reserve begins a window on rows its transaction has entered: from now on
// nobody else writes them. Without effect if somebody else is at it, for then
// what is read could be old before the transaction is sent.
func (s *Windows) reserve(rows []string, token string) *window {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		if s.busy[row] > 1 || s.at(row) != nil {
			return nil
		}
	}
	win := &window{token: token}
	for _, row := range rows {
		s.open[row] = win
	}
	return win
}

// close ends the window after d; now, if d is 0.
func (s *Windows) close(win *window, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	win.until = time.Now().Add(d)
}

// underWay counts the sendings of a transaction that the service has.
func (s *Windows) underWay(token string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens[token] += by; s.tokens[token] == 0 {
		delete(s.tokens, token)
	}
}

// transactWrite executes a transaction, and opens a window if the fault asks.
func (w *Wrapper) transactWrite(ctx context.Context, in *dynamodb.TransactWriteItemsInput, f Fault, opts []options) (*dynamodb.TransactWriteItemsOutput, error) {
	s, of := w.windows, parts(in)
	rows := s.rows(of)
	token := aws.ToString(in.ClientRequestToken)
	at, underWay := s.enter(rows, token)
	if underWay {
		w.count(StillUnderWay)
		return nil, inProgressError(opTransactWrite)
	}
	if len(at) > 0 {
		w.count(WindowConflict)
		return nil, conflictError(opTransactWrite, len(rows), at)
	}
	defer s.leave(rows)
	if f.WindowFor <= 0 {
		return w.DynamoDB.TransactWriteItems(ctx, in, opts...)
	}

	win, err := w.prepare(ctx, of, rows, f.WindowRows, token, opts)
	if err != nil {
		return nil, opError(opTransactWrite, err)
	}
	out, err := w.DynamoDB.TransactWriteItems(ctx, in, opts...)
	if win == nil {
		return out, err
	}
	if err != nil {
		s.close(win, 0) // nothing was decided that could be half visible
		return out, err
	}
	s.close(win, f.WindowFor)
	w.count(WindowOpened)
	return out, nil
}

// prepare reserves the rows and reads what they will go on showing. Without a
// window and without an error, the rows were somebody else's.
func (w *Wrapper) prepare(ctx context.Context, of []part, rows []string, at []int, token string, opts []options) (*window, error) {
	var chosen []string
	var items []types.TransactGetItem
	for i, hidden := range positions(len(rows), at) {
		if !hidden {
			continue
		}
		if rows[i] == "" {
			return nil, fmt.Errorf("faults: action %d has no key known to Windows", i)
		}
		chosen = append(chosen, rows[i])
		items = append(items, types.TransactGetItem{Get: &types.Get{TableName: of[i].table, Key: w.windows.key(of[i])}})
	}
	win := w.windows.reserve(chosen, token)
	if win == nil {
		w.count(WindowMissed)
		return nil, nil
	}
	out, err := w.DynamoDB.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: items}, opts...)
	if err != nil {
		w.windows.close(win, 0)
		return nil, fmt.Errorf("faults: reading what a window shows: %w", err)
	}
	old := make(map[string]map[string]types.AttributeValue, len(chosen))
	for i, row := range chosen {
		old[row] = *clone(&out.Responses[i].Item)
	}
	w.windows.mu.Lock()
	defer w.windows.mu.Unlock()
	win.old = old
	return win, nil
}
