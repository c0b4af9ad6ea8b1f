package requests_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// The server's time is in every answer, also in one that refuses.
func TestTheServersTimeIsHeard(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	const (
		carriedOut = `{"Responses":[{}],"Table":{},"TimeToLiveDescription":{}}`
		refused    = `{"__type":"x#ConditionalCheckFailedException","message":"m"}`
	)
	for name, c := range map[string]struct {
		status     int
		date, body string
		heard      []time.Time
	}{
		"carried out":         {200, noon.Format(http.TimeFormat), carriedOut, []time.Time{noon}},
		"refused":             {400, noon.Format(http.TimeFormat), refused, []time.Time{noon}},
		"it says no time":     {200, "", carriedOut, nil},
		"it refuses, no time": {400, "", refused, nil},
		"another's words":     {400, "noon", refused, nil},
	} {
		t.Run(name, func(t *testing.T) {
			db := served(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil
				if c.date != "" {
					w.Header().Set("Date", c.date)
				}
				answer(c.status, c.body)(w, r)
			})
			var heard []time.Time
			caller := &requests.Caller{DB: db, Attempt: time.Minute, Patience: 1, Dated: func() func(time.Time, time.Duration) {
				return func(server time.Time, took time.Duration) {
					require.Positive(t, took)
					heard = append(heard, server)
				}
			}}
			ctx := t.Context()
			for name, call := range map[string]func(){
				"GetItem":               func() { _, _ = caller.Get(ctx, "id", "a", key("1")) },
				"TransactGetItems":      func() { _, _ = caller.Read(ctx, "id", []types.TransactGetItem{get("a", "1")}) },
				"BatchExecuteStatement": func() { _ = caller.ExecuteOne(ctx, "id", "a", types.BatchStatementRequest{Statement: aws.String("s")}) },
				"Query": func() {
					_, _ = caller.Query(ctx, func() string { return "id" }, dynamodb.QueryInput{TableName: aws.String("a")})
				},
				"DescribeTable":      func() { _, _ = caller.DescribeTable(ctx, db, "id", "a") },
				"DescribeTimeToLive": func() { _, _ = caller.DescribeTimeToLive(ctx, db, "id", "a") },
			} {
				heard = nil
				call()
				require.Equal(t, c.heard, heard, name)
			}
		})
	}
}

// What never was an answer has no time.
func TestNoAnswerHasATime(t *testing.T) {
	db := served(t, broken(200, `{}`))
	for _, send := range []requests.Method[dynamodb.GetItemInput, dynamodb.GetItemOutput]{
		db.GetItem,
		func(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
			return nil, errors.New("none")
		},
	} {
		caller := &requests.Caller{Attempt: time.Minute, Patience: 1, Dated: func() func(time.Time, time.Duration) {
			return func(server time.Time, _ time.Duration) {
				require.WithinDuration(t, time.Now(), server, time.Hour, "of the half that arrived")
			}
		}}
		_, _, err := requests.Do(t.Context(), caller, requests.Request{Op: "GetItem"}, &dynamodb.GetItemInput{TableName: aws.String("a"), Key: key("1")}, send)
		require.ErrorAs(t, err, new(*requests.NoAnswerError))
	}
}

// A clock is wrong by no more than a slow answer leaves open.
func TestOffBy(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		shows     time.Duration // after noon, when the answer came
		took, off time.Duration
	}{
		"right":                    {0, 0, 0},
		"right, a slow answer":     {time.Minute, time.Minute, 0},
		"right, in between":        {time.Second, time.Minute, 0},
		"ahead":                    {time.Hour, 0, time.Hour},
		"ahead, a slow answer":     {time.Hour, time.Minute, 59 * time.Minute},
		"behind":                   {-time.Hour, 0, -time.Hour},
		"behind, whatever it took": {-time.Hour, time.Minute, -time.Hour},
	} {
		require.Equal(t, c.off, requests.OffBy(noon, noon.Add(c.shows), c.took), name)
	}
}
