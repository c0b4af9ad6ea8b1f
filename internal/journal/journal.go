// Package journal is what units write down in the unit table, without I/O: the journal of
// a unit that is larger than one transaction, the batches in which it is applied, what was
// decided about it, and the record of an ID.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/expressions"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Journal is what a unit that is larger than one transaction is to do, whoever
// does it: its steps and, for each, what is written under it.
//
// Invariants: every write is stamped with the unit's token, and is carried out
// only on a record whose stamp is older; no record is written twice.
type Journal struct {
	Unit   string
	Locks  string // the lock table
	Token  fencing.Token
	Fence  string // the fence attribute of its records
	Plan   plans.Plan
	Writes [][]Write // by step
}

// Write is a write as the journal has it: what the caller asked was checked
// before, so its only condition is that the record's stamp is older.
type Write struct {
	Table, Record string
	Item          types.TransactWriteItem
	size          requests.Size // of item
}

// NewWrite returns an action as the journal has it.
func NewWrite(table, record string, item types.TransactWriteItem) Write {
	return Write{table, record, item, requests.SizeOf(item)}
}

// Head is the first line of a journal, in JSON as all lines are: what it says of the whole.
type Head struct {
	Version int           `json:"version"`
	Unit    string        `json:"unit"`
	Locks   string        `json:"locks"` // the lock table
	Token   fencing.Token `json:"token"`
	Fence   string        `json:"fence"`
	Steps   int           `json:"steps"`
	Writes  int           `json:"writes"`
}

const journalVersion = 1

// stepLine is one step of the plan.
type stepLine struct {
	Key     ordering.Key   `json:"key"`
	Intents []ordering.Key `json:"intents,omitempty"`
}

// writeLine is one write. Items and values are in DynamoDB's JSON.
type writeLine struct {
	Step   int               `json:"step"`
	Table  string            `json:"table"`
	Record string            `json:"record"`
	Put    json.RawMessage   `json:"put,omitempty"`    // an item
	Key    json.RawMessage   `json:"key,omitempty"`    // of an update or a deletion
	Update string            `json:"update,omitempty"` // its expression; none deletes
	Names  map[string]string `json:"names,omitempty"`
	Values json.RawMessage   `json:"values,omitempty"`
}

