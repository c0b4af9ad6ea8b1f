package locks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
)

// CreateTable creates the lock table that cfg describes, as [requests.CreateTable] does.
func CreateTable(ctx context.Context, db requests.Tables, cfg Config) error {
	if misuse.Nil(db) {
		return &ConfigError{"db", "is nil"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	return requests.CreateTable(ctx, db, &dynamodb.CreateTableInput{
		TableName:            aws.String(cfg.Table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(cfg.HashKey), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(cfg.HashKey), KeyType: types.KeyTypeHash}},
	}, lockrow.AttrExpires)
}
