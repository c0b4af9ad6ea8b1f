package main

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/newtable"
)

// serves runs the command, and returns a client of what it serves.
func serves(t *testing.T, args ...string) (client *dynamodb.Client, end func()) {
	t.Helper()
	o := begin(t, exec.Command(program, append([]string{"dynamodb", "--listen", "127.0.0.1:0"}, args...)...))
	return engines.Client(next(t, o.lines)), func() {
		require.NoError(t, o.Process.Signal(os.Interrupt))
		o.ended(t, exitDone)
	}
}

func TestDynamoDBInMemory(t *testing.T) {
	client, end := serves(t)
	_, err := client.CreateTable(t.Context(), newtable.Input("table", "key"))
	require.NoError(t, err)
	all, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"table"}, all.TableNames)
	end()
	_, err = client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.Error(t, err)
}

// The same seed has the same faults happen.
func TestFaultsOfDynamoDB(t *testing.T) {
	happened := func(seed string) (all []bool) {
		client, end := serves(t, "--share", "0.5", "--fault", "throttled", "--seed", seed)
		defer end()
		for range 40 {
			_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "k"}}})
			var coded interface{ ErrorCode() string }
			require.True(t, errors.As(err, &coded), err)
			all = append(all, coded.ErrorCode() == "ThrottlingException")
		}
		return all
	}
	first := happened("7")
	require.Contains(t, first, true)
	require.Contains(t, first, false)
	require.Equal(t, first, happened("7"))
	require.NotEqual(t, first, happened("8"))
}

// A fault that is ordered happens to the request that is meant, once.
func TestOrdersForFaults(t *testing.T) {
	client, end := serves(t)
	defer end()
	_, err := client.CreateTable(t.Context(), newtable.Input("table", "key"))
	require.NoError(t, err)
	faults := *client.Options().BaseEndpoint + "/faults"
	order := func(form string) (code int, text string) {
		values, err := url.ParseQuery(form)
		require.NoError(t, err)
		answer, err := http.PostForm(faults, values)
		return answered(t, answer, err)
	}
	planned := func() string {
		answer, err := http.Get(faults)
		_, text := answered(t, answer, err)
		return text
	}
	for _, form := range []string{"fault=throttled&op=PutItem&n=3", "fault=conflict&op=PutItem", "fault=conflict", "fault=throttled&op=PutItem&n=3"} {
		code, said := order(form)
		require.Equal(t, http.StatusOK, code, said)
	}
	require.Equal(t, "throttled\nconflict\nconflict\nthrottled\n", planned())

	key := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "k"}}
	var happened []string
	for range 6 {
		_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("table"), Key: key})
		require.NoError(t, err, "neither was for reads")
		_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("table"), Item: key})
		var coded interface{ ErrorCode() string }
		if errors.As(err, &coded) {
			happened = append(happened, coded.ErrorCode())
		} else {
			happened = append(happened, "")
		}
	}
	require.Equal(t, []string{"TransactionConflictException", "TransactionConflictException", "ThrottlingException", "ThrottlingException", "", ""}, happened)
	require.Empty(t, planned())

	for form, says := range map[string]string{
		"":                             `fault: there is no ""; there are: answer-lost, `,
		"fault=typhoon":                `there is no "typhoon"`,
		"fault=late&op=putItem":        `faults do not happen to "putItem", but to: BatchExecuteStatement, `,
		"fault=late&op=CreateTable":    `faults do not happen to "CreateTable"`,
		"fault=conflict&op=Scan":       "Scan meets no conflict",
		"fault=late&n=0":               `n is "0": it must be a whole number from 1`,
		"fault=late&n=one":             `n is "one"`,
		"fault=late&operation=PutItem": `there is no field "operation"; there are: fault, op, n`,
	} {
		code, said := order(form)
		require.Equal(t, http.StatusBadRequest, code, form)
		require.Contains(t, said, says, form)
	}
	require.Empty(t, planned())
	for _, op := range operations {
		require.NotPanics(t, func() { holdalltest.Op(op) })
	}
}