// Encode writes the journal, line by line.
func (j *Journal) Encode(w io.Writer) error {
	lines := json.NewEncoder(w)
	count := 0
	for _, ws := range j.Writes {
		count += len(ws)
	}
	if err := lines.Encode(Head{journalVersion, j.Unit, j.Locks, j.Token, j.Fence, len(j.Plan), count}); err != nil {
		return err
	}
	for _, s := range j.Plan {
		if err := lines.Encode(stepLine{s.Key, s.Intents}); err != nil {
			return err
		}
	}
	for step, ws := range j.Writes {
		for _, a := range ws {
			line, err := a.line()
			if err != nil {
				return fmt.Errorf("table %q, record %s: %w", a.Table, a.Record, err)
			}
			line.Step = step
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// line leaves out what all writes have in common.
func (a Write) line() (line writeLine, err error) {
	line = writeLine{Table: a.Table, Record: a.Record}
	switch {
	case a.Item.Put != nil:
		line.Put, err = attributevalue.MarshalMapJSON(a.Item.Put.Item)
	case a.Item.Delete != nil:
		line.Key, err = attributevalue.MarshalMapJSON(a.Item.Delete.Key)
	default:
		u := a.Item.Update
		line.Update = aws.ToString(u.UpdateExpression)
		line.Names = without(u.ExpressionAttributeNames, expressions.Name)
		if line.Key, err = attributevalue.MarshalMapJSON(u.Key); err == nil {
			line.Values, err = attributevalue.MarshalMapJSON(without(u.ExpressionAttributeValues, expressions.Value))
		}
	}
	return line, err
}

func without[V any](m map[string]V, key string) map[string]V {
	rest := maps.Clone(m)
	delete(rest, key)
	return rest
}

// decode reads what write wrote. Its error says why it cannot be that.
func decode(unit string, r io.Reader) (*Journal, error) {
	lines := json.NewDecoder(r)
	lines.DisallowUnknownFields()
	var h Head
	if err := lines.Decode(&h); err != nil {
		return nil, err
	}
	switch {
	case h.Version != journalVersion:
		return nil, fmt.Errorf("it has version %d, not %d", h.Version, journalVersion)
	case h.Unit != unit:
		return nil, fmt.Errorf("it is of unit %q", h.Unit)
	case !h.Token.Valid() || h.Locks == "" || h.Fence == "" || h.Steps < 1 || h.Writes < 0:
		return nil, errors.New("its first line cannot be")
	}
	j := &Journal{Unit: unit, Locks: h.Locks, Token: h.Token, Fence: h.Fence}
	for range h.Steps {
		var s stepLine
		if err := lines.Decode(&s); err != nil {
			return nil, err
		}
		j.Plan = append(j.Plan, plans.Step{Key: s.Key, Intents: s.Intents})
	}
	plan, err := plans.New(j.Plan.Keys()...)
	if err != nil || !slices.EqualFunc(plan, j.Plan, sameStep) {
		return nil, oneline.Join(errors.New("its steps are no plan"), err)
	}
	j.Writes = make([][]Write, len(j.Plan))
	stamps := actions.NewStamper(h.Fence, h.Token)
	for range h.Writes {
		var line writeLine
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		if line.Step < 0 || line.Step >= len(j.Plan) || line.Table == "" {
			return nil, fmt.Errorf("record %s of table %q is of step %d", line.Record, line.Table, line.Step)
		}
		item, err := line.item(stamps)
		if err != nil {
			return nil, err
		}
		j.Writes[line.Step] = append(j.Writes[line.Step], NewWrite(line.Table, line.Record, item))
	}
	if _, err := lines.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after its end")
	}
	return j, nil
}

func sameStep(a, b plans.Step) bool { return a.Key == b.Key && slices.Equal(a.Intents, b.Intents) }

// item makes an action of a line.
func (line writeLine) item(s actions.Stamper) (item types.TransactWriteItem, err error) {
	var key, values map[string]types.AttributeValue
	unmarshal := func(into *map[string]types.AttributeValue, text json.RawMessage) {
		if err == nil && len(text) > 0 {
			*into, err = attributevalue.UnmarshalMapJSON(text)
		}
	}
	unmarshal(&key, line.Key)
	unmarshal(&values, line.Values)
	table := aws.String(line.Table)
	switch {
	case line.Put != nil:
		var put map[string]types.AttributeValue
		unmarshal(&put, line.Put)
		item.Put = &types.Put{TableName: table, Item: put}
	case key == nil:
		return item, fmt.Errorf("record %s of table %q has no key", line.Record, line.Table)
	case line.Update == "":
		item.Delete = &types.Delete{TableName: table, Key: key}
	default:
		item.Update = &types.Update{
			TableName: table, Key: key, UpdateExpression: aws.String(line.Update),
			ExpressionAttributeNames: line.Names, ExpressionAttributeValues: values,
		}
	}
	if err != nil {
		return item, err
	}
	return s.OnlyNewer(item), nil
}

// rowSize is how much of a journal one row of the unit table has, in bytes: an
// item of DynamoDB has 400 KB at most, its keys and names included.
const rowSize = 360 << 10

// Writer cuts a journal into rows, as it is written, and sums it up.
type Writer struct {
	put  func(n int, body []byte, last bool) error // of row n; body is not used again
	Rows int
	sum  hash.Hash
	body []byte
}

// NewWriter returns a writer that puts rows so.
func NewWriter(put func(n int, body []byte, last bool) error) *Writer {
	return &Writer{put: put, sum: sha256.New()}
}

// Write takes some of the journal. A row is put when it is known not to be the
// last.
func (p *Writer) Write(b []byte) (int, error) {
	p.sum.Write(b)
	for rest := b; len(rest) > 0; {
		if len(p.body) == rowSize {
			if err := p.flush(false); err != nil {
				return 0, err
			}
		}
		n := min(len(rest), rowSize-len(p.body))
		p.body, rest = append(p.body, rest[:n]...), rest[n:]
	}
	return len(b), nil
}

func (p *Writer) flush(last bool) error {
	n, body := p.Rows, p.body
	p.Rows, p.body = p.Rows+1, nil
	return p.put(n, body, last)
}

// Close puts the last row and returns the digest of all.
func (p *Writer) Close() (digest []byte, err error) {
	err = p.flush(true)
	return p.sum.Sum(nil), err
}

// Read is the journal in the bodies of its rows. A digest says which it must
// be; without one, any that is whole will do.
func Read(unit string, bodies [][]byte, digest []byte) (*Journal, error) {
	sum := sha256.New()
	readers := make([]io.Reader, len(bodies))
	for i, body := range bodies {
		sum.Write(body)
		readers[i] = bytes.NewReader(body)
	}
	if digest != nil && !bytes.Equal(sum.Sum(nil), digest) {
		return nil, errors.New("its digest is another than was decided")
	}
	return decode(unit, io.MultiReader(readers...))
}
