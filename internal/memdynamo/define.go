package memdynamo

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxGlobal   = 20
	maxLocal    = 5
	maxIncluded = 20  // attributes in one index
	maxInAll    = 100 // and in all of a table
)

// define takes a table's keys, indexes and billing from its definition.
func (t *table) define(in *dynamodb.CreateTableInput) error {
	var err error
	if t.defined, err = definitions(in.AttributeDefinitions); err != nil {
		return err
	}
	if t.schema, err = newSchema(in.KeySchema, t.defined); err != nil {
		return err
	}
	if t.billing, t.throughput, err = newBilling(in); err != nil {
		return err
	}
	switch {
	case in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0:
		return validation(invalidParameter + "List of GlobalSecondaryIndexes is empty")
	case in.LocalSecondaryIndexes != nil && len(in.LocalSecondaryIndexes) == 0:
		return validation(invalidParameter + "List of LocalSecondaryIndexes is empty")
	case len(in.GlobalSecondaryIndexes) > maxGlobal:
		return validation(invalidParameter+"GlobalSecondaryIndex count exceeds the per-table limit of %d", maxGlobal)
	case len(in.LocalSecondaryIndexes) > maxLocal:
		return validation(invalidParameter+"Number of LocalSecondaryIndexes exceeds per-table limit of %d", maxLocal)
	}
	for i := range in.GlobalSecondaryIndexes {
		if err := t.addGlobal(&in.GlobalSecondaryIndexes[i]); err != nil {
			return err
		}
	}
	for i := range in.LocalSecondaryIndexes {
		if err := t.addLocal(&in.LocalSecondaryIndexes[i]); err != nil {
			return err
		}
	}
	return t.checkDefinitions()
}

// definitions are the attributes of keys, each with a type that keys may have.
func definitions(in []types.AttributeDefinition) ([]keyAttr, error) {
	var out []keyAttr
	for _, d := range in {
		i := slices.Index(kindNames[:], string(d.AttributeType))
		if i < 0 || !kind(i).scalar() {
			return nil, constraint(d.AttributeType, "attributeDefinitions.1.member.attributeType", "satisfy enum value set: [B, N, S]")
		}
		out = append(out, keyAttr{aws.ToString(d.AttributeName), kind(i)})
	}
	return out, nil
}

// checkDefinitions: all keys are defined, and nothing else is.
func (t *table) checkDefinitions() error {
	all := map[string]bool{t.hash.name: true, t.rng.name: true}
	included := 0
	for _, ix := range t.indexes {
		all[ix.hash.name], all[ix.rng.name] = true, true
		included += len(ix.included)
	}
	delete(all, "") // of keys without a range key
	if len(all) != len(t.defined) {
		return validation(invalidParameter + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	if included > maxInAll {
		return validation(invalidParameter+"Number of attributes in all NonKeyAttributes exceeds per-table limit of %d", maxInAll)
	}
	return nil
}

// newSchema is a key schema, of attributes that are defined.
func newSchema(in []types.KeySchemaElement, defined []keyAttr) (s schema, err error) {
	if n := len(in); n < 1 || n > 2 {
		return s, constraint(n, "keySchema", "have 1 or 2 elements")
	}
	for i, e := range in {
		name := aws.ToString(e.AttributeName)
		at := slices.IndexFunc(defined, func(a keyAttr) bool { return a.name == name })
		if at < 0 || name == "" {
			return s, validation(invalidParameter+"Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]",
				name, strings.Join(sortedNames(defined), ", "))
		}
		switch {
		case i == 0 && e.KeyType == types.KeyTypeHash:
			s.hash = defined[at]
		case i == 0:
			return s, validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
		case e.KeyType == types.KeyTypeRange:
			s.rng = defined[at]
		default:
			return s, validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
		}
	}
	if s.hash.name == s.rng.name {
		return s, validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	return s, nil
}

func sortedNames(attrs []keyAttr) []string {
	var out []string
	for _, a := range attrs {
		out = append(out, a.name)
	}
	slices.Sort(out)
	return out
}

func newBilling(in *dynamodb.CreateTableInput) (mode types.BillingMode, throughput types.ProvisionedThroughput, err error) {
	switch in.BillingMode {
	case types.BillingModePayPerRequest:
		if in.ProvisionedThroughput != nil {
			err = validation(invalidParameter + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		return in.BillingMode, throughput, err
	case types.BillingModeProvisioned, "":
		if in.ProvisionedThroughput == nil {
			err = validation(invalidParameter + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
			return "", throughput, err
		}
		throughput, err = newThroughput(in.ProvisionedThroughput, "provisionedThroughput")
		return types.BillingModeProvisioned, throughput, err
	}
	return "", throughput, constraint(in.BillingMode, "billingMode", "satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]")
}

func newThroughput(p *types.ProvisionedThroughput, field string) (out types.ProvisionedThroughput, err error) {
	if aws.ToInt64(p.ReadCapacityUnits) < 1 || aws.ToInt64(p.WriteCapacityUnits) < 1 {
		return out, constraint(0, field, "have value greater than or equal to 1")
	}
	return types.ProvisionedThroughput{
		ReadCapacityUnits:  aws.Int64(*p.ReadCapacityUnits),
		WriteCapacityUnits: aws.Int64(*p.WriteCapacityUnits),
	}, nil
}

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
