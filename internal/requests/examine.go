package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Examination asks whether a table is as it has to be, and whether this process may send
// to it what it has to.
type Examination struct {
	Caller *Caller
	Table  string
	Keys   []string      // its key attributes, all of type S: the hash key, and the range key if it has one
	TTL    string        // the attribute by which its items expire
	Item   Item          // the key of an item that nobody else names
	ID     func() string // names a request

	found  []Finding
	denied map[string]bool // permissions, each of which is one finding
	fits   bool            // the keys are known to be right
}

// Run describes the table, if the DynamoDB can and allows it, and makes the trials. The
// error is a *[NoAnswerError]: then nothing can be said.
func (e *Examination) Run(ctx context.Context, trials ...Trial) ([]Finding, error) {
	e.denied = map[string]bool{}
	usable, err := e.describe(ctx)
	if err != nil || !usable {
		return e.found, err
	}
	for _, t := range trials {
		err := t.send(ctx)
		if errors.As(err, new(*NoAnswerError)) {
			return nil, err
		}
		if !e.judge(t, err) {
			break
		}
	}
	return e.found, nil
}

func (e *Examination) add(err error, problem, do string) {
	e.found = append(e.found, Finding{Table: e.Table, Problem: problem, Do: do, Err: err})
}

// describe reports whether trials have any point. A description that is denied, or that
// the DynamoDB does not have, says nothing: processes that only lock and commit need no
// permission for it.
func (e *Examination) describe(ctx context.Context) (usable bool, err error) {
	db, ok := e.Caller.DB.(Describer)
	if !ok {
		return true, nil
	}
	table, err := e.Caller.DescribeTable(ctx, db, e.ID(), e.Table)
	switch {
	case err == nil && !e.judgeTable(table):
		return false, nil
	case errors.As(err, new(*NoAnswerError)):
		return false, err
	case e.isUnusable(err):
		return false, nil
	}
	ttl, err := e.Caller.DescribeTimeToLive(ctx, db, e.ID(), e.Table)
	switch {
	case err == nil:
		e.judgeTTL(ttl)
	case errors.As(err, new(*NoAnswerError)):
		return false, err
	}
	return true, nil
}

// judgeTable reports whether the table can be used at all.
func (e *Examination) judgeTable(table *types.TableDescription) (usable bool) {
	switch table.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating: // which takes requests, too
	default:
		e.add(nil, fmt.Sprintf("is %s", table.TableStatus), "wait until it is ACTIVE, or see in its description why it is not")
		return false
	}
	if has, wants := keysOf(table), keysText(e.Keys); has != wants {
		other := []string{UnitHash, UnitRange}
		if e.Table == e.Caller.Roles.Units {
			other = []string{e.Caller.Roles.LockKey}
		}
		e.wrongKeys(nil, fmt.Sprintf("its keys are %s, not %s", has, wants), has == keysText(other))
		return false
	}
	e.fits = true
	return true
}

func (e *Examination) judgeTTL(ttl *types.TimeToLiveDescription) {
	attribute, status := aws.ToString(ttl.AttributeName), ttl.TimeToLiveStatus
	switch {
	case status != types.TimeToLiveStatusEnabled && status != types.TimeToLiveStatusEnabling:
		e.add(nil, "TTL is off, so nothing is deleted that is of no use any more", fmt.Sprintf("turn TTL on for the attribute %q", e.TTL))
	case attribute != e.TTL:
		e.add(nil, fmt.Sprintf("TTL is on for the attribute %q, so nothing is deleted that is of no use any more", attribute),
			fmt.Sprintf("turn TTL off, and then on for %q", e.TTL))
	}
}

