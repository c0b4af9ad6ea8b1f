package lockset

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
)

// CreateTable creates the lock table that cfg describes, with on-demand billing
// and TTL on, and waits until it can be used. A table that is there already
// with the right keys is left as it is, but for TTL. It is meant for tests and
// demos: the table is not protected from deletion, so that they can remove it.
// docs/templates.md has tables for production, for Terraform and CloudFormation.
//
// Errors: *[ConfigError], *[TableError].
func CreateTable(ctx context.Context, db Tables, cfg Config) error {
	misuse.Context(ctx, "lockset", "CreateTable")
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
