package memdynamo

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// shapes are, by input type, what is asked of its fields.
var shapes = map[reflect.Type]*shape{}

type shape struct {
	required []field // the client itself sends nothing without them
	// A request that uses a field the engine does not implement is refused:
	// silence about a parameter would make tests pass that must not.
	unknown []field
	// Where ReturnConsumedCapacity and TableName are, if the input has them.
	capacity, table []int
}

type field struct {
	index int
	name  string
}

// implements says which fields of an input the engine knows; the first ones are required.
func implements[T any](required int, names string) {
	t := reflect.TypeFor[T]()
	s := new(shape)
	known := strings.Fields(names)
	for _, name := range known {
		f, ok := t.FieldByName(name)
		if !ok {
			panic(t.Name() + " has no field " + name)
		}
		if len(s.required) < required {
			s.required = append(s.required, field{f.Index[0], name})
		}
		switch name {
		case "ReturnConsumedCapacity":
			s.capacity = f.Index
		case "TableName":
			s.table = f.Index
		}
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !slices.Contains(known, f.Name) {
			s.unknown = append(s.unknown, field{i, f.Name})
		}
	}
	shapes[t] = s
}

const (
	conditioned = " ConditionExpression ExpressionAttributeNames ExpressionAttributeValues " +
		"ReturnValuesOnConditionCheckFailure"
	written   = conditioned + " ReturnConsumedCapacity ReturnItemCollectionMetrics ReturnValues"
	projected = " ExpressionAttributeNames ProjectionExpression"
	paged     = projected + " ConsistentRead ExclusiveStartKey ExpressionAttributeValues FilterExpression IndexName " +
		"Limit ReturnConsumedCapacity Select"
)

func init() {
	implements[dynamodb.GetItemInput](2, "Key TableName ConsistentRead ReturnConsumedCapacity"+projected)
	implements[dynamodb.PutItemInput](2, "Item TableName"+written)
	implements[dynamodb.UpdateItemInput](2, "Key TableName UpdateExpression"+written)
	implements[dynamodb.DeleteItemInput](2, "Key TableName"+written)
	implements[dynamodb.QueryInput](1, "TableName KeyConditionExpression ScanIndexForward"+paged)
	implements[dynamodb.ScanInput](1, "TableName Segment TotalSegments"+paged)
	implements[dynamodb.BatchGetItemInput](1, "RequestItems ReturnConsumedCapacity")
	implements[types.KeysAndAttributes](0, "Keys ConsistentRead"+projected)
	implements[dynamodb.BatchWriteItemInput](1, "RequestItems ReturnConsumedCapacity ReturnItemCollectionMetrics")
	implements[types.WriteRequest](0, "DeleteRequest PutRequest")
	implements[types.DeleteRequest](1, "Key")
	implements[types.PutRequest](1, "Item")
	implements[dynamodb.TransactWriteItemsInput](1, "TransactItems ClientRequestToken ReturnConsumedCapacity "+
		"ReturnItemCollectionMetrics")
	implements[types.TransactWriteItem](0, "ConditionCheck Delete Put Update")
	implements[types.Put](2, "Item TableName"+conditioned)
	implements[types.Update](3, "Key TableName UpdateExpression"+conditioned)
	implements[types.Delete](2, "Key TableName"+conditioned)
	implements[types.ConditionCheck](3, "Key TableName ConditionExpression"+conditioned)
	implements[dynamodb.TransactGetItemsInput](1, "TransactItems ReturnConsumedCapacity")
	implements[types.TransactGetItem](1, "Get")
	implements[types.Get](2, "Key TableName"+projected)
	implements[dynamodb.BatchExecuteStatementInput](1, "Statements ReturnConsumedCapacity")
	implements[types.BatchStatementRequest](1, "Statement ConsistentRead Parameters "+
		"ReturnValuesOnConditionCheckFailure")
	implements[dynamodb.CreateTableInput](3, "TableName KeySchema AttributeDefinitions BillingMode "+
		"DeletionProtectionEnabled GlobalSecondaryIndexes LocalSecondaryIndexes ProvisionedThroughput")
	implements[types.GlobalSecondaryIndex](3, "IndexName KeySchema Projection ProvisionedThroughput")
	implements[types.LocalSecondaryIndex](3, "IndexName KeySchema Projection")
	implements[dynamodb.DescribeTableInput](1, "TableName")
	implements[dynamodb.DeleteTableInput](1, "TableName")
	implements[dynamodb.ListTablesInput](0, "ExclusiveStartTableName Limit")
	implements[dynamodb.UpdateTimeToLiveInput](2, "TableName TimeToLiveSpecification")
	implements[types.TimeToLiveSpecification](2, "Enabled AttributeName")
	implements[dynamodb.DescribeTimeToLiveInput](1, "TableName")
}

// check refuses an input, or a part of one, for its fields. context is where a
// missing one is; without it, the input.
func check(context string, in any) error {
	v := reflect.ValueOf(in).Elem()
	s := shapes[v.Type()]
	var missing smithy.InvalidParamsError
	for _, f := range s.required {
		if v.Field(f.index).IsNil() {
			missing.Context = cmp.Or(context, v.Type().Name())
			missing.Add(smithy.NewErrParamRequired(f.name))
		}
	}
	if missing.Len() > 0 {
		return missing
	}
	for _, f := range s.unknown {
		if !v.Field(f.index).IsZero() {
			return validation("%s.%s is not implemented by this engine", v.Type().Name(), f.name)
		}
	}
	if s.capacity != nil {
		want := types.ReturnConsumedCapacity(v.FieldByIndex(s.capacity).String())
		if err := oneOf(want, "returnConsumedCapacity", types.ReturnConsumedCapacityIndexes,
			types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityNone); err != nil {
			return err
		}
	}
	if s.table != nil {
		return checkResourceName(v.FieldByIndex(s.table).Elem().String(), "tableName")
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