// judge takes note of what a trial came to, and reports whether others have any point.
func (e *Examination) judge(t Trial, err error) (goOn bool) {
	var table *TableError
	misshapen := slices.Contains(codesOf(err), codeInvalid) // our requests being well formed, the table is not
	switch {
	case err == nil, KindOf(err) == Refused:
		e.fits = true
	case e.isUnusable(err):
		return false
	case slices.ContainsFunc(codesOf(err), func(code string) bool { return isOfKMS(code, Said(err)) }):
		problem, do := diagnose(codesOf(err)[0], Said(err))
		e.add(err, fmt.Sprintf("%s (%s)", problem, Said(err)), do)
		return false
	case hasCode(err, codeDenied):
		if !e.denied[t.permission] {
			e.denied[t.permission] = true
			e.add(err, fmt.Sprintf("%s is denied (%s)", t.name, Said(err)), toAllow(t.permission, Said(err)))
		}
	case misshapen && !e.fits:
		swapped := errors.As(err, &table) && strings.HasSuffix(table.advice, areSwapped)
		e.wrongKeys(err, fmt.Sprintf("its keys are not %s (%s)", keysText(e.Keys), Said(err)), swapped)
		return false
	default:
		e.add(err, fmt.Sprintf("%s is refused (%s)", t.name, Said(err)), "see to it that DynamoDB takes this request: holdall needs it")
		return misshapen // what is wrong with other requests is wrong with all
	}
	return true
}

// isUnusable reports whether no other request would escape an error, and takes note of it.
func (e *Examination) isUnusable(err error) bool {
	switch {
	case ConcernsAll(err):
		problem, do := whyAll(err)
		e.add(err, fmt.Sprintf("%s (%s)", problem, Said(err)), do)
		return true
	case IsAbsent(err):
		e.add(err, "does not exist", "create it, or correct its name, the Region or the account")
		return true
	}
	return false
}

func (e *Examination) wrongKeys(err error, problem string, swapped bool) {
	do := "name a table with these keys, or create one: keys cannot be changed"
	if swapped {
		do = areSwapped
	}
	e.add(err, problem, do)
}

// keysText writes keys of type S, the hash key first, for people.
func keysText(names []string) string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = keyText(name, []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i], types.ScalarAttributeTypeS)
	}
	return strings.Join(keys, ", ")
}

func keysOf(table *types.TableDescription) string {
	keys := make([]string, len(table.KeySchema))
	kinds := map[string]types.ScalarAttributeType{}
	for _, definition := range table.AttributeDefinitions {
		kinds[aws.ToString(definition.AttributeName)] = definition.AttributeType
	}
	for i, key := range table.KeySchema {
		name := aws.ToString(key.AttributeName)
		keys[i] = keyText(name, key.KeyType, kinds[name])
	}
	return strings.Join(keys, ", ")
}

func keyText(name string, key types.KeyType, kind types.ScalarAttributeType) string {
	return fmt.Sprintf("%q (%s, %s)", name, key, kind)
}

// Describer says how a table is made, as *dynamodb.Client does. What a Caller asks need
// not be one.
type Describer interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// DescribeTable says how a table is made.
func (c *Caller) DescribeTable(ctx context.Context, db Describer, id, table string) (*types.TableDescription, error) {
	in := &dynamodb.DescribeTableInput{TableName: aws.String(table)}
	out, _, err := Do(ctx, c, Request{Op: "DescribeTable", ID: id, Tables: []string{table}}, in, db.DescribeTable)
	if err != nil {
		return nil, err
	}
	if out.Table == nil {
		return nil, errNotTold
	}
	return out.Table, nil
}

// DescribeTimeToLive says which attribute tells when items of a table expire.
func (c *Caller) DescribeTimeToLive(ctx context.Context, db Describer, id, table string) (*types.TimeToLiveDescription, error) {
	in := &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)}
	out, _, err := Do(ctx, c, Request{Op: "DescribeTimeToLive", ID: id, Tables: []string{table}}, in, db.DescribeTimeToLive)
	if err != nil {
		return nil, err
	}
	if out.TimeToLiveDescription == nil {
		return nil, errNotTold
	}
	return out.TimeToLiveDescription, nil
}

var errNotTold = errors.New("the answer describes nothing")
