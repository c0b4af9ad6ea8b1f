package unitofwork

// Pure: decides, does no I/O.

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/expressions"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// journal is what a unit that is larger than one transaction is to do, whoever
// does it: its steps and, for each, what is written under it.
//
// Invariants: every write is stamped with the unit's token, and is carried out
// only on a record whose stamp is older; no record is written twice.
type journal struct {
	unit   string
	locks  string // the lock table
	token  fencing.Token
	fence  string // the fence attribute of its records
	plan   ordering.Plan
	writes [][]applied // by step
}

// applied is a write as the journal has it: what the caller asked was checked
// before, so its only condition is that the record's stamp is older.
type applied struct {
	table, record string
	item          types.TransactWriteItem
	size          requests.Size // of item
}

func newApplied(table, record string, item types.TransactWriteItem) applied {
	return applied{table, record, item, requests.SizeOf(item)}
}

// head is the first line of a journal, in JSON as all lines are.
type head struct {
	Version int           `json:"version"`
	Unit    string        `json:"unit"`
	Locks   string        `json:"locks"`
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

// write writes the journal, line by line.
func (j *journal) write(w io.Writer) error {
	lines := json.NewEncoder(w)
	count := 0
	for _, ws := range j.writes {
		count += len(ws)
	}
	if err := lines.Encode(head{journalVersion, j.unit, j.locks, j.token, j.fence, len(j.plan), count}); err != nil {
		return err
	}
	for _, s := range j.plan {
		if err := lines.Encode(stepLine{s.Key, s.Intents}); err != nil {
			return err
		}
	}
	for step, ws := range j.writes {
		for _, a := range ws {
			line, err := a.line()
			if err != nil {
				return fmt.Errorf("table %q, record %s: %w", a.table, a.record, err)
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
func (a applied) line() (line writeLine, err error) {
	line = writeLine{Table: a.table, Record: a.record}
	switch {
	case a.item.Put != nil:
		line.Put, err = attributevalue.MarshalMapJSON(a.item.Put.Item)
	case a.item.Delete != nil:
		line.Key, err = attributevalue.MarshalMapJSON(a.item.Delete.Key)
	default:
		u := a.item.Update
		line.Update = aws.ToString(u.UpdateExpression)
		line.Names = without(u.ExpressionAttributeNames, expressions.Name)
		if line.Key, err = attributevalue.MarshalMapJSON(u.Key); err == nil {
			line.Values, err = attributevalue.MarshalMapJSON(without(u.ExpressionAttributeValues, expressions.Value))
		}
	}
	return line, err
}

func without[V any](m map[string]V, key string) map[string]V {
	rest := make(map[string]V, len(m))
	for k, v := range m {
		if k != key {
			rest[k] = v
		}
	}
	return rest
}

// readJournal reads what write wrote. Its error says why it cannot be that.
func readJournal(unit string, r io.Reader) (*journal, error) {
	lines := json.NewDecoder(r)
	lines.DisallowUnknownFields()
	var h head
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
	j := &journal{unit: unit, locks: h.Locks, token: h.Token, fence: h.Fence}
	for range h.Steps {
		var s stepLine
		if err := lines.Decode(&s); err != nil {
			return nil, err
		}
		j.plan = append(j.plan, ordering.Step{Key: s.Key, Intents: s.Intents})
	}
	plan, err := ordering.NewPlan(j.plan.Keys()...)
	if err != nil || !slices.EqualFunc(plan, j.plan, sameStep) {
		return nil, oneline.Join(errors.New("its steps are no plan"), err)
	}
	j.writes = make([][]applied, len(j.plan))
	stamps := newStamper(h.Fence, h.Token)
	for range h.Writes {
		var line writeLine
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		if line.Step < 0 || line.Step >= len(j.plan) || line.Table == "" {
			return nil, fmt.Errorf("record %s of table %q is of step %d", line.Record, line.Table, line.Step)
		}
		item, err := line.item(stamps)
		if err != nil {
			return nil, err
		}
		j.writes[line.Step] = append(j.writes[line.Step], newApplied(line.Table, line.Record, item))
	}
	if _, err := lines.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after its end")
	}
	return j, nil
}

func sameStep(a, b ordering.Step) bool { return a.Key == b.Key && slices.Equal(a.Intents, b.Intents) }

// item makes an action of a line.
func (line writeLine) item(s stamper) (item types.TransactWriteItem, err error) {
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
	return s.onlyNewer(item), nil
}

// journalRow is how much of a journal one row of the unit table has, in bytes: an
// item of DynamoDB has 400 KB at most, its keys and names included.
const journalRow = 360 << 10

// packer cuts a journal into rows, as it is written, and sums it up.
type packer struct {
	put  func(n int, body []byte, last bool) error // of row n; body is not used again
	rows int
	sum  hash.Hash
	body []byte
}

func newPacker(put func(n int, body []byte, last bool) error) *packer {
	return &packer{put: put, sum: sha256.New()}
}

// Write takes some of the journal. A row is put when it is known not to be the
// last.
func (p *packer) Write(b []byte) (int, error) {
	p.sum.Write(b)
	for rest := b; len(rest) > 0; {
		if len(p.body) == journalRow {
			if err := p.flush(false); err != nil {
				return 0, err
			}
		}
		n := min(len(rest), journalRow-len(p.body))
		p.body, rest = append(p.body, rest[:n]...), rest[n:]
	}
	return len(b), nil
}

func (p *packer) flush(last bool) error {
	n, body := p.rows, p.body
	p.rows, p.body = p.rows+1, nil
	return p.put(n, body, last)
}

// close puts the last row and returns the digest of all.
func (p *packer) close() (digest []byte, err error) {
	err = p.flush(true)
	return p.sum.Sum(nil), err
}

// unpack is the journal in the bodies of its rows. A digest says which it must
// be; without one, any that is whole will do.
func unpack(unit string, bodies [][]byte, digest []byte) (*journal, error) {
	sum := sha256.New()
	readers := make([]io.Reader, len(bodies))
	for i, body := range bodies {
		sum.Write(body)
		readers[i] = bytes.NewReader(body)
	}
	if digest != nil && !bytes.Equal(sum.Sum(nil), digest) {
		return nil, errors.New("its digest is another than was decided")
	}
	return readJournal(unit, io.MultiReader(readers...))
}
