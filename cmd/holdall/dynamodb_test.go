package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/newtable"
)

// serves runs the command, and returns a client of what it serves.
func serves(t *testing.T, args ...string) (client *dynamodb.Client, end func() (code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out := &lines{said: make(chan string, 10)}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"dynamodb", "--listen", "127.0.0.1:0"}, args...), &environment{stdout: out, stderr: out, getenv: func(string) string { return "" }})
	}()
	return engines.Client(strings.TrimSpace(<-out.said)), func() int { cancel(); return <-ended }
}

// lines tells what is written.
type lines struct{ said chan string }

func (l *lines) Write(b []byte) (int, error) { l.said <- string(b); return len(b), nil }

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

func TestDynamoDBOfWrongFlags(t *testing.T) {
	for args, says := range map[string]string{
		"--share 2":       "--share is 2: it must be from 0 to 1",
		"--share NaN":     "--share is NaN: it must be from 0 to 1",
		"--fault late":    "--fault needs --share",
		"--fault typhoon": `there is no "typhoon"; there are: answer-lost, `,
		"--latency -1s":   "--latency is -1s",
	} {
		cmd := dynamodbCommand(&app{})
		require.NoError(t, cmd.ParseFlags(strings.Fields(args)))
		require.ErrorContains(t, cmd.RunE(cmd, nil), says, args)
	}
}
