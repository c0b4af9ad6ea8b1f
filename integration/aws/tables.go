package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/newtable"
)

// administration is what is asked about tables as a whole; *dynamodb.Client has it.
type administration interface {
	newtable.Deleter
	ListTables(context.Context, *dynamodb.ListTablesInput, ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error)
}

// tablesIn lists the tables of a namespace.
func tablesIn(ctx context.Context, db administration, namespace string) (names []string, err error) {
	in := &dynamodb.ListTablesInput{}
	for {
		out, err := db.ListTables(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing tables: %w", err)
		}
		for _, name := range out.TableNames {
			if strings.HasPrefix(name, namespace) {
				names = append(names, name)
			}
		}
		if in.ExclusiveStartTableName = out.LastEvaluatedTableName; in.ExclusiveStartTableName == nil {
			return names, nil
		}
	}
}

// atATime is how many tables are deleted at a time: AWS changes 500 at most.
const atATime = 20

// deleteAll deletes every table of the namespace, and those that were asked for and may be
// too new to be listed, and returns when none is listed any more.
func deleteAll(ctx context.Context, db administration, namespace string, asked []string) (deleted int, err error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		names, err := tablesIn(ctx, db, namespace)
		if err != nil {
			return deleted, err
		}
		if len(names) == 0 && len(asked) == 0 {
			return deleted, nil
		}
		names, asked = append(names, asked...), nil
		var group errgroup.Group
		group.SetLimit(atATime)
		for _, name := range names {
			group.Go(func() error {
				if err := newtable.Delete(ctx, db, name); err != nil {
					return fmt.Errorf("deleting table %q: %w", name, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return deleted, err
		}
		deleted += len(names)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return deleted, fmt.Errorf("deleting tables: %w", context.Cause(ctx))
		}
	}
}

// policy is what the caller's role has to be allowed, and no more.
func policy(o options) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(o.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(o.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	var b strings.Builder
	for i, action := range actions {
		fmt.Fprintf(&b, "%s        \"dynamodb:%s\"", map[bool]string{true: ",\n"}[i > 0], action)
	}
	return fmt.Sprintf(`{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "TablesOfTheRun",
      "Effect": "Allow",
      "Action": [
%s
      ],
      "Resource": "arn:%s:dynamodb:%s:*:table/%s*"
    },
    {
      "Sid": "WhatIsLeft",
      "Effect": "Allow",
      "Action": "dynamodb:ListTables",
      "Resource": "*"
    }
  ]
}
`, b.String(), partition, o.Region, o.namespace())
}

// actions are the permissions behind what the suites send: a transaction needs those of its
// actions, and a statement has its own.
var actions = []string{
	"BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "CreateTable", "DeleteItem", "DeleteTable",
	"DescribeTable", "DescribeTimeToLive", "GetItem", "PartiQLDelete", "PartiQLUpdate",
	"PutItem", "PutResourcePolicy", "Query", "Scan", "UpdateItem", "UpdateTimeToLive",
}
