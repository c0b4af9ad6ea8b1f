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
	all := map[string]bool{t.hash.name: true}
	used := []keyAttr{t.rng}
	included := 0
	for _, ix := range t.indexes {
		used = append(used, ix.hash, ix.rng)
		included += len(ix.included)
	}
	for _, a := range used {
		if a.name != "" {
			all[a.name] = true
		}
	}
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
