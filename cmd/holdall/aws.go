package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/holdall/holdall/lockset"
)

// connectAWS finds account and Region as every tool of AWS does. It sends nothing to
// DynamoDB.
func connectAWS(ctx context.Context, where connection) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(lockset.HTTPClient()),
		config.WithLogger(logging.Nop{}), // stderr is for what the command says
		config.WithSharedConfigProfile(where.profile), config.WithRegion(where.region),
	)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, wrongUsage(errors.New("no Region: give --region, or set AWS_REGION"))
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if where.endpoint != "" {
			o.BaseEndpoint = aws.String(where.endpoint)
		}
	}), nil
}
