package requests

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// The key attributes of the unit table, which package journal writes.
const (
	UnitHash  = "unit"
	UnitRange = "part"
)

// Roles says which tables of a Caller are holdall's own.
type Roles struct {
	Locks, LockKey string // the lock table, and its hash key
	Units          string // the unit table, if there is one
}

// target is an item that a request is about. Of a put the key is not known.
type target struct {
	table string
	key   Item
}

// targetsOf lists the items of a request, in its order.
func targetsOf(in any) (targets []target) {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		targets = []target{{aws.ToString(in.TableName), in.Key}}
	case *dynamodb.UpdateItemInput:
		targets = []target{{aws.ToString(in.TableName), in.Key}}
	case *dynamodb.TransactGetItemsInput:
		for _, i := range in.TransactItems {
			targets = append(targets, target{aws.ToString(i.Get.TableName), i.Get.Key})
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, i := range in.TransactItems {
			of := expressions.In(i)
			t := target{table: aws.ToString(*of.Table)}
			if i.Put == nil {
				t.key = *of.Item
			}
			targets = append(targets, t)
		}
	}
	return targets
}

// atFault are the targets that the reasons of a cancelled transaction blame.
func atFault(err error, targets []target) (faulty []target) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return nil
	}
	for i, r := range canceled.CancellationReasons[:min(len(canceled.CancellationReasons), len(targets))] {
		if Code(r) != ReasonNone && !IsBusy(r) {
			faulty = append(faulty, targets[i])
		}
	}
	return faulty
}

// tableError says which table is at fault for an answer, and which record. DynamoDB says it by the
// position of a reason, or by a resource that it names; if it does not, tables are read one by one.
func (c *Caller) tableError(ctx context.Context, r Request, in any, err error) *TableError {
	e := &TableError{Op: r.Op, Tables: r.Tables, Err: err}
	if ConcernsAll(err) || isEntityTooLarge(err) {
		return e
	}
	targets := targetsOf(in)
	faulty := atFault(err, targets)
	switch {
	case len(faulty) > 0:
		e.Tables = tablesOf(faulty)
	case len(e.Tables) > 1 && hasCode(err, codeDenied):
		e.Tables = named(e.Tables, err.Error())
	case len(e.Tables) > 1 && (IsAbsent(err) || hasCode(err, codeInvalid) && isKeyMismatch(Said(err))):
		e.Tables = c.search(ctx, e.Tables, targets, err)
	}
	if len(faulty) == 0 && len(targets) == 1 && hasCode(err, codeInvalid) {
		faulty = targets
	}
	if len(faulty) == 1 && faulty[0].key != nil {
		e.Record = recordText(faulty[0].key)
	}
	if len(e.Tables) == 1 && slices.Contains(codesOf(err), codeInvalid) && isKeyMismatch(Said(err)) {
		e.advice = c.adviseOnKeys(ctx, e.Tables[0], targets)
	}
	return e
}

