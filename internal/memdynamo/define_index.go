package memdynamo

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (t *table) addGlobal(in *types.GlobalSecondaryIndex) error {
	const field = "globalSecondaryIndexes.1.member."
	if err := check("CreateTableInput.GlobalSecondaryIndexes", in); err != nil {
		return err
	}
	ix, err := t.newIndex(*in.IndexName, in.KeySchema, in.Projection, field)
	if err != nil {
		return err
	}
	ix.global = true
	switch p := in.ProvisionedThroughput; {
	case t.billing == types.BillingModePayPerRequest && p != nil:
		return validation(invalidParameter+"ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST", ix.name)
	case t.billing == types.BillingModeProvisioned && p == nil:
		return validation(invalidParameter+"ProvisionedThroughput must be specified for index: %s", ix.name)
	case p != nil:
		if ix.throughput, err = newThroughput(p, field+"provisionedThroughput"); err != nil {
			return err
		}
	}
	t.indexes = append(t.indexes, ix)
	return nil
}

func (t *table) addLocal(in *types.LocalSecondaryIndex) error {
	if err := check("CreateTableInput.LocalSecondaryIndexes", in); err != nil {
		return err
	}
	ix, err := t.newIndex(*in.IndexName, in.KeySchema, in.Projection, "localSecondaryIndexes.1.member.")
	switch {
	case err != nil:
		return err
	case t.rng.name == "":
		return validation(invalidParameter + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
	case ix.hash != t.hash:
		return validation(invalidParameter+"Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s",
			ix.name, ix.hash.name, t.hash.name)
	case ix.rng.name == "":
		return validation(invalidParameter+"Index KeySchema does not have a range key for index: %s", ix.name)
	}
	t.indexes = append(t.indexes, ix)
	return nil
}

// newIndex is what global and local indexes have in common.
func (t *table) newIndex(name string, keys []types.KeySchemaElement, p *types.Projection, field string) (*index, error) {
	if err := checkResourceName(name, field+"indexName"); err != nil {
		return nil, err
	}
	for _, ix := range t.indexes {
		if ix.name == name {
			return nil, validation(invalidParameter+"Duplicate index name: %s", name)
		}
	}
	s, err := newSchema(keys, t.defined)
	if err != nil {
		return nil, err
	}
	ix := &index{schema: s, name: name, primary: t.schema, store: newStore(),
		projected: p.ProjectionType, included: slices.Clone(p.NonKeyAttributes)}
	return ix, checkProjection(p, field+"projection.")
}

func checkProjection(p *types.Projection, field string) error {
	switch p.ProjectionType {
	case "":
		return validation(invalidParameter + "Unknown ProjectionType: null")
	case types.ProjectionTypeAll, types.ProjectionTypeKeysOnly:
		if p.NonKeyAttributes != nil {
			return validation(invalidParameter+"ProjectionType is %s, but NonKeyAttributes is specified", p.ProjectionType)
		}
		return nil
	case types.ProjectionTypeInclude:
		if p.NonKeyAttributes == nil {
			return validation(invalidParameter + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
		}
	default:
		return oneOf(p.ProjectionType, field+"projectionType", types.ProjectionTypeAll, types.ProjectionTypeInclude, types.ProjectionTypeKeysOnly)
	}
	names := p.NonKeyAttributes
	if n := len(names); n < 1 || n > maxIncluded {
		return constraint(names, field+"nonKeyAttributes", "have length between 1 and 20")
	}
	for i, name := range names {
		if len(name) < 1 || len(name) > 255 {
			return constraint(name, field+"nonKeyAttributes", "have length between 1 and 255")
		}
		if slices.Contains(names[:i], name) {
			return validation(invalidParameter+"Duplicate attribute in NonKeyAttributes: %s", name)
		}
	}
	return nil
}

func (s schema) describe() []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: aws.String(s.hash.name), KeyType: types.KeyTypeHash}}
	if s.rng.name != "" {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(s.rng.name), KeyType: types.KeyTypeRange})
	}
	return out
}

func (ix *index) describeGlobal(table string, status types.IndexStatus) types.GlobalSecondaryIndexDescription {
	return types.GlobalSecondaryIndexDescription{
		IndexName: aws.String(ix.name), IndexArn: ix.arn(table), IndexStatus: status,
		KeySchema: ix.schema.describe(), Projection: ix.projection(),
		ItemCount: aws.Int64(int64(ix.count)), IndexSizeBytes: aws.Int64(int64(ix.bytes)),
		ProvisionedThroughput: describeThroughput(ix.throughput),
	}
}

func (ix *index) describeLocal(table string) types.LocalSecondaryIndexDescription {
	return types.LocalSecondaryIndexDescription{
		IndexName: aws.String(ix.name), IndexArn: ix.arn(table),
		KeySchema: ix.schema.describe(), Projection: ix.projection(),
		ItemCount: aws.Int64(int64(ix.count)), IndexSizeBytes: aws.Int64(int64(ix.bytes)),
	}
}

func (ix *index) arn(table string) *string { return aws.String(table + "/index/" + ix.name) }

func (ix *index) projection() *types.Projection {
	return &types.Projection{ProjectionType: ix.projected, NonKeyAttributes: slices.Clone(ix.included)}
}

func describeThroughput(p types.ProvisionedThroughput) *types.ProvisionedThroughputDescription {
	return &types.ProvisionedThroughputDescription{
		NumberOfDecreasesToday: aws.Int64(0),
		ReadCapacityUnits:      aws.Int64(aws.ToInt64(p.ReadCapacityUnits)),
		WriteCapacityUnits:     aws.Int64(aws.ToInt64(p.WriteCapacityUnits)),
	}
}
