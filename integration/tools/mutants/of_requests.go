package main

// ofAsking: what is sent, how often, and what an answer proves.
var ofAsking = []mutant{
	{
		clause: "a repeated transaction is the same request, by its token",
		file:   "internal/requests/requests.go",
		old:    `		out, kind, timedOut, err := once(ctx, c, s, in, send)`,
		new: "		if again, ok := any(in).(*dynamodb.TransactWriteItemsInput); ok && n > 1 {\n" +
			"			again.ClientRequestToken = aws.String(r.ID + strconv.Itoa(n))\n		}\n" +
			"		out, kind, timedOut, err := once(ctx, c, s, in, send)",
		by: check{in: "unitofwork", test: "TestARepeatedCommitIsTheSameRequest"},
	},
	{
		clause: "validation and access errors are never repeated",
		file:   "internal/requests/kind.go",
		old:    "		default:\n			return Invalid\n		}\n	case isUnsent",
		new:    "		default:\n			return NoAnswer\n		}\n	case isUnsent",
		by:     check{in: "internal/requests", test: "TestDoNeverRepeatsWhatIsDefinite"},
	},
	{
		clause: "a transaction cancelled by a conflict is repeated",
		file:   "internal/requests/kind.go",
		old:    `	case reasonConflict, reasonThrottled, reasonThroughput:`,
		new:    `	case reasonThrottled, reasonThroughput:`,
		by:     check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "one sending takes well under a lease",
		file:   "internal/requests/once.go",
		old:    `context.WithTimeout(ctx, s.timeout)`,
		new:    `context.WithTimeout(ctx, c.Patience)`,
		by:     check{in: "internal/requests", test: "TestDoEndsWithTheContextAndByItself"},
	},
	{
		clause: "a statement that is neither done nor refused had no answer",
		file:   "internal/requests/kind.go",
		old:    "\tdefault:\n\t\treturn NoAnswer\n\t}\n}\n\n// errorOf is",
		new:    "\tdefault:\n\t\treturn Refused\n\t}\n}\n\n// errorOf is",
		by:     check{in: "internal/requests", test: "TestTheKindOfAStatement"},
	},
}
