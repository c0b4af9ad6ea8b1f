package main

// ofStaging: every write has a guard that is held, a fence, and the next version; nothing that was read
// is lost without an error.
var ofStaging = []mutant{
	{
		clause: "a write needs a held key that guards it",
		file:   "unitofwork/unit.go",
		old:    "	return holder, err\n}",
		new:    "	if errors.As(err, new(*guardError)) {\n		return guard, nil\n	}\n	return holder, err\n}",
		by:     check{in: "unitofwork", test: "TestRefusedWhenStaged"},
	},
	{
		clause: "one number is one key, however it is written",
		file:   "internal/actions/stamp.go",
		old:    `return append(text, NumberText(v.Value)...)`,
		new:    `return append(text, v.Value...)`,
		by:     check{in: "unitofwork", test: "TestRefusedWhenStaged"},
	},
	{
		clause: "a table is the same one by its name and by its ARN",
		file:   "unitofwork/stage.go",
		old:    `return table[strings.LastIndexByte(table, '/')+1:]`,
		new:    `return table[strings.LastIndexByte(table, '\x00')+1:]`,
		by:     check{in: "unitofwork", test: "TestRefusedWhenStaged"},
	},
	{
		clause: "a staged put stamps the fence",
		file:   "internal/actions/stamp.go",
		old:    "		put.Item[s.Attribute] = s.Token()\n",
		new:    "",
		by:     check{in: "unitofwork", test: "TestEveryKindOfWrite"},
	},
	{
		clause: "a staged write checks the fence",
		file:   "internal/expressions/expressions.go",
		old:    `e.Require(f.Condition)`,
		new:    `e.Require("attribute_not_exists(holdall) OR " + f.Condition)`,
		by:     check{in: "unitofwork", test: "TestStartingOverIsBoundedAndHasAFreshToken"},
	},
	{
		clause: "a delete is refused by a newer fence",
		file:   "internal/actions/stamp.go",
		old:    "\treturn item, s.Join(e)",
		new:    "\tif item.Delete != nil {\n\t\ts = NewStamper(s.Attribute, 1<<52)\n\t}\n\treturn item, s.Join(e)",
		by:     check{in: "unitofwork", test: "TestANewerFenceRefusesEveryKindOfWrite"},
	},
	{
		clause: "an update leaves the next version",
		file:   "internal/actions/version.go",
		old:    `versionName + ", " + versionZero + ") + " + versionOne`,
		new:    `versionName + ", " + versionZero + ") + " + versionZero`,
		by:     check{in: "unitofwork", test: "TestAProgramWithoutLocksIsRefused"},
	},
	{
		clause: "a field that cannot be decoded is named",
		file:   "internal/writeback/codec.go",
		old:    `return c.whereDecoding(`,
		new:    `return err; return c.whereDecoding(`,
		by:     check{in: "unitofwork", test: "TestTheFieldThatCannotBeRead"},
	},
}
