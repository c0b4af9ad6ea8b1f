package memdynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

func TestSmoke(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("locks"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
	})
	require.NoError(t, err)
	in := func() *dynamodb.UpdateItemInput {
		return &dynamodb.UpdateItemInput{
			TableName:                aws.String("locks"),
			Key:                      map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "a"}},
			UpdateExpression:         aws.String("SET #u = :u, fence = :f ADD n :one, below :e REMOVE isReleased"),
			ConditionExpression:      aws.String("(attribute_not_exists(#u) OR isReleased = :one) AND (attribute_not_exists(fence) OR fence < :f)"),
			ExpressionAttributeNames: map[string]string{"#u": "unit"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":u": &types.AttributeValueMemberS{Value: "me"}, ":f": &types.AttributeValueMemberN{Value: "1.50"},
				":one": &types.AttributeValueMemberN{Value: "1"},
				":e":   &types.AttributeValueMemberSS{Value: []string{"x", "b"}},
			},
			ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}
	}
	out, err := db.UpdateItem(t.Context(), in())
	require.NoError(t, err)
	require.Equal(t, &types.AttributeValueMemberN{Value: "1.5"}, out.Attributes["fence"])
	_, err = db.UpdateItem(t.Context(), in())
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.Item, 5)
	t.Log(err)
}
