package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/trace"
)

// Line is one event of a story.
type Line struct {
	At   time.Duration
	Who  string
	Text string
}

func (l Line) String() string { return fmt.Sprintf("%15.9fs  %-12s %s", l.At.Seconds(), l.Who, l.Text) }

// story is an account of a course: who asked what, what the tables answered,
// who heard it. Nothing is kept unless it is on.
type story struct {
	on    bool
	start time.Time

	mu    sync.Mutex
	lines []Line
}

// tell returns the number of the line, from 1; 0 if it is not kept.
func (s *story) tell(who, format string, args ...any) int {
	if !s.on {
		return 0
	}
	line := Line{time.Since(s.start), who, fmt.Sprintf(format, args...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	return len(s.lines)
}

// takeBack leaves a line out, by its number.
func (s *story) takeBack(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[n-1] = Line{}
}

// waitTold is the key of the line that told of a wait.
type waitTold struct{}

// inOrder returns the lines in an order that does not depend on which goroutine
// came first at an instant: what was heard, what followed from it, what was asked.
func (s *story) inOrder() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = slices.DeleteFunc(s.lines, func(l Line) bool { return l == Line{} })
	rank := func(l Line) int {
		for i, begins := range []string{"hears", "unit"} {
			if strings.HasPrefix(l.Text, begins) {
				return i
			}
		}
		for i, has := range []string{" holds", " has read", " has done", " is told", " wants"} {
			if strings.Contains(l.Text, has) {
				return 2 + i
			}
		}
		if strings.HasPrefix(l.Text, "asks") {
			return 99
		}
		return 50
	}
	slices.SortFunc(s.lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Text, b.Text))
	})
	return s.lines
}

// Abridged leaves out looks at rows that show nothing new.
func Abridged(lines []Line) []Line {
	var kept []Line
	shown := map[string]bool{}
	for _, l := range lines {
		if strings.HasPrefix(l.Text, "hears of its GetItem: done") ||
			strings.HasPrefix(l.Text, "asks: show ") && !strings.Contains(l.Text, "[") ||
			strings.HasPrefix(l.Text, "shows ") && shown[l.Text] {
			continue
		}
		shown[l.Text] = true
		kept = append(kept, l)
	}
	return kept
}

func (s *story) asked(c faults.Call, fault string) {
	if !s.on {
		return
	}
	text := "asks: " + request(c.Input)
	if fault != "" {
		text += "   [" + fault + "]"
	}
	s.tell(c.Who, "%s", text)
}

// answered tells what the tables answered to a write.
func (s *story) answered(who string, in any, err error) {
	if !s.on {
		return
	}
	if tx, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
		s.tell(dynamoDB, "to %s's %s: %s", who, aws.ToString(tx.ClientRequestToken), answer(err))
		return
	}
	s.tell(dynamoDB, "to %s: %s: %s", who, request(in), answer(err))
}

// dynamoDB is how the tables are called in a story.
const dynamoDB = "  DynamoDB"

func (s *story) showed(who string, item map[string]types.AttributeValue) {
	if s.on {
		s.tell(dynamoDB, "shows %s: %s", who, row(item))
	}
}

func (s *story) renewed(who string, in *dynamodb.BatchExecuteStatementInput, out *dynamodb.BatchExecuteStatementOutput) {
	if !s.on {
		return
	}
	refused := 0
	for _, r := range out.Responses {
		if r.Error != nil {
			refused++
		}
	}
	s.tell(dynamoDB, "to %s: %s: %d done, %d refused", who, request(in), len(in.Statements)-refused, refused)
}

// heard tells what the library made of an answer.
func (s *story) heard(who string, a trace.Event) {
	if a.Err == nil {
		s.tell(who, "hears of its %s: done", a.Op)
		return
	}
	s.tell(who, "hears of its %s: %s (%.120s)", a.Op, a.Answer, a.Err)
}

// request says what a request asks for.
func request(in any) string {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return "show " + keyText(in.Key)
	case *dynamodb.UpdateItemInput:
		return verb(in.UpdateExpression, in.ConditionExpression, in.ExpressionAttributeValues) + " " + keyText(in.Key)
	case *dynamodb.TransactWriteItemsInput:
		return aws.ToString(in.ClientRequestToken) + ", all or nothing: " + actions(in.TransactItems)
	case *dynamodb.TransactGetItemsInput:
		var all []string
		for _, i := range in.TransactItems {
			all = append(all, keyText(i.Get.Key))
		}
		return "show, as of one moment, " + list(all)
	case *dynamodb.BatchExecuteStatementInput:
		var all []string
		for _, i := range in.Statements {
			all = append(all, keyOf(i))
		}
		if strings.HasPrefix(aws.ToString(in.Statements[0].Statement), "DELETE") {
			return fmt.Sprintf("delete %s of %s", list(all), text(in.Statements[0].Parameters[0]))
		}
		return fmt.Sprintf("renew %s as %s", list(all), text(in.Statements[0].Parameters[0]))
	}
	return fmt.Sprintf("%T", in)
}

