package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func TestTheGuard(t *testing.T) {
	const within = "x-holdall-aws-"
	for name, c := range map[string]struct {
		operation, body string
		actions         int // 0: it is refused
	}{
		"a read":                        {"GetItem", `{"TableName":"x-holdall-aws-a"}`, 1},
		"of another table":              {"GetItem", `{"TableName":"x-orders"}`, 0},
		"by the ARN of another":         {"GetItem", `{"TableName":"arn:aws:dynamodb:eu-west-1:1:table/x-holdall-aws-a"}`, 0},
		"a transaction":                 {"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"x-holdall-aws-a"}},{"ConditionCheck":{"TableName":"x-holdall-aws-b"}}]}`, 2},
		"with one action elsewhere":     {"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"x-holdall-aws-a"}},{"Delete":{"TableName":"orders"}}]}`, 0},
		"with one that names no table":  {"TransactGetItems", `{"TransactItems":[{"Get":{}}]}`, 0},
		"with none":                     {"TransactGetItems", `{"TransactItems":[]}`, 1},
		"a batch":                       {"BatchWriteItem", `{"RequestItems":{"x-holdall-aws-a":[]}}`, 1},
		"of three":                      {"BatchWriteItem", `{"RequestItems":{"x-holdall-aws-a":[{},{}],"x-holdall-aws-b":[{}]}}`, 3},
		"of two keys":                   {"BatchGetItem", `{"RequestItems":{"x-holdall-aws-a":{"Keys":[{},{}]}}}`, 2},
		"of which a part is elsewhere":  {"BatchGetItem", `{"RequestItems":{"x-holdall-aws-a":{},"orders":{}}}`, 0},
		"statements":                    {"BatchExecuteStatement", `{"Statements":[{"Statement":"UPDATE \"x-holdall-aws-a\" SET \"b\"=?"},{"Statement":"delete from \"x-holdall-aws-a\" where"},{"Statement":"SELECT * FROM \"x-holdall-aws-a\".\"i\""}]}`, 3},
		"one of which is elsewhere":     {"BatchExecuteStatement", `{"Statements":[{"Statement":"UPDATE \"x-holdall-aws-a\" SET"},{"Statement":"DELETE FROM \"orders\" WHERE \"a\"='FROM \"x-holdall-aws-a\"'"}]}`, 0},
		"one that names no table so":    {"BatchExecuteStatement", `{"Statements":[{"Statement":"UPDATE orders SET a=1"}]}`, 0},
		"another's behind a comment":    {"BatchExecuteStatement", `{"Statements":[{"Statement":"-- UPDATE \"x-holdall-aws-a\"\nDELETE FROM \"orders\""}]}`, 0},
		"a table":                       {"CreateTable", `{"TableName":"x-holdall-aws-a","BillingMode":"PAY_PER_REQUEST"}`, 1},
		"one that costs by the hour":    {"CreateTable", `{"TableName":"x-holdall-aws-a","ProvisionedThroughput":{"ReadCapacityUnits":40000}}`, 0},
		"another's is deleted":          {"DeleteTable", `{"TableName":"x-orders"}`, 0},
		"a policy":                      {"PutResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:eu-west-1:1:table/x-holdall-aws-a"}`, 1},
		"another table's":               {"PutResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:eu-west-1:1:table/orders"}`, 0},
		"of something else":             {"PutResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:eu-west-1:1:x-holdall-aws-a"}`, 0},
		"an operation not for suites":   {"UpdateTable", `{"TableName":"x-holdall-aws-a"}`, 0},
		"a statement by itself":         {"ExecuteStatement", `{"Statement":"DELETE FROM \"orders\""}`, 0},
		"what is no JSON":               {"GetItem", `{`, 0},
		"without a table":               {"GetItem", `{}`, 0},
		"a transaction without actions": {"TransactWriteItems", `{}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, actions, err := admit(c.operation, []byte(c.body), within)
			require.Equal(t, c.actions, actions, "%v", err)
			require.Equal(t, c.actions == 0, err != nil)
		})
	}
}

// The estimate is that of DynamoDB's rules, for what is sent and answered.
func TestTheEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		operation               string
		actions, sent, received int
		want                    usage
	}{
		"a small write":         {"UpdateItem", 1, 700, 100, usage{Write: 1}},
		"a large one":           {"PutItem", 1, 2049, 100, usage{Write: 3}},
		"a batch of small ones": {"BatchWriteItem", 25, 2000, 10, usage{Write: 26}},
		"a transaction":         {"TransactWriteItems", 4, 1000, 10, usage{Write: 8}},
		"a read":                {"GetItem", 1, 100, 0, usage{Read: 1}},
		"a larger one":          {"Scan", 1, 100, 9000, usage{Read: 3}},
		"a transactional read":  {"TransactGetItems", 3, 100, 500, usage{Read: 6}},
		"what concerns a table": {"DescribeTable", 1, 100, 5000, usage{}},
	} {
		require.Equal(t, c.want, estimate(c.operation, c.actions, c.sent, c.received), name)
	}
}

// The policy allows each operation that goes through, and the listing, on tables of the run alone.
func TestThePolicy(t *testing.T) {
	var p struct {
		Statement []struct {
			Action   any
			Resource string
		}
	}
	for region, partition := range map[string]string{"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"} {
		require.NoError(t, json.Unmarshal([]byte(policy(options{Region: region, Prefix: "try-"})), &p))
		require.Len(t, p.Statement, 2)
		require.Equal(t, "arn:"+partition+":dynamodb:"+region+":*:table/try-holdall-aws-*", p.Statement[0].Resource)
		require.Equal(t, "dynamodb:ListTables", p.Statement[1].Action)
	}
	var allowed []string
	for _, a := range p.Statement[0].Action.([]any) {
		allowed = append(allowed, strings.TrimPrefix(a.(string), "dynamodb:"))
	}
	for operation := range operations {
		switch operation { // of which IAM asks for what is in them
		case "TransactGetItems", "TransactWriteItems", "BatchExecuteStatement":
			continue
		}
		require.Contains(t, allowed, operation)
	}
	for _, inside := range []string{"ConditionCheckItem", "PartiQLUpdate", "PartiQLDelete"} {
		require.Contains(t, allowed, inside)
	}
	require.True(t, slices.IsSorted(allowed))
}

// docs/aws.md shows the policy, and says what a run is expected to need.
func TestThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/aws.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```json\n"+policy(options{Region: "eu-west-1", Prefix: "try-"})+"```\n")
	o := options{Region: "eu-west-1", Prefix: "try-", Requests: requestLimit, Units: unitLimit, WritePrice: writePrice, ReadPrice: readPrice}
	require.Contains(t, string(page), "```\n"+plan(o, target{Kind: engines.KindAWS, Region: "eu-west-1", Caller: "123456789012, as arn:aws:iam::123456789012:user/you"}, suites)+"```\n")
}