// tablesOf returns the tables of these targets, in order, each once.
func tablesOf(targets []target) []string {
	tables := make([]string, len(targets))
	for i, t := range targets {
		tables[i] = t.table
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// named is the one table whose ARN a text has; all if that is not one of them.
func named(tables []string, text string) []string {
	for _, table := range tables {
		if _, after, found := strings.Cut(text, ":table/"+table); found && !continuesName.MatchString(after) {
			return []string{table}
		}
	}
	return tables
}

// continuesName is how a text goes on within a table's name.
var continuesName = regexp.MustCompile(`^\.*[\w-]`)

// search reads each table by itself, once, in the order of the request, to find the one for which the
// request was refused: a read of it fails for the same reason, or all others are there and it is not.
// Reading and writing are different permissions: what a read does not share, it proves nothing about.
func (c *Caller) search(ctx context.Context, tables []string, targets []target, err error) []string {
	suspects, keys := slices.Clone(tables), map[string]Item{} // of each table the first key that is known
	for _, t := range targets {
		if keys[t.table] == nil {
			keys[t.table] = t.key
		}
	}
	for _, t := range targets {
		key, unread := keys[t.table]
		delete(keys, t.table)
		known := key != nil
		switch {
		case !unread, !known && !IsAbsent(err):
			continue
		case !known:
			key = Item{"?": text("?")} // a table that is there says that this is not its key
		}
		readErr := c.lookAt(ctx, t.table, key)
		switch {
		case hasCode(readErr, codesOf(err)...) && (known || IsAbsent(readErr)):
			return []string{t.table}
		case readErr == nil, hasCode(readErr, codeInvalid):
			suspects = slices.DeleteFunc(suspects, func(s string) bool { return s == t.table })
		}
	}
	if len(suspects) == 1 && IsAbsent(err) {
		return suspects
	}
	return tables
}

// lookAt reads an item, by a single sending, to see whether the table takes its key.
func (c *Caller) lookAt(ctx context.Context, table string, key Item) error {
	in := &dynamodb.GetItemInput{TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: c.capacity()}
	_, _, err := Once(ctx, c, "GetItem", 1, in, c.DB.GetItem)
	return err
}

// adviseOnKeys says what is wrong with a table whose keys are not those of a request.
func (c *Caller) adviseOnKeys(ctx context.Context, table string, targets []target) string {
	lockKey := Item{c.Roles.LockKey: text("?")}
	unitKey := Item{UnitHash: text("?"), UnitRange: text("?")}
	switch table {
	case c.Roles.Locks:
		if c.lookAt(ctx, table, unitKey) == nil {
			return "it is a unit table, not a lock table: " + areSwapped
		}
		return fmt.Sprintf("it is not a lock table, whose only key is %s: correct the Table or the HashKey of lockset.Config, or create such a table", shape(lockKey))
	case c.Roles.Units:
		if c.lookAt(ctx, table, lockKey) == nil {
			return "it is a lock table, not a unit table: " + areSwapped
		}
		return fmt.Sprintf("it is not a unit table, whose keys are %s: correct the Table of unitofwork.Config, or create such a table", shape(unitKey))
	}
	for _, t := range targets {
		if t.table == table && t.key != nil {
			return fmt.Sprintf("its keys are not %s: correct the Name, PartitionKey and SortKey of its unitofwork.Table, and the types of those fields", shape(t.key))
		}
	}
	return "its keys are not those of its unitofwork.Table: correct the Name, PartitionKey and SortKey, and the types of those fields"
}

const areSwapped = "the names of the lock table and the unit table are swapped, or one of them is wrong: correct them"

// shape names the attributes of a key, with their types.
func shape(key Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, fmt.Sprintf("%q (%s)", name, TypeOf(key[name])))
	}
	return strings.Join(parts, " and ")
}

// TypeOf returns the type of a key's value as DynamoDB calls it: empty if it cannot be one.
func TypeOf(value types.AttributeValue) string {
	switch value.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	}
	return ""
}

// mostOfKey is how many bytes of a key are written in an error. A key may have 2,048, as often as an
// error names it.
const mostOfKey = 100

// Shortened cuts a key for an error. Its beginning and its end are kept, because keys are often
// alike at the beginning.
func Shortened(key string) string {
	if len(key) <= mostOfKey {
		return key
	}
	head, tail := mostOfKey*2/3, len(key)-mostOfKey/3
	for head > 0 && !utf8.RuneStart(key[head]) {
		head--
	}
	for tail < len(key) && !utf8.RuneStart(key[tail]) {
		tail++
	}
	return key[:head] + "…" + key[tail:]
}

// recordText writes a key for people, as package actions does, but cut.
func recordText(key Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		switch v := key[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, fmt.Sprintf("%s=%q", name, Shortened(v.Value)))
		case *types.AttributeValueMemberN:
			parts = append(parts, name+"="+v.Value)
		case *types.AttributeValueMemberB:
			parts = append(parts, name+"=0x"+Shortened(hex.EncodeToString(v.Value)))
		}
	}
	return strings.Join(parts, " ")
}
