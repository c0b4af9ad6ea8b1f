package main

// ofSettling: what is broken about a dead unit harms nobody else, and nothing is lost
// in silence.
var ofSettling = []mutant{
	{
		clause: "a record wait ends while another settles",
		file:   "internal/locks/recovery.go",
		old:    "case <-ended.Done():",
		new:    "case <-ctx.Done():",
		by:     check{in: "unitofwork", test: "TestARecordWaitWhileAnotherSettles"},
	},
	{
		clause: "a family that is stuck keeps no other",
		file:   "unitofwork/apply.go",
		old:    "p = p.Without(blocked)\n",
		new:    "if len(blocked) > 0 {\n\t\treturn nil\n\t}\n",
		by:     check{in: "unitofwork", test: "TestOneStuckFamilyKeepsNobodyElse"},
	},
	{
		clause: "a put's key is tried, too",
		file:   "unitofwork/verify.go",
		old:    "append(examples, keys...), apart",
		new:    "append(examples, keys[:0]...), apart",
		by:     check{in: "unitofwork", test: "TestATableWithAnotherKey"},
	},
}
