package faults

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestPermissions(t *testing.T) {
	name := aws.String
	for _, c := range []struct {
		in   any
		want []Permission
	}{
		{&dynamodb.GetItemInput{TableName: name("a")}, []Permission{{"a", "GetItem"}}},
		{&dynamodb.PutItemInput{TableName: name("a")}, []Permission{{"a", "PutItem"}}},
		{&dynamodb.UpdateItemInput{TableName: name("a")}, []Permission{{"a", "UpdateItem"}}},
		{&dynamodb.DeleteItemInput{TableName: name("a")}, []Permission{{"a", "DeleteItem"}}},
		{&dynamodb.QueryInput{TableName: name("a")}, []Permission{{"a", "Query"}}},
		{&dynamodb.ScanInput{TableName: name("a")}, []Permission{{"a", "Scan"}}},
		{&dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: name("a")}}, {}, {Get: &types.Get{TableName: name("b")}},
		}}, []Permission{{"a", "GetItem"}, {"b", "GetItem"}}},
		{&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: name("a")}}, {Update: &types.Update{TableName: name("b")}},
			{Delete: &types.Delete{TableName: name("c")}}, {ConditionCheck: &types.ConditionCheck{TableName: name("d")}},
		}}, []Permission{{"a", "PutItem"}, {"b", "UpdateItem"}, {"c", "DeleteItem"}, {"d", "ConditionCheckItem"}}},
		{&dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: name(`UPDATE "a" SET "x"=? WHERE "key"=?`)}, {Statement: name(`delete from "b" WHERE "key"=?`)},
			{Statement: name(`INSERT INTO "c" VALUE {}`)}, {Statement: name(`SELECT * FROM "d" WHERE "key"=?`)},
		}}, []Permission{{"a", "PartiQLUpdate"}, {"b", "PartiQLDelete"}, {"c", "PartiQLInsert"}, {"d", "PartiQLSelect"}}},
	} {
		require.Equal(t, c.want, Permissions(c.in))
	}
	deny := DenyUnless(func(p Permission) bool { return p != Permission{"b", "UpdateItem"} })
	require.Equal(t, Passed, deny(Call{Input: &dynamodb.UpdateItemInput{TableName: name("a")}}).Kind)
	require.Equal(t, Denied, deny(Call{Input: &dynamodb.UpdateItemInput{TableName: name("b")}}).Kind)
}
