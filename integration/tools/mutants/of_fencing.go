package main

// ofFencing are the clauses of the guards of other stores.
var ofFencing = []mutant{
	{
		clause: "a token that a key has met does not fall",
		file:   "fencing/sql.go",
		old:    `CASE WHEN f.token < excluded.token THEN excluded.token ELSE f.token END`,
		new:    `excluded.token`,
		by:     check{in: "integration/gate", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "nor does the one below it",
		file:   "fencing/sql.go",
		old:    `CASE WHEN f.below < excluded.below THEN excluded.below ELSE f.below END`,
		new:    `excluded.below`,
		by:     check{in: "integration/gate", test: "TestAdmissionsAgainstAModel"},
	},
	{
		clause: "rows are locked in one order",
		file:   "fencing/sql.go",
		old:    `AS x (k, b, n) ORDER BY n"`,
		new:    `AS x (k, b, n) ORDER BY n * (CASE WHEN $1::bigint % 2 = 0 THEN 1 ELSE -1 END)"`,
		by:     check{in: "integration/gate", test: "TestConcurrentAdmissions"},
	},
	{
		clause: "the condition built with the SDK's package is the same one",
		file:   "fencing/dynamodb.go",
		old:    `name.LessThanEqual(expression.Value`,
		new:    `name.GreaterThanEqual(expression.Value`,
		by:     check{in: "fencing", test: "TestAFencedWrite"},
	},
	{
		clause: "the name of a guard's table is one name",
		file:   "fencing/sql.go",
		old:    "strings.ReplaceAll(part, `\"`, `\"\"`)",
		new:    `part`,
		by:     check{in: "fencing", test: "TestAGuardRefusesBadInput"},
	},
}
