package memdynamo

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const maxStatements = 25

// BatchExecuteStatement executes up to 25 PartiQL statements, all reads or all
// writes, each on one item, all items different. Each succeeds or fails by
// itself, its error in its response.
func (db *DB) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return do(ctx, db, "BatchExecuteStatement", in, db.batchExecuteStatement)
}

// run is one statement of a batch on its way.
type run struct {
	action
	stmt       *statement
	values     *bound
	consistent bool
	err        error
	costs      charge
}

func (db *DB) batchExecuteStatement(in *dynamodb.BatchExecuteStatementInput) (*dynamodb.BatchExecuteStatementOutput, error) {
	switch n := len(in.Statements); {
	case n < 1:
		return nil, constraint("[]", "statements", "have length greater than or equal to 1")
	case n > maxStatements:
		return nil, constraint(n, "statements", "have length less than or equal to 25")
	}
	runs := make([]run, len(in.Statements))
	reads, writes := false, false
	for i := range runs {
		if err := db.prepareRun(&runs[i], &in.Statements[i]); err != nil {
			return nil, err
		}
		if s := runs[i].stmt; s != nil {
			reads, writes = reads || s.verb == verbCheck, writes || s.verb != verbCheck
		}
	}
	if reads && writes {
		return nil, validation("Read and write requests together in the same batch is not supported.")
	}
	if err := db.executeRuns(runs); err != nil {
		return nil, err
	}
	out := &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, len(runs))}
	var costs bill
	for i := range runs {
		out.Responses[i] = runs[i].respond()
		if runs[i].costs.table != "" {
			costs = append(costs, runs[i].costs)
		}
	}
	out.ConsumedCapacity = costs.consumed(in.ReturnConsumedCapacity, false)
	return out, nil
}

// prepareRun parses and fills a statement; what is wrong with the statement
// becomes its own error, what is wrong with the request is returned.
func (db *DB) prepareRun(r *run, in *types.BatchStatementRequest) error {
	if err := cmp.Or(check("BatchExecuteStatementInput.Statements", in),
		r.setOnFailure(in.ReturnValuesOnConditionCheckFailure)); err != nil {
		return err
	}
	r.consistent = aws.ToBool(in.ConsistentRead)
	params := make([]value, len(in.Parameters))
	for i, av := range in.Parameters {
		v, err := decode(av, 0)
		if err != nil {
			return validation("%s", err)
		}
		params[i] = v
	}
	r.err = db.fillRun(r, *in.Statement, params)
	return nil
}

// fillRun makes a run of its statement.
func (db *DB) fillRun(r *run, text string, params []value) error {
	var err error
	if r.stmt, err = db.stmts.get(text, parseStatement); err != nil {
		return err
	}
	r.table, r.verb = r.stmt.table, r.stmt.verb
	if r.values, err = r.stmt.bind(params); err != nil {
		return err
	}
	switch r.verb {
	case verbPut:
		return r.prepareInsert(params)
	case verbUpdate:
		r.mustExist, r.update = true, r.values
	case verbDelete:
		r.absentOK = true
	case verbCheck:
		if r.stmt.columns != nil {
			r.proj = &bound{expr: &expr{paths: r.stmt.columns}}
			if err := r.proj.check(); err != nil {
				return validation("%s", err)
			}
		}
	}
	return nil
}

func (r *run) prepareInsert(params []value) error {
	r.mustBeNew = true
	v, err := r.stmt.document.fill(params)
	if err != nil {
		return validation("%s", err)
	}
	r.attrs = v.(mapValue)
	if err := r.weigh(); err != nil {
		return err
	}
	if nesting(v)-1 > maxNesting {
		return validation("%s", errNesting)
	}
	return nil
}

// executeRuns is the part of a batch under the mutex.
func (db *DB) executeRuns(runs []run) error {
	db.begin()
	defer db.mu.Unlock()
	taken := make(places, len(runs))
	for i := range runs {
		r := &runs[i]
		if r.err == nil {
			r.err = db.locateRun(r)
		}
		if r.err != nil {
			continue
		}
		if taken.twice(&r.action) {
			return validation(keysTwice)
		}
	}
	for i := range runs {
		r := &runs[i]
		if r.err != nil {
			continue
		}
		r.err = r.evaluate()
		r.costs.table = r.table
		if r.verb == verbCheck {
			r.costs.read = readUnits(r.old.bytes(), r.consistent)
		} else {
			r.costs.write = r.units()
		}
		if r.err == nil {
			r.costs.follow(&r.action, 1)
			r.store()
		}
		db.charge(bill{r.costs})
	}
	return nil
}

// locateRun finds a statement's table, and its key in WHERE.
func (db *DB) locateRun(r *run) error {
	t := db.tables[r.table]
	if t == nil {
		return namedTableNotFound(r.table)
	}
	if r.verb != verbPut {
		attrs, cond, err := r.stmt.split(t, r.values)
		switch {
		case errors.Is(err, errNoKey) && r.verb == verbCheck:
			return validation("Select statements within BatchExecuteStatement must specify the primary key in the where clause.")
		case err != nil:
			return validation("%s", err)
		case cond != nil && r.verb == verbCheck:
			return validation("Only single item select is supported")
		}
		r.attrs, r.cond = attrs, cond
	}
	return db.find(&r.action)
}

// respond is a statement's response.
func (r *run) respond() types.BatchStatementResponse {
	out := types.BatchStatementResponse{}
	if r.t != nil {
		out.TableName = aws.String(r.table)
	}
	if r.err == nil {
		if r.verb == verbCheck {
			out.Item = r.shown()
		}
		return out
	}
	out.Error = &types.BatchStatementError{
		Code: types.BatchStatementErrorCodeEnumValidationError, Message: aws.String(messageOf(r.err)),
	}
	var absent *types.ResourceNotFoundException
	switch {
	case r.err == errCondition:
		// Without the item, even if the statement asks for it: DynamoDB's documentation says that it
		// is there, engines differ, and nothing should come to rely on it.
		out.Error.Code = types.BatchStatementErrorCodeEnumConditionalCheckFailed
	case r.err == errDuplicate:
		out.Error.Code = types.BatchStatementErrorCodeEnumDuplicateItem
	case errors.As(r.err, &absent):
		out.Error.Code = types.BatchStatementErrorCodeEnumResourceNotFound
	}
	return out
}
