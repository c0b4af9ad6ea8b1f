package requests_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/requests"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// DynamoDB's guide says how large an item is: names and text by their bytes,
// a truth value or null one, a list or map three and one for each that is in it.
func TestSizesAreDynamoDBs(t *testing.T) {
	for name, c := range map[string]struct {
		item item
		size int
	}{
		"text":             {item{"ID": text("abc")}, 2 + 3},
		"beyond ASCII":     {item{"ż": text("🐢")}, 2 + 4},
		"nothing":          {item{"a": text("")}, 1},
		"two":              {item{"a": text("b"), "cd": text("ef")}, 2 + 4},
		"bytes":            {item{"a": &types.AttributeValueMemberB{Value: make([]byte, 1000)}}, 1001},
		"true":             {item{"a": &types.AttributeValueMemberBOOL{Value: true}}, 2},
		"null":             {item{"a": &types.AttributeValueMemberNULL{Value: true}}, 2},
		"one digit":        {item{"a": number("7")}, 1 + 2},
		"three digits":     {item{"a": number("123")}, 1 + 3},
		"sixteen digits":   {item{"a": number("1700000000000000")}, 1 + 9},
		"a long number":    {item{"a": number("1." + strings.Repeat("0", 1000))}, 1 + 21},
		"set of text":      {item{"a": &types.AttributeValueMemberSS{Value: []string{"b", "cd"}}}, 1 + 3},
		"set of numbers":   {item{"a": &types.AttributeValueMemberNS{Value: []string{"1", "22"}}}, 1 + 2 + 2},
		"set of bytes":     {item{"a": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}}, 1 + 3},
		"empty list":       {item{"a": &types.AttributeValueMemberL{}}, 1 + 3},
		"list":             {item{"a": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("bc"), number("1")}}}, 1 + 3 + 1 + 2 + 1 + 2},
		"empty map":        {item{"a": &types.AttributeValueMemberM{}}, 1 + 3},
		"map":              {item{"a": &types.AttributeValueMemberM{Value: item{"bc": text("def")}}}, 1 + 3 + 1 + 2 + 3},
		"as bytes, not so": {item{"a": text("\x01\x02")}, 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.size, requests.ItemSize(c.item))
			key := item{"ID": text("1")}
			for stored, of := range map[int]types.TransactWriteItem{
				c.size:     {Put: &types.Put{Item: c.item}},
				3:          {Delete: &types.Delete{Key: key, ExpressionAttributeValues: c.item}},
				c.size + 3: {Update: &types.Update{Key: key, ExpressionAttributeValues: c.item}},
			} {
				require.Equal(t, stored, requests.SizeOf(of).Stored)
			}
			require.Equal(t, 3, requests.SizeOf(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{Key: key}}).Stored)
		})
	}
}

// errMeasured ends a request whose length is known.
var errMeasured = errors.New("measured")

type scales struct{ bytes int }

func (s *scales) Do(r *http.Request) (*http.Response, error) {
	s.bytes = int(r.ContentLength)
	return nil, errMeasured
}

