package unitofwork

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

type values = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
