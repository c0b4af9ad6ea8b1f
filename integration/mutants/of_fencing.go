package main

// ofFencing are the clauses of the guards of other stores.
var ofFencing = []mutant{
	{
		clause: "a coarse token older than what is below its key is stale",
		file:   "fencing/sql.go",
		old:    `latest = max(latest, m.below)`,
		new:    `_ = m.below`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "a key's ancestors are asked, too",
		file:   "fencing/sql.go",
		old:    `for _, ancestor := range step.Intents {`,
		new:    `for _, ancestor := range step.Intents[:0] {`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "two fine keys beside each other do not make each other stale",
		file:   "fencing/sql.go",
		old:    `		if r.below {`,
		new:    `		if false {`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "a token that a key has met does not fall",
		file:   "fencing/sql.go",
		old:    `CASE WHEN f.token < excluded.token THEN excluded.token ELSE f.token END`,
		new:    `excluded.token`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "nor does the one below it",
		file:   "fencing/sql.go",
		old:    `CASE WHEN f.below < excluded.below THEN excluded.below ELSE f.below END`,
		new:    `excluded.below`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "the same token is admitted again",
		file:   "fencing/sql.go",
		old:    `if Token(latest) > a.token {`,
		new:    `if Token(latest) >= a.token {`,
		by:     check{in: "integration/guard", test: "TestTheRulesOfCoarseAndFineKeys"},
	},
	{
		clause: "all keys are looked at, not the first alone",
		file:   "fencing/sql.go",
		old:    `	for _, r := range a.rows {`,
		new:    `	for _, r := range a.rows[:1] {`,
		by:     check{in: "integration/guard", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "a fenced write outside a unit is refused where a later token was",
		file:   "fencing/dynamodb.go",
		old:    `expressions.New(f.attribute(), expressions.NotOlder, f.Token)`,
		new:    `expressions.New(f.attribute(), "(attribute_not_exists(Never) OR "+expressions.Name+" <= "+expressions.Value+")", f.Token)`,
		by:     check{in: "fencing", test: "TestAFencedWrite"},
	},
	{
		clause: "a fenced write may be repeated by its unit",
		file:   "fencing/dynamodb.go",
		old:    `expressions.New(f.attribute(), expressions.NotOlder, f.Token)`,
		new:    `expressions.New(f.attribute(), expressions.Newer, f.Token)`,
		by:     check{in: "fencing", test: "TestAFencedWrite"},
	},
	{
		clause: "a fenced put leaves its token",
		file:   "fencing/dynamodb.go",
		old:    `in.Item[f.attribute()] = &types.AttributeValueMemberN{Value: f.Token.String()}`,
		new:    `_ = in.Item`,
		by:     check{in: "fencing", test: "TestAFencedWrite"},
	},
	{
		clause: "the condition built with the SDK's package is the same one",
		file:   "fencing/dynamodb.go",
		old:    `name.LessThanEqual(expression.Value`,
		new:    `name.GreaterThanEqual(expression.Value`,
		by:     check{in: "fencing", test: "TestAFencedWrite"},
	},
}
