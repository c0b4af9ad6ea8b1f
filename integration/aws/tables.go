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

// deleteAll deletes tables, of which some may be too new to be listed, and returns when none of them
// is listed any more. Others of the namespace are somebody else's: it returns those.
func deleteAll(ctx context.Context, db administration, namespace string, names []string) (others []string, err error) {
	ours := map[string]bool{}
	for _, name := range names {
		ours[name] = true
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
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
			return nil, err
		}
		listed, err := tablesIn(ctx, db, namespace)
		if err != nil {
			return nil, err
		}
		names, others = nil, nil
		for _, name := range listed {
			if ours[name] {
				names = append(names, name)
			} else {
				others = append(others, name)
			}
		}
		if len(names) == 0 {
			return others, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("deleting tables: %w", context.Cause(ctx))
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
