package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/unitofwork"
)

// mendedJSON is what mend says of a unit in JSON. Its names stay as they are.
type mendedJSON struct {
	Unit      string         `json:"unit"`
	Done      bool           `json:"done"`
	Chosen    []chosenJSON   `json:"chosen"`    // what was done
	Obstacles []obstacleJSON `json:"obstacles"` // what is left
	Problem   string         `json:"problem,omitempty"`
}

type chosenJSON struct {
	State  string `json:"state"`
	Choice string `json:"choice"`
}

type obstacleJSON struct {
	State   string       `json:"state"`
	Token   int64        `json:"token"`
	Key     string       `json:"key"`
	RowGone bool         `json:"rowGone"`
	Reason  string       `json:"reason"`
	Choices []string     `json:"choices"`
	Writes  []wantedJSON `json:"writes"`
}

// wantedJSON has items and values in DynamoDB's JSON.
type wantedJSON struct {
	Table     string            `json:"table"`
	Record    string            `json:"record"`
	Found     item              `json:"found"`
	Fence     int64             `json:"fence"`
	Unread    string            `json:"error,omitempty"`
	Operation string            `json:"operation"`
	Item      item              `json:"item,omitempty"`
	Update    string            `json:"update,omitempty"`
	Names     map[string]string `json:"names,omitempty"`
	Values    item              `json:"values,omitempty"`
}

// item is in DynamoDB's JSON, by attribute.
type item map[string]json.RawMessage

func itemOf(attributes map[string]types.AttributeValue) item {
	if attributes == nil {
		return nil
	}
	var all item
	text, err := attributevalue.MarshalMapJSON(attributes)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil { // it came in that JSON
		return item{"": json.RawMessage(fmt.Sprintf("%q", err.Error()))}
	}
	return all
}

func wantedToJSON(w unitofwork.Wanted) wantedJSON {
	j := wantedJSON{Table: w.Table, Record: w.Record, Found: itemOf(w.Found), Fence: int64(w.Fence), Unread: plain.Error(w.Unread)}
	switch put, update := w.Write.Put, w.Write.Update; {
	case put != nil:
		j.Operation, j.Item = "put", itemOf(put.Item)
	case update != nil:
		j.Operation, j.Update, j.Names, j.Values = "update", aws.ToString(update.UpdateExpression), update.ExpressionAttributeNames, itemOf(update.ExpressionAttributeValues)
	default:
		j.Operation = "delete"
	}
	return j
}

func obstacleToJSON(o unitofwork.Obstacle) obstacleJSON {
	j := obstacleJSON{
		State: o.State, Token: int64(o.Token), Key: string(o.Key), RowGone: o.RowGone, Reason: plain.Error(o.Reason),
		Choices: append([]string{}, o.Choices...), Writes: []wantedJSON{},
	}
	for _, w := range o.Writes {
		j.Writes = append(j.Writes, wantedToJSON(w))
	}
	return j
}

func whereIs(o unitofwork.Obstacle) string {
	if o.RowGone || len(o.Writes) == 0 {
		return fmt.Sprintf("key %q", string(o.Key))
	}
	return fmt.Sprintf("table %q, record %s", o.Writes[0].Table, o.Writes[0].Record)
}

// mostShown is how many writes under a key people are shown.
const mostShown = 20

// sayObstacle shows an obstacle to people, and what can be done about it.
func (a *app) sayObstacle(o unitofwork.Obstacle) {
	say := func(text string, args ...any) { a.out.line("%s", plain.Line(fmt.Sprintf(text, args...))) }
	say("%s", whereIs(o))
	say("  unit %s, token %d, key %q; state %s", o.Unit, o.Token, string(o.Key), o.State)
	say("  in the way: %s", reasonWords(o))
	for _, w := range o.Writes[:min(len(o.Writes), mostShown)] {
		if o.RowGone {
			say("  table %q, record %s: %s", w.Table, w.Record, stampWords(o, w))
		}
		for _, line := range writeWords(w) {
			say("  %s", line)
		}
	}
	if more := len(o.Writes) - mostShown; more > 0 {
		say("  and %s, which -o json has", plain.Count(more, "more write", "more writes"))
	}
	if len(o.Choices) == 0 {
		say("  There is no choice here: mend by hand what is in the way, and run mend again.")
	}
	for _, c := range o.Choices {
		say("  %-11s  %s", c, choiceWords[c])
	}
	if words := fenceWords(o); words != "" {
		say("  %s", words)
	}
}

func reasonWords(o unitofwork.Obstacle) string {
	var stale *fencing.StaleError
	if errors.As(o.Reason, &stale) {
		return fmt.Sprintf("the record has the fence %d, newer than the unit's token: somebody wrote it without the lock", stale.Found)
	}
	return plain.Error(o.Reason)
}

// stampWords says what the stamp of a record tells about a write.
func stampWords(o unitofwork.Obstacle, w unitofwork.Wanted) string {
	switch {
	case w.Unread != nil:
		return "it could not be read: " + plain.Error(w.Unread)
	case w.Found == nil:
		return "it is not there"
	case w.Fence == o.Token:
		return "it has the unit's stamp: the write was done"
	case w.Fence > o.Token:
		return "it has a newer stamp: the write was done or not, and another came after it"
	}
	return "it does not have the unit's stamp: the write was not done, or the stamp was removed"
}

// writeWords shows what stands there, and what the unit wants.
func writeWords(w unitofwork.Wanted) []string {
	j := wantedToJSON(w)
	lines := []string{"what stands there:"}
	if w.Found == nil {
		lines = []string{"what stands there: nothing"}
	}
	lines = append(lines, itemWords(j.Found)...)
	lines = append(lines, strings.TrimSpace("what the unit wants: "+j.Operation+" "+j.Update))
	for _, placeholder := range slices.Sorted(maps.Keys(j.Names)) {
		lines = append(lines, fmt.Sprintf("  %s is %s", placeholder, j.Names[placeholder]))
	}
	return append(append(lines, itemWords(j.Item)...), itemWords(j.Values)...)
}

// widestValue is how much of a value people are shown.
const widestValue = 200

func itemWords(of item) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		value := string(of[name])
		if utf8.RuneCountInString(value) > widestValue {
			value = string([]rune(value)[:widestValue]) + "…"
		}
		lines = append(lines, fmt.Sprintf("  %s %s", name, value))
	}
	return lines
}

// choiceWords say what a choice does, and what it breaks.
var choiceWords = map[string]string{
	"apply":   "does the unit's write on the record as it stands. What somebody wrote there without the lock may be lost.",
	"keep":    "leaves the record as it stands, and counts the write as done: what the unit committed here never is written, all else is.",
	"written": "puts the row back, free: all of these writes count as done. Any that is not, never will be.",
	"not-written": "gives the unit the key again, and does these writes, but where the record has the unit's stamp. " +
		"A record that was deleted since comes back; one with a newer stamp is asked about.",
}

// fenceWords says what becomes of the record's fence, whatever is chosen; "" if nothing that matters.
func fenceWords(o unitofwork.Obstacle) string {
	if o.RowGone || len(o.Choices) == 0 || o.Writes[0].Fence <= o.Token {
		return ""
	}
	return fmt.Sprintf("Either way the record's fence falls from %d to %d: writers with a token in between, which it refuses now, are let through.",
		o.Writes[0].Fence, o.Token)
}