// actions says what a transaction does, what is done alike together.
func actions(items []types.TransactWriteItem) string {
	var verbs []string
	keys := map[string][]string{}
	add := func(verb, key string) {
		if keys[verb] == nil {
			verbs = append(verbs, verb)
		}
		keys[verb] = append(keys[verb], key)
	}
	for _, i := range items {
		switch {
		case i.Update != nil:
			add(verb(i.Update.UpdateExpression, i.Update.ConditionExpression, i.Update.ExpressionAttributeValues), keyText(i.Update.Key))
		case i.ConditionCheck != nil:
			add("check", keyText(i.ConditionCheck.Key))
		case i.Put != nil:
			add("put", text(cmp.Or(i.Put.Item["ID"], i.Put.Item["unit"])))
		case i.Delete != nil:
			add("delete", keyText(i.Delete.Key))
		}
	}
	for i, v := range verbs {
		verbs[i] = v + " " + list(keys[v])
	}
	return strings.Join(verbs, "; ")
}

// verbs say in a word what an update does, by what its expression has; the
// first that fits.
var verbs = []struct{ has, verb string }{
	{"#ownerName = :owner", "take"},
	{"SET #pending", "mark"},
	{"SET #state", "decide about"},
	{"SET #body", "journal"},
	{"ADD #below", "intend"},
	{"DELETE #below", "leave"},
	{"list_append", "queue at"},
	{"SET #silentOf", "note the silence of"},
	{"REMOVE #queue[0], #silentOf", "drop the head of"},
	{"REMOVE #queue", "step out of the queue of"},
	{"#fence = :token, #recordVersionNumber", "pass"},
	{"SET #fence = :token, #isReleased", "pass above"},
	{"#committedBy = :unit", "free with a commit stamp"},
	{"REMOVE #unit", "free"},
	{"SET #isReleased = :one, #fence", "burn"},
	{"SET #fence = :token", "stamp"},
}

func verb(update, condition *string, values map[string]types.AttributeValue) string {
	verb := "update"
	for _, v := range verbs {
		if strings.Contains(aws.ToString(update), v.has) {
			verb = v.verb
			break
		}
	}
	if verb == "free" && strings.Contains(aws.ToString(condition), ":rvn") {
		verb = "bury " + text(values[":rvn"]) + " at"
	}
	if token, ok := values[":token"]; ok {
		return verb + " with " + text(token)
	}
	return verb
}

// answer says what the tables made of a write, and which rows refused it.
func answer(err error) string {
	var failed *types.ConditionalCheckFailedException
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &failed):
		return "refused by " + row(failed.Item)
	case errors.As(err, &canceled):
		var all []string
		for _, r := range canceled.CancellationReasons {
			if requests.Code(r) != "None" {
				all = append(all, row(r.Item))
			}
		}
		return "refused by " + strings.Join(all[:min(len(all), 4)], "; by ")
	}
	return err.Error()
}

// row is what a row of the lock table says, or any item.
func row(item map[string]types.AttributeValue) string {
	if len(item) == 0 {
		return "nothing there"
	}
	var all []string
	for _, attr := range []struct{ name, said string }{
		{"key", ""}, {"ID", ""}, {"isReleased", "free"}, {"unit", "unit "}, {"recordVersionNumber", "RVN "}, {"fence", "fence "},
		{"below", "below "}, {"queue", "queue "}, {"committedBy", "committed by "}, {"N", ""}, {"Last", "by "}, {"_fence", "fence "},
	} {
		v, ok := item[attr.name]
		_, free := item["isReleased"]
		switch {
		case !ok, free && attr.name == "recordVersionNumber":
		case attr.name == "isReleased":
			all = append(all, attr.said)
		default:
			all = append(all, attr.said+text(v))
		}
	}
	return strings.Join(all, ", ")
}

func keyText(key map[string]types.AttributeValue) string {
	return text(cmp.Or(key["key"], key["ID"], key["unit"]))
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberSS:
		return "[" + strings.Join(v.Value, ", ") + "]"
	case *types.AttributeValueMemberL:
		all := make([]string, len(v.Value))
		for i, v := range v.Value {
			all[i] = text(v)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// keyOf is the key that a statement names: that of a renewal comes after the RVN and the time.
func keyOf(s types.BatchStatementRequest) string {
	if strings.HasPrefix(*s.Statement, "UPDATE") {
		return text(s.Parameters[2])
	}
	return text(s.Parameters[1])
}
