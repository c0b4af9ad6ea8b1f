package requests_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
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

func TestTheTablesTimeIsBetweenItsBounds(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		wall      time.Duration // passes by the wall clock while a minute passes
		low, high time.Duration // after noon, a minute after the header
	}{
		"both clocks go":                {wall: time.Minute, low: time.Minute, high: time.Minute + 3*time.Second},
		"the wall clock is set back":    {wall: -time.Hour, low: -time.Hour, high: time.Minute + 3*time.Second},
		"the wall clock is set forward": {wall: time.Hour, low: time.Minute, high: time.Hour + 3*time.Second},
		"the machine was suspended":     {wall: 2 * time.Minute, low: time.Minute, high: 2*time.Minute + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
				table := requests.NewTableTime(func() time.Time { return wall })
				low, high := table.Now()
				require.Zero(t, low)
				require.Zero(t, high)

				heard := table.Asked()
				time.Sleep(2 * time.Second)
				wall = wall.Add(2 * time.Second)
				heard(noon, 2*time.Second)
				time.Sleep(time.Minute)
				wall = wall.Add(c.wall)
				low, high = table.Now()
				require.Equal(t, noon.Add(c.low), low)
				require.Equal(t, noon.Add(c.high), high)

				table.Asked()(noon.Add(-time.Minute), 0) // a later header counts, whatever it says
				low, high = table.Now()
				require.Equal(t, noon.Add(-time.Minute), low)
				require.Equal(t, noon.Add(-time.Minute+time.Second), high)
			})
		})
	}
}

// A process may stand still between an answer and what it makes of it, by its own scheduler or with the
// whole machine: the header is as old as what was asked for.
func TestAnAnswerThatIsHeardLate(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, suspended := range map[string]time.Duration{"the goroutine stood still": 0, "the machine was suspended": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
				table := requests.NewTableTime(func() time.Time { return wall })
				passes := func(d time.Duration) { time.Sleep(d); wall = wall.Add(d) }
				heard := table.Asked()
				passes(time.Second)
				passes(time.Minute) // the answer is there
				wall = wall.Add(suspended)
				heard(noon, time.Second)
				passes(time.Second)
				is := noon.Add(time.Minute + suspended + time.Second)
				low, high := table.Now()
				require.False(t, low.After(is), "%v", low)
				require.False(t, high.Before(is), "%v", high)
				require.Equal(t, noon.Add(time.Second), low)
			})
		})
	}
}

// What can be no time of a server, nor be on a row, changes nothing.
func TestADateThatIsNoTimeIsPassedOver(t *testing.T) {
	table := requests.NewTableTime(time.Now)
	odd := []time.Time{{}, time.Unix(-1, 0), time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	for _, server := range odd {
		table.Asked()(server, 0)
		_, high := table.Now()
		require.Zero(t, high, "%v", server)
	}
	noon := time.Now()
	table.Asked()(noon, 0)
	for _, server := range odd {
		table.Asked()(server, 0)
		low, _ := table.Now()
		require.WithinRange(t, low, noon, noon.Add(time.Minute))
	}
}

// tables answers what creating a table asks.
type tables struct {
	create, describe, ttl error
	creating              int    // so many descriptions find it not active yet
	hash                  string // its hash key
	described             int
	attribute             string // on which TTL was turned on
}

func (s *tables) CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return &dynamodb.CreateTableOutput{}, s.create
}

func (s *tables) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	s.described++
	status := types.TableStatusActive
	if s.described <= s.creating {
		status = types.TableStatusCreating
	}
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{TableStatus: status, KeySchema: hashKey(s.hash)}}, s.describe
}

func (s *tables) UpdateTimeToLive(_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if s.ttl == nil && *in.TimeToLiveSpecification.Enabled {
		s.attribute = *in.TimeToLiveSpecification.AttributeName
	}
	return &dynamodb.UpdateTimeToLiveOutput{}, s.ttl
}

func hashKey(name string) []types.KeySchemaElement {
	return []types.KeySchemaElement{{AttributeName: aws.String(name), KeyType: types.KeyTypeHash}}
}

// A table is created once, whoever does it, and used only if it is as it should be.
func TestCreateTable(t *testing.T) {
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		db    tables
		fails string // what the error says; empty if there is none
		is    error
	}{
		"it is new":                      {tables{hash: "key"}, "", nil},
		"it takes a while":               {tables{hash: "key", creating: 7}, "", nil},
		"it is there":                    {tables{hash: "key", create: &types.ResourceInUseException{}, ttl: coded("ValidationException", "TimeToLive is already enabled")}, "", nil},
		"it is there, without an expiry": {tables{hash: "key", create: &types.ResourceInUseException{}}, "", nil},
		"it is there with another key":   {tables{hash: "id", create: &types.ResourceInUseException{}}, "another key schema: id HASH, not key HASH", nil},
		"it may not be created":          {tables{hash: "key", create: lost}, "CreateTable", lost},
		"it may not be seen":             {tables{hash: "key", describe: lost}, "DescribeTable", lost},
		"it may not have an expiry":      {tables{hash: "key", ttl: lost}, "UpdateTimeToLive", lost},
		"something else is enabled":      {tables{hash: "key", ttl: errors.New("dial: a firewall is already enabled")}, "UpdateTimeToLive", nil},
		"it is never ready":              {tables{hash: "key", creating: 1 << 30}, "DescribeTable", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := requests.CreateTable(t.Context(), &c.db, &dynamodb.CreateTableInput{
					TableName: aws.String("locks"), KeySchema: hashKey("key"),
				}, "expiresAt")
				require.LessOrEqual(t, time.Since(start), 5*time.Minute)
				if c.fails == "" {
					require.NoError(t, err)
					if c.db.ttl == nil {
						require.Equal(t, "expiresAt", c.db.attribute)
					}
					require.Equal(t, c.db.creating+1, c.db.described)
					return
				}
				require.ErrorContains(t, err, c.fails)
				var tableErr *requests.TableError
				require.ErrorAs(t, err, &tableErr)
				require.Equal(t, []string{"locks"}, tableErr.Tables)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
				require.Empty(t, c.db.attribute)
			})
		})
	}
}
