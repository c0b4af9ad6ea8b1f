package memdynamo

import (
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// unknownFields are, by input type, the fields the engine does not implement.
// A request that uses one is refused: silence about a parameter would make
// tests pass that must not.
var unknownFields = map[reflect.Type][]field{}

type field struct {
	index int
	name  string
}

func implements[T any](names ...string) {
	t := reflect.TypeFor[T]()
	fields := []field{}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !slices.Contains(names, f.Name) {
			fields = append(fields, field{i, f.Name})
		}
	}
	unknownFields[t] = fields
}

func init() {
	implements[dynamodb.GetItemInput]("Key", "TableName", "ConsistentRead", "ExpressionAttributeNames",
		"ProjectionExpression", "ReturnConsumedCapacity")
	implements[dynamodb.PutItemInput]("Item", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValues",
		"ReturnValuesOnConditionCheckFailure")
	implements[dynamodb.UpdateItemInput]("Key", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValues",
		"ReturnValuesOnConditionCheckFailure", "UpdateExpression")
	implements[dynamodb.DeleteItemInput]("Key", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValues",
		"ReturnValuesOnConditionCheckFailure")
	implements[dynamodb.QueryInput]("TableName", "ConsistentRead", "ExclusiveStartKey", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "FilterExpression", "IndexName", "KeyConditionExpression", "Limit",
		"ProjectionExpression", "ReturnConsumedCapacity", "ScanIndexForward", "Select")
	implements[dynamodb.ScanInput]("TableName", "ConsistentRead", "ExclusiveStartKey", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "FilterExpression", "IndexName", "Limit", "ProjectionExpression",
		"ReturnConsumedCapacity", "Segment", "Select", "TotalSegments")
	implements[dynamodb.BatchGetItemInput]("RequestItems", "ReturnConsumedCapacity")
	implements[types.KeysAndAttributes]("Keys", "ConsistentRead", "ExpressionAttributeNames", "ProjectionExpression")
	implements[dynamodb.BatchWriteItemInput]("RequestItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics")
	implements[types.WriteRequest]("DeleteRequest", "PutRequest")
	implements[types.DeleteRequest]("Key")
	implements[types.PutRequest]("Item")
	implements[dynamodb.TransactWriteItemsInput]("TransactItems", "ClientRequestToken", "ReturnConsumedCapacity",
		"ReturnItemCollectionMetrics")
	implements[types.TransactWriteItem]("ConditionCheck", "Delete", "Put", "Update")
	implements[types.Put]("Item", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure")
	implements[types.Update]("Key", "TableName", "UpdateExpression", "ConditionExpression",
		"ExpressionAttributeNames", "ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure")
	implements[types.Delete]("Key", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure")
	implements[types.ConditionCheck]("Key", "TableName", "ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure")
	implements[dynamodb.TransactGetItemsInput]("TransactItems", "ReturnConsumedCapacity")
	implements[types.TransactGetItem]("Get")
	implements[types.Get]("Key", "TableName", "ExpressionAttributeNames", "ProjectionExpression")
	implements[dynamodb.BatchExecuteStatementInput]("Statements", "ReturnConsumedCapacity")
	implements[types.BatchStatementRequest]("Statement", "ConsistentRead", "Parameters",
		"ReturnValuesOnConditionCheckFailure")
	implements[dynamodb.CreateTableInput]("TableName", "AttributeDefinitions", "BillingMode",
		"DeletionProtectionEnabled", "GlobalSecondaryIndexes", "KeySchema", "LocalSecondaryIndexes", "ProvisionedThroughput")
	implements[types.GlobalSecondaryIndex]("IndexName", "KeySchema", "Projection", "ProvisionedThroughput")
	implements[types.LocalSecondaryIndex]("IndexName", "KeySchema", "Projection")
	implements[dynamodb.DescribeTableInput]("TableName")
	implements[dynamodb.DeleteTableInput]("TableName")
	implements[dynamodb.ListTablesInput]("ExclusiveStartTableName", "Limit")
	implements[dynamodb.UpdateTimeToLiveInput]("TableName", "TimeToLiveSpecification")
	implements[dynamodb.DescribeTimeToLiveInput]("TableName")
}

// known refuses an input that sets a field the engine does not implement.
func known[T any](in *T) error {
	v := reflect.ValueOf(in).Elem()
	for _, f := range unknownFields[v.Type()] {
		if !v.Field(f.index).IsZero() {
			return validation("%s.%s is not implemented by this engine", v.Type().Name(), f.name)
		}
	}
	return nil
}

// oneOf refuses a value that is none of an enumeration's; none given is fine.
func oneOf[E ~string](v E, field string, allowed ...E) error {
	if v == "" || slices.Contains(allowed, v) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return constraint(v, field, "satisfy enum value set: ["+strings.Join(names, ", ")+"]")
}
