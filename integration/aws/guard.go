package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// kind is what an operation is, for the guard and the estimate.
type kind int

const (
	control kind = iota + 1 // of tables: it costs nothing
	read
	write
)

// operations are those that are passed on: what the suites send, and no others.
var operations = map[string]kind{
	"CreateTable": control, "DeleteTable": control, "DescribeTable": control,
	"DescribeTimeToLive": control, "UpdateTimeToLive": control, "PutResourcePolicy": control,

	"GetItem": read, "BatchGetItem": read, "Query": read, "Scan": read, "TransactGetItems": read,

	"PutItem": write, "UpdateItem": write, "DeleteItem": write, "BatchWriteItem": write,
	"TransactWriteItems": write, "BatchExecuteStatement": write,
}

// several has the operations that may name no table: who asks for nothing is told so by DynamoDB.
var several = map[string]bool{
	"TransactGetItems": true, "TransactWriteItems": true, "BatchGetItem": true, "BatchWriteItem": true, "BatchExecuteStatement": true,
}

// request is what the guard reads of one.
type request struct {
	TableName     string
	ResourceArn   string
	BillingMode   string
	RequestItems  map[string]json.RawMessage
	TransactItems []map[string]struct{ TableName string }
	Statements    []struct{ Statement string }
}

// table is the name in a PartiQL statement of a kind that the suites send.
var table = regexp.MustCompile(`(?is)^\s*(?:UPDATE|INSERT\s+INTO|DELETE\s+FROM|SELECT\s.*?\sFROM)\s+"([^"]*)"`)

// admit reports whether a request may be passed on: it is one that the suites send, names no
// table outside of the namespace, and makes none that costs while nobody uses it. The number
// is that of its actions.
func admit(operation string, body []byte, namespace string) (r request, actions int, err error) {
	if operations[operation] == 0 {
		return r, 0, fmt.Errorf("%q is no operation that the suites need", operation)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, 0, fmt.Errorf("%s: the request cannot be read: %w", operation, err)
	}
	names, err := r.tables()
	if err != nil {
		return r, 0, fmt.Errorf("%s: %w", operation, err)
	}
	if len(names) == 0 && !several[operation] {
		return r, 0, fmt.Errorf("%s: it names no table", operation)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, namespace) {
			return r, 0, fmt.Errorf("%s: table %q does not begin with %q", operation, name, namespace)
		}
	}
	if operation == "CreateTable" && r.BillingMode != "PAY_PER_REQUEST" {
		return r, 0, fmt.Errorf("CreateTable: table %q is not on demand", r.TableName)
	}
	return r, max(1, len(r.TransactItems), len(r.Statements), r.batched()), nil
}

// batched is how many items a batch reads or writes.
func (r request) batched() (n int) {
	for _, of := range r.RequestItems {
		var writes []json.RawMessage
		var reads struct{ Keys []json.RawMessage }
		_ = json.Unmarshal(of, &writes) // it is one or the other, or DynamoDB refuses it
		_ = json.Unmarshal(of, &reads)
		n += len(writes) + len(reads.Keys)
	}
	return n
}

// tables are those that a request names, in all the ways in which one may.
func (r request) tables() (names []string, err error) {
	if r.TableName != "" {
		names = append(names, r.TableName)
	}
	if r.ResourceArn != "" {
		_, name, _ := strings.Cut(r.ResourceArn, ":table/")
		names = append(names, name)
	}
	for name := range r.RequestItems {
		names = append(names, name)
	}
	for _, item := range r.TransactItems {
		for _, action := range item {
			names = append(names, action.TableName)
		}
	}
	for _, s := range r.Statements {
		found := table.FindStringSubmatch(s.Statement)
		if found == nil {
			return nil, fmt.Errorf("no table is recognized in the statement %q", s.Statement)
		}
		names = append(names, found[1])
	}
	return names, nil
}
