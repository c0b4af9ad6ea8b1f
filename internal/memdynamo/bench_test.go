package memdynamo_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/memdynamo"
)

// acquire is a lock row's update in all its length.
func acquire(key string, token int) types.Update {
	return types.Update{
		TableName: aws.String("locks"),
		Key:       map[string]types.AttributeValue{"key": str(key)},
		UpdateExpression: aws.String("SET #owner = :owner, #lease = :lease, #rvn = :rvn, #unit = :unit, #fence = :token, " +
			"#at = :at, #expires = :expires REMOVE #free"),
		ConditionExpression: aws.String("(attribute_not_exists(#key) OR #free = :one OR #unit = :unit) AND attribute_not_exists(#below) AND " +
			"(attribute_not_exists(#queue[0]) OR #queue[0] = :unit) AND (attribute_not_exists(#key) OR #fence < :token)"),
		ExpressionAttributeNames: map[string]string{
			"#owner": "ownerName", "#lease": "leaseDuration", "#rvn": "recordVersionNumber", "#unit": "unit", "#fence": "fence",
			"#at": "acquiredAt", "#expires": "expiresAt", "#free": "isReleased", "#key": "key", "#below": "below", "#queue": "queue",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner": str("host-5b0c52f0-8d3e-4d0e-9df1-2f1a64f3c7ab"), ":lease": str("20000"),
			":rvn": str("7f0c52f0-8d3e-4d0e-9df1-2f1a64f3c7ab"), ":unit": str("AAAAAAAAAAAAAAAAAAAAAA"),
			":token": num(strconv.Itoa(1_700_000_000_000_000 + token)), ":at": num("1700000000000"),
			":expires": num("1701000000"), ":one": str("1"),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func BenchmarkUpdateItem(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{})
	createTable(b, db, "locks", "key", "")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u := acquire("customer:"+strconv.Itoa(i%1000), i)
		_, err := db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransactWriteItems24(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{})
	createTable(b, db, "locks", "key", "")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		items := make([]types.TransactWriteItem, 24)
		for j := range items {
			u := acquire(fmt.Sprintf("customer:%d/account:%d", i%100, j), i)
			items[j].Update = &u
		}
		if _, err := db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatchExecuteStatement25(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{})
	createTable(b, db, "locks", "key", "")
	for j := range 25 {
		u := acquire(fmt.Sprintf("k%d", j), 1)
		if _, err := db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Update: &u}}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := &dynamodb.BatchExecuteStatementInput{}
		for j := range 25 {
			in.Statements = append(in.Statements, types.BatchStatementRequest{
				Statement:  aws.String(`UPDATE "locks" SET "recordVersionNumber"=? WHERE "key"=? AND "unit"=?`),
				Parameters: []types.AttributeValue{str("rvn"), str(fmt.Sprintf("k%d", j)), str("AAAAAAAAAAAAAAAAAAAAAA")},
			})
		}
		out, err := db.BatchExecuteStatement(context.Background(), in)
		if err != nil || out.Responses[24].Error != nil {
			b.Fatal(err, out)
		}
	}
}

func BenchmarkGetItem(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{})
	createTable(b, db, "locks", "key", "")
	u := acquire("k", 1)
	if _, err := db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &u}}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("locks"),
			Key: map[string]types.AttributeValue{"key": str("k")}, ConsistentRead: aws.Bool(true)}); err != nil {
			b.Fatal(err)
		}
	}
}
