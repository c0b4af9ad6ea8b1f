package faults

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// part is one thing that a request does with a table.
type part struct {
	action string // as IAM calls it, without "dynamodb:"
	table  *string
	item   map[string]types.AttributeValue // of a put; of what is done with any other row, its key
}

// parts are those of a request, but for a batch's.
func parts(in any) []part {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return []part{{opGet, in.TableName, in.Key}}
	case *dynamodb.PutItemInput:
		return []part{{opPut, in.TableName, in.Item}}
	case *dynamodb.UpdateItemInput:
		return []part{{opUpdate, in.TableName, in.Key}}
	case *dynamodb.DeleteItemInput:
		return []part{{opDelete, in.TableName, in.Key}}
	case *dynamodb.QueryInput:
		return []part{{opQuery, in.TableName, nil}}
	case *dynamodb.ScanInput:
		return []part{{opScan, in.TableName, nil}}
	case *dynamodb.TransactGetItemsInput:
		all := make([]part, len(in.TransactItems))
		for i, item := range in.TransactItems {
			if item.Get != nil {
				all[i] = part{opGet, item.Get.TableName, item.Get.Key}
			}
		}
		return all
	case *dynamodb.TransactWriteItemsInput:
		all := make([]part, len(in.TransactItems))
		for i, item := range in.TransactItems {
			switch {
			case item.Put != nil:
				all[i] = part{opPut, item.Put.TableName, item.Put.Item}
			case item.Update != nil:
				all[i] = part{opUpdate, item.Update.TableName, item.Update.Key}
			case item.Delete != nil:
				all[i] = part{opDelete, item.Delete.TableName, item.Delete.Key}
			case item.ConditionCheck != nil:
				all[i] = part{"ConditionCheckItem", item.ConditionCheck.TableName, item.ConditionCheck.Key}
			}
		}
		return all
	}
	return nil
}

// Permission is what IAM asks for: to do something with a table.
type Permission struct {
	Table  string
	Action string // without "dynamodb:"
}

// Permissions are those that IAM asks for before a request of an owner is carried out: IAM has
// none for a transaction or a batch of statements, but one for each kind of what is in it.
func Permissions(in any) (all []Permission) {
	for _, p := range parts(in) {
		if p.action != "" {
			all = append(all, Permission{aws.ToString(p.table), p.action})
		}
	}
	if batch, ok := in.(*dynamodb.BatchExecuteStatementInput); ok {
		for _, s := range batch.Statements {
			var p Permission
			if found := statement.FindStringSubmatch(aws.ToString(s.Statement)); found != nil {
				verb := strings.ToLower(found[1])
				p = Permission{found[2], "PartiQL" + strings.ToUpper(verb[:1]) + verb[1:]}
			}
			all = append(all, p)
		}
	}
	return all
}

var statement = regexp.MustCompile(`(?i)^\s*(UPDATE|DELETE|INSERT|SELECT)\b[^"]*"([^"]+)"`)

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