// measure is how many bytes the SDK sends of a transaction.
func measure(t *testing.T, in *dynamodb.TransactWriteItemsInput) int {
	t.Helper()
	s := &scales{}
	db := dynamodb.New(dynamodb.Options{Region: "local", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
	_, err := db.TransactWriteItems(t.Context(), in)
	require.ErrorIs(t, err, errMeasured)
	return s.bytes
}

// anyAction is an action with everything that an action can have, or next to nothing.
func anyAction(from *arbitrary.Source) types.TransactWriteItem {
	words := []string{"id", "\x00\x01\x1f", "\"\\\n\r\t", "ż\u2028\u2029🐢", "\xff\xfe", strings.Repeat("x", 300), "<&>'/"}
	values := func() item {
		all := item{}
		for range from.Below(4) {
			all[arbitrary.Pick(from, words...)] = from.Value(words)
		}
		return all
	}
	maybe := func() *string {
		if from.Below(3) == 0 {
			return nil
		}
		return aws.String(arbitrary.Pick(from, words...))
	}
	names := map[string]string{}
	for range from.Below(3) {
		names["#"+arbitrary.Pick(from, words...)] = arbitrary.Pick(from, words...)
	}
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	table := aws.String(arbitrary.Pick(from, words...))
	switch from.Below(4) {
	case 0:
		return types.TransactWriteItem{Put: &types.Put{TableName: table, Item: values(), ConditionExpression: maybe(),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values(), ReturnValuesOnConditionCheckFailure: all}}
	case 1:
		return types.TransactWriteItem{Update: &types.Update{TableName: table, Key: values(), ConditionExpression: maybe(), UpdateExpression: aws.String("SET"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values(), ReturnValuesOnConditionCheckFailure: all}}
	case 2:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: table, Key: values(), ConditionExpression: maybe(),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values(), ReturnValuesOnConditionCheckFailure: all}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: table, Key: values(), ConditionExpression: aws.String("c"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values(), ReturnValuesOnConditionCheckFailure: all}}
	}
}

// What is sent is never more than was counted, but for what is around all actions, and
// less only by what an action may have and these have not.
func TestSizesAreWhatTheSDKSends(t *testing.T) {
	const aroundAll, aroundOne = 200, 250
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		input := make([]byte, r.IntN(2000))
		for i := range input {
			input[i] = byte(r.UintN(256))
		}
		from := arbitrary.New(input)
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(strings.Repeat("t", 36)), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		sum := requests.Size{}
		for range 1 + r.IntN(10) {
			action := anyAction(from)
			in.TransactItems = append(in.TransactItems, action)
			sum = sum.Plus(requests.SizeOf(action))
		}
		sent := measure(t, in)
		require.LessOrEqual(t, sent, sum.Sent+aroundAll, "seed %d", seed)
		require.GreaterOrEqual(t, sent+aroundOne*sum.Actions, sum.Sent, "seed %d", seed)
	}
}

// Each character, many times: as it is, with a backslash, or by its number.
func TestWhatTheSDKEscapes(t *testing.T) {
	const n, about = 1000, 300
	texts := []string{"ż", "🐢", "\u2028", "\u2029", "\ufffd"}
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	for _, one := range texts {
		action := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: item{"k": text(strings.Repeat(one, n))}}}
		sent := measure(t, &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("t"), TransactItems: []types.TransactWriteItem{action}})
		require.LessOrEqual(t, sent, requests.SizeOf(action).Sent+about, "%q", one)
		if utf8.ValidString(one) { // of what is not, the SDK sends another text
			require.GreaterOrEqual(t, sent, requests.SizeOf(action).Sent-about, "%q", one)
		}
	}
}

func TestHowWhatIsSentIsCut(t *testing.T) {
	room := requests.Size{Actions: 4, Stored: 100, Sent: 1000}
	s := func(stored, sent int) requests.Size { return requests.Size{Actions: 1, Stored: stored, Sent: sent} }
	small := s(1, 1)
	for name, c := range map[string]struct {
		sizes []requests.Size
		runs  []int
	}{
		"nothing":                           {nil, nil},
		"one":                               {[]requests.Size{small}, []int{1}},
		"as many as fit":                    {[]requests.Size{small, small, small, small}, []int{4}},
		"one more":                          {[]requests.Size{small, small, small, small, small}, []int{4, 1}},
		"as much as fits as stored":         {[]requests.Size{s(50, 1), s(50, 1), s(50, 1)}, []int{2, 1}},
		"as much as fits as sent":           {[]requests.Size{s(1, 400), s(1, 600), s(1, 1)}, []int{2, 1}},
		"one that does not fit":             {[]requests.Size{s(101, 1)}, []int{1}},
		"one that does not fit, in between": {[]requests.Size{small, s(1, 1001), small, small}, []int{1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []int
			cut := requests.Cut(c.sizes, room, func(s requests.Size) requests.Size { return s })
			for _, run := range cut {
				runs = append(runs, len(run))
			}
			require.Equal(t, c.runs, runs)
			require.Equal(t, c.sizes, slices.Concat(cut...))
		})
	}
}

