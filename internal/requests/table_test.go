package requests_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

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
