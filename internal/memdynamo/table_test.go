package memdynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

func TestTables(t *testing.T) {
	ctx := context.Background()
	created := time.Unix(1_700_000_000, 0)
	db := newDB(t, memdynamo.Config{Now: func() time.Time { return created }})
	put(t, db, "rows", item{"k": str("a"), "n": num("1"), "v": str("longer")})
	put(t, db, "rows", item{"k": str("b"), "n": num("1")})
	put(t, db, "rows", item{"k": str("a"), "n": num("1")})
	_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("rows"), Key: item{"k": str("b"), "n": num("1")}})
	require.NoError(t, err)
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("rows")})
	require.NoError(t, err)
	d := out.Table
	require.Equal(t, types.TableStatusActive, d.TableStatus)
	require.Equal(t, created, *d.CreationDateTime)
	require.Equal(t, []int64{1, 5}, []int64{*d.ItemCount, *d.TableSizeBytes})
	require.Equal(t, types.BillingModePayPerRequest, d.BillingModeSummary.BillingMode)
	require.Equal(t, []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("n"), KeyType: types.KeyTypeRange}}, d.KeySchema)
	require.Equal(t, []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("n"), AttributeType: types.ScalarAttributeTypeN}}, d.AttributeDefinitions)

	names, err := db.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
	require.NoError(t, err)
	require.Equal(t, []string{"items"}, names.TableNames)
	names, err = db.ListTables(ctx, &dynamodb.ListTablesInput{ExclusiveStartTableName: names.LastEvaluatedTableName})
	require.NoError(t, err)
	require.Equal(t, []string{"rows"}, names.TableNames)
	require.Nil(t, names.LastEvaluatedTableName)

	gone, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("rows")})
	require.NoError(t, err)
	require.Equal(t, types.TableStatusDeleting, gone.TableDescription.TableStatus)
	var none *types.ResourceNotFoundException
	_, err = db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("rows")})
	require.ErrorAs(t, err, &none)
	require.Nil(t, db.Items("rows"))
	createTable(t, db, "rows", "k", "n")
	require.Empty(t, db.Items("rows"))
}

func TestCreateTableRefused(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	valid := func() *dynamodb.CreateTableInput {
		return &dynamodb.CreateTableInput{TableName: aws.String("new"), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}}}
	}
	define := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	element := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	for want, change := range map[string]func(*dynamodb.CreateTableInput){
		"length greater than or equal to 3":   func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") },
		"regular expression pattern":          func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("a/bc") },
		"not defined in AttributeDefinitions": func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeName = aws.String("x") },
		"Number of attributes in KeySchema does not exactly": func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, define("x", "S"))
		},
		"enum value set: [B, N, S]":                               func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "SS" },
		"The first KeySchemaElement is not a HASH key type":       func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = types.KeyTypeRange },
		"The second KeySchemaElement is not a RANGE key type":     func(in *dynamodb.CreateTableInput) { in.KeySchema = append(in.KeySchema, element("k", "HASH")) },
		"have the same name":                                      func(in *dynamodb.CreateTableInput) { in.KeySchema = append(in.KeySchema, element("k", "RANGE")) },
		"when BillingMode is PROVISIONED":                         func(in *dynamodb.CreateTableInput) { in.BillingMode = "" },
		"when BillingMode is PAY_PER_REQUEST":                     func(in *dynamodb.CreateTableInput) { in.ProvisionedThroughput = &types.ProvisionedThroughput{} },
		"CreateTableInput.StreamSpecification is not implemented": func(in *dynamodb.CreateTableInput) { in.StreamSpecification = &types.StreamSpecification{} },
	} {
		in := valid()
		change(in)
		_, err := db.CreateTable(ctx, in)
		require.Contains(t, refusal(t, err), want)
	}
	in := valid()
	in.BillingMode, in.DeletionProtectionEnabled = types.BillingModeProvisioned, aws.Bool(true)
	in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)}
	out, err := db.CreateTable(ctx, in)
	require.NoError(t, err)
	require.Equal(t, types.TableStatusCreating, out.TableDescription.TableStatus)
	require.Equal(t, int64(6), *out.TableDescription.ProvisionedThroughput.WriteCapacityUnits)
	_, err = db.CreateTable(ctx, valid())
	var taken *types.ResourceInUseException
	require.ErrorAs(t, err, &taken)
	_, err = db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("new")})
	require.Contains(t, refusal(t, err), "protected against deletion")
}

func TestTimeToLive(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	set := func(name string, on bool) error {
		_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("items"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &name, Enabled: &on}})
		return err
	}
	describe := func() *types.TimeToLiveDescription {
		out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("items")})
		require.NoError(t, err)
		return out.TimeToLiveDescription
	}
	now := time.Unix(1_700_000_000, 0)
	for k, v := range map[string]types.AttributeValue{
		"past": num("1699999999"), "now": num("1700000000"), "fraction": num("1699999999.5"), "text": str("1"), "old": num("1"), "future": num("1700000001"), "none": null(),
	} {
		put(t, db, "items", item{"k": str(k), "expires": v})
	}
	require.Zero(t, db.Expire(now), "nothing expires without TTL")
	require.Equal(t, types.TimeToLiveStatusDisabled, describe().TimeToLiveStatus)
	require.Contains(t, refusal(t, set("expires", false)), "already disabled")
	require.NoError(t, set("expires", true))
	require.Contains(t, refusal(t, set("expires", true)), "already enabled")
	require.Contains(t, refusal(t, set("other", true)), "different AttributeName")
	require.Equal(t, &types.TimeToLiveDescription{AttributeName: aws.String("expires"), TimeToLiveStatus: types.TimeToLiveStatusEnabled}, describe())
	require.Equal(t, 2, db.Expire(now))
	require.Zero(t, db.Expire(now))
	require.Nil(t, read(t, db, "past"))
	require.Nil(t, read(t, db, "fraction"))
	require.Len(t, db.Items("items"), 5)
	require.NoError(t, set("expires", false))
	require.Zero(t, db.Expire(now.Add(time.Hour)))
}