func TestHalves(t *testing.T) {
	errSize, errOther := errors.New("too large"), errors.New("other")
	isSize := func(err error) bool { return errors.Is(err, errSize) }
	var sent [][]int
	most := func(n int) func([]int) error {
		sent = nil
		return func(some []int) error {
			sent = append(sent, some)
			if len(some) > n {
				return errSize
			}
			return nil
		}
	}
	require.NoError(t, requests.Halve([]int{1, 2, 3, 4, 5}, isSize, most(2)))
	require.Equal(t, [][]int{{1, 2, 3, 4, 5}, {1, 2}, {3, 4, 5}, {3}, {4, 5}}, sent)
	require.NoError(t, requests.Halve([]int{1, 2}, isSize, most(2)))
	require.Equal(t, [][]int{{1, 2}}, sent)
	require.ErrorIs(t, requests.Halve([]int{1, 2, 3}, isSize, most(0)), errSize)
	require.Equal(t, [][]int{{1, 2, 3}, {1}}, sent, "what cannot be halved ends it")
	calls := 0
	require.ErrorIs(t, requests.Halve([]int{1, 2}, isSize, func([]int) error { calls++; return errOther }), errOther)
	require.Equal(t, 1, calls)
}

// A request that is too large is refused once, whatever the answer looks like, and is
// recognised; what is refused for anything else is not halved.
func TestARequestThatIsTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		is      bool
	}{
		"DynamoDB Local's answer":   {answer(413, `{"Message":""}`), true},
		"dynoxide's answer":         {answer(413, `Failed to buffer the request body: length limit exceeded`), true},
		"nothing but the status":    {answer(413, ``), true},
		"by name":                   {answer(400, `{"__type":"x#RequestEntityTooLargeException","message":"m"}`), true},
		"as stored":                 {answer(400, `{"__type":"x#ValidationException","message":"Transaction payload size cannot exceed 4MB."}`), true},
		"as read":                   {answer(400, `{"__type":"x#ValidationException","message":"Payload in response is too large.4440170"}`), true},
		"cancelled for nothing":     {answer(400, fmt.Sprintf(canceled, `{"Code":"None"},{"Code":"None"}`)), true},
		"cancelled for an action":   {answer(400, fmt.Sprintf(canceled, `{"Code":"None"},{"Code":"ValidationError","Message":"Item size"}`)), false},
		"invalid for another cause": {answer(400, `{"__type":"x#ValidationException","message":"m"}`), false},
		"denied":                    {answer(400, `{"__type":"x#AccessDeniedException","message":"the size of it"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			hits := 0
			db := served(t, func(w http.ResponseWriter, r *http.Request) { hits++; c.handler(w, r) })
			err := send(t, db, 10, time.Second)
			require.ErrorAs(t, err, new(*requests.TableError))
			require.Equal(t, 1, hits)
			require.Equal(t, c.is, requests.IsTooLarge(err), "%v", err)
		})
	}
	require.False(t, requests.IsTooLarge(nil))
	require.False(t, requests.IsTooLarge(&requests.NoAnswerError{Last: &requests.TableError{}, End: errMeasured}))
}

// What no engine takes is not sent: an engine may break the connection rather than
// read it to its end, and then nothing is known.
func TestWhatIsLargerThanAnyRequestIsNotSent(t *testing.T) {
	hits := 0
	db := served(t, func(w http.ResponseWriter, r *http.Request) { hits++; answer(200, `{}`)(w, r) })
	require.NoError(t, send(t, db, requests.MaxSent-1000, time.Minute))
	require.Equal(t, 1, hits)
	err := send(t, db, requests.MaxSent, time.Minute)
	require.ErrorAs(t, err, new(*requests.TableError))
	require.True(t, requests.IsTooLarge(err))
	require.ErrorContains(t, err, `table "t"`)
	require.Equal(t, 1, hits)
}

// send sends a transaction of one put with a text of so many bytes.
func send(t *testing.T, db *dynamodb.Client, bytes int, patience time.Duration) error {
	t.Helper()
	caller := &requests.Caller{Attempt: time.Minute, Patience: patience}
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("t"), TransactItems: []types.TransactWriteItem{{Put: &types.Put{
		TableName: aws.String("t"), Item: item{"k": text(strings.Repeat("v", bytes))},
	}}}}
	_, _, err := requests.Do(t.Context(), caller, requests.Request{Op: "TransactWriteItems", ID: "t", Tables: []string{"t"}}, in, db.TransactWriteItems)
	return err
}
