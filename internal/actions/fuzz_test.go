package actions

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/memdynamo"
)

// FuzzValue: an item that is taken for plain, DynamoDB takes. What is not is tried
// before anything is decided.
func FuzzValue(f *testing.F) {
	for i := range byte(12) {
		f.Add([]byte{4, 8, 0, i, 1, 8, 1, i, 2, 8, 2, 9, i, 3, i}, "name", "text")
		f.Add([]byte{1, 8, 0, 1, i}, strings.Repeat("n", 255), "1e5")
	}
	for which := range byte(5) {
		for twice := range byte(2) {
			f.Add([]byte{0, which, 5, 0}, "text", []string{"text", "1"}[twice])
			f.Add([]byte{0, which}, "1", []string{"1", "1.0"}[twice])
		}
	}
	db := memdynamo.New(memdynamo.Config{})
	recordsOf(f, db, "things", types.ScalarAttributeTypeS)
	f.Fuzz(func(t *testing.T, input []byte, name, word string) {
		from := arbitrary.New(input)
		words := []string{name, word, "a", "1", "", "-0", "1e5", "007", "\xff"}
		item := from.Change(map[string]types.AttributeValue{"ID": textValue("1")}, words, words, "ID")
		switch from.Below(5) {
		case 1:
			item["N"] = &types.AttributeValueMemberN{Value: word}
		case 2:
			item["NS"] = &types.AttributeValueMemberNS{Value: []string{word, name}}
		case 3:
			item["SS"] = &types.AttributeValueMemberSS{Value: []string{word, name}}
		case 4:
			v := from.Value(words)
			for range from.Below(40) {
				v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
			}
			item["deep"] = v
		}
		if !IsPlain(item) {
			return
		}
		sent := onTheWire(&types.AttributeValueMemberM{Value: item}).(*types.AttributeValueMemberM)
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("things"), Item: sent.Value})
		require.NoError(t, err, "plain, and refused: %v", item)
	})
}

// onTheWire is a value as the SDK sends it: what is no text becomes text.
func onTheWire(v types.AttributeValue) types.AttributeValue {
	asText := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return textValue(asText(v.Value))
	case *types.AttributeValueMemberSS:
		sent := &types.AttributeValueMemberSS{}
		for _, s := range v.Value {
			sent.Value = append(sent.Value, asText(s))
		}
		return sent
	case *types.AttributeValueMemberL:
		sent := &types.AttributeValueMemberL{}
		for _, e := range v.Value {
			sent.Value = append(sent.Value, onTheWire(e))
		}
		return sent
	case *types.AttributeValueMemberM:
		sent := &types.AttributeValueMemberM{Value: values{}}
		for name, e := range v.Value {
			sent.Value[asText(name)] = onTheWire(e)
		}
		return sent
	}
	return v
}

func recordsOf(t testing.TB, db *memdynamo.DB, name string, of types.ScalarAttributeType) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: of}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
}

// FuzzNumber: two numbers have one text if, and only if, they are one key to
// DynamoDB. So a unit knows whether it writes a record twice.
func FuzzNumber(f *testing.F) {
	for _, pair := range [][2]string{{"1", "1.0"}, {"-0", "0"}, {"1e3", "1000"}, {"12345678901234567890123456789012345678", "1.2345678901234567890123456789012345678e37"},
		{"1E0001", "10"}, {"1", "2"}, {"1e-130", ".1e-129"}, {"+5", "05"}, {"1e125", "10e124"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 90 || len(b) > 90 {
			return // longer than NumberText looks at
		}
		db := memdynamo.New(memdynamo.Config{})
		recordsOf(t, db, "numbers", types.ScalarAttributeTypeN)
		for _, n := range []string{a, b} {
			item := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberN{Value: n}}
			if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("numbers"), Item: item}); err != nil {
				return
			}
		}
		require.Equal(t, len(db.Items("numbers")) == 1, NumberText(a) == NumberText(b), "%q and %q are %s and %s", a, b, NumberText(a), NumberText(b))
	})
}
