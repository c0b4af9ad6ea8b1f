package faults

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Permission is what IAM asks for: to do something with a table.
type Permission struct {
	Table  string
	Action string // without "dynamodb:"
}

// Permissions are those that IAM asks for before a request of an owner is carried out: IAM has
// none for a transaction or a batch of statements, but one for each kind of what is in it.
func Permissions(in any) (all []Permission) {
	add := func(table *string, action string) { all = append(all, Permission{aws.ToString(table), action}) }
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		add(in.TableName, opGet)
	case *dynamodb.PutItemInput:
		add(in.TableName, opPut)
	case *dynamodb.UpdateItemInput:
		add(in.TableName, opUpdate)
	case *dynamodb.DeleteItemInput:
		add(in.TableName, opDelete)
	case *dynamodb.QueryInput:
		add(in.TableName, opQuery)
	case *dynamodb.ScanInput:
		add(in.TableName, opScan)
	case *dynamodb.TransactGetItemsInput:
		for _, item := range in.TransactItems {
			if item.Get != nil {
				add(item.Get.TableName, opGet)
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			all = append(all, permissionOf(item))
		}
	case *dynamodb.BatchExecuteStatementInput:
		for _, s := range in.Statements {
			all = append(all, permissionOfStatement(aws.ToString(s.Statement)))
		}
	}
	return all
}

func permissionOf(item types.TransactWriteItem) Permission {
	switch {
	case item.Put != nil:
		return Permission{aws.ToString(item.Put.TableName), opPut}
	case item.Update != nil:
		return Permission{aws.ToString(item.Update.TableName), opUpdate}
	case item.Delete != nil:
		return Permission{aws.ToString(item.Delete.TableName), opDelete}
	case item.ConditionCheck != nil:
		return Permission{aws.ToString(item.ConditionCheck.TableName), "ConditionCheckItem"}
	}
	return Permission{}
}

var statement = regexp.MustCompile(`(?i)^\s*(UPDATE|DELETE|INSERT|SELECT)\b[^"]*"([^"]+)"`)

func permissionOfStatement(text string) Permission {
	found := statement.FindStringSubmatch(text)
	if found == nil {
		return Permission{}
	}
	verb := strings.ToLower(found[1])
	return Permission{found[2], "PartiQL" + strings.ToUpper(verb[:1]) + verb[1:]}
}

// DenyUnless denies, as IAM does, what asks for a permission that is not allowed; the rest it passes on.
func DenyUnless(allowed func(Permission) bool) Script {
	return func(c Call) Fault {
		for _, p := range Permissions(c.Input) {
			if !allowed(p) {
				return Deny()
			}
		}
		return Pass()
	}
}
