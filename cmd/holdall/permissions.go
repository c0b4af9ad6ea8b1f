package main

// What a process may do that locks and uses units, and no more. docs/templates.md shows what
// is printed of it, and a test of the library holds that to what the library's own check
// tries.
var (
	locksActions   = []string{"GetItem", "UpdateItem", "ConditionCheckItem", "PartiQLUpdate"}
	unitsActions   = []string{"GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "PartiQLDelete", "Query"}
	recordsActions = []string{"GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}

	// What an operator's command asks besides: how tables are made, and all lock rows.
	describeActions = []string{"DescribeTable", "DescribeTimeToLive"}
	listActions     = []string{"Scan"}
)

type statement struct {
	Sid       string
	Actions   []string
	Resources []resource
}

// resource is a table, as each kind of template names it.
type resource struct {
	Terraform, CloudFormation, ARN string
}

// statements are those of a policy: of a process, or of an operator who finishes what
// processes left behind, and so may do what they may.
func (t tables) statements(operator bool) []statement {
	locks := []resource{t.own("locks", "Locks", t.Locks)}
	all := []statement{{"Locks", locksActions, locks}}
	both := locks
	if t.Units != "" {
		units := t.own("units", "Units", t.Units)
		all = append(all, statement{"Units", unitsActions, []resource{units}})
		both = append(both[:1:1], units)
	}
	if len(t.Records) > 0 {
		var records []resource
		for _, r := range t.Records { // which are there already
			records = append(records, resource{
				"data.aws_dynamodb_table." + r.Label + ".arn",
				"!Sub arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/" + r.Name,
				t.arn(r.Name),
			})
		}
		all = append(all, statement{"Records", recordsActions, records})
	}
	if operator {
		all = append(all, statement{"Describe", describeActions, both}, statement{"List", listActions, locks})
	}
	return all
}
