package main

// ofAsking: what is sent, how often, and what an answer proves.
var ofAsking = []mutant{
	{
		clause: "the SDK's own retries are off",
		file:   "internal/requests/requests.go",
		old:    `func noRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }`,
		new:    `func noRetries(o *dynamodb.Options) { _ = aws.NopRetryer{} }`,
		by:     check{in: "internal/requests", test: "TestOneSendingIsOneRequest"},
	},
	{
		clause: "a repeated transaction is the same request, by its token",
		file:   "internal/requests/requests.go",
		old:    `		out, kind, err := Once(ctx, c, r.Op, n, in, send)`,
		new: "		if again, ok := any(in).(*dynamodb.TransactWriteItemsInput); ok && n > 1 {\n" +
			"			again.ClientRequestToken = aws.String(r.ID + strconv.Itoa(n))\n		}\n" +
			"		out, kind, err := Once(ctx, c, r.Op, n, in, send)",
		by: check{in: "unitofwork", test: "TestARepeatedCommitIsTheSameRequest"},
	},
	{
		clause: "no two requests of a unit share a token",
		file:   "lockset/client.go",
		old:    `strconv.FormatInt(u.sends.Add(1), 10)`,
		new:    `strconv.FormatInt(u.sends.Load(), 10)`,
		by:     check{in: "lockset", test: "TestCosts"},
	},
	{
		clause: "a request under way is no answer",
		file:   "internal/requests/requests.go",
		old:    "		case NoAnswer, InProgress:\n			sent.Unanswered++\n		case Busy:",
		new:    "		case NoAnswer:\n			sent.Unanswered++\n		case Busy, InProgress:",
		by:     check{in: "internal/requests", test: "TestDoRepeatsUntilThereIsAnAnswer"},
	},
	{
		clause: "validation and access errors are never repeated",
		file:   "internal/requests/kind.go",
		old:    "		default:\n			return Invalid\n		}\n	case neverSent",
		new:    "		default:\n			return NoAnswer\n		}\n	case neverSent",
		by:     check{in: "internal/requests", test: "TestDoNeverRepeatsWhatIsDefinite"},
	},
	{
		clause: "a connection that breaks inside an answer is no answer",
		file:   "internal/requests/kind.go",
		old:    `"ServiceUnavailable", "UnknownError", "RequestTimeout"`,
		new:    `"ServiceUnavailable", "RequestTimeout"`,
		by:     check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "a server's error is no answer",
		file:   "internal/requests/kind.go",
		old:    `slices.Contains(noAnswerCodes, api.ErrorCode()), serverSide(err):`,
		new:    `slices.Contains(noAnswerCodes, api.ErrorCode()), serverSide(nil):`,
		by:     check{in: "internal/requests", test: "TestAServersErrorIsNoAnswerWhateverItsName"},
	},
	{
		clause: "a transaction cancelled by a conflict is repeated",
		file:   "internal/requests/kind.go",
		old:    `	case reasonConflict, reasonThrottled, reasonThroughput:`,
		new:    `	case reasonThrottled, reasonThroughput:`,
		by:     check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "a single write that met a transaction is repeated",
		file:   "internal/requests/kind.go",
		old:    `"TransactionConflictException", "ProvisionedThroughputExceededException",`,
		new:    `"ProvisionedThroughputExceededException",`,
		by:     check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "a condition that failed is news, whatever else happened",
		file:   "internal/requests/kind.go",
		old: `			return Refused
		case IsBusy(r)`,
		new: `			busy = true
		case IsBusy(r)`,
		by: check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "one sending takes well under a lease",
		file:   "internal/requests/requests.go",
		old:    `context.WithTimeout(ctx, c.Attempt)`,
		new:    `context.WithTimeout(ctx, c.Patience)`,
		by:     check{in: "internal/requests", test: "TestDoEndsWithTheContextAndByItself"},
	},
	{
		clause: "the sendings of one request end by themselves",
		file:   "internal/requests/requests.go",
		old:    `time.Since(sent.First) >= c.Patience {`,
		new:    `time.Since(sent.First) >= 2*c.Patience {`,
		by:     check{in: "internal/requests", test: "TestDoEndsWithTheContextAndByItself"},
	},
	{
		clause: "pauses between sendings are jittered by the sender and the number of sendings",
		file:   "internal/requests/requests.go",
		old:    `grown+time.Duration(Jitter(id, n)*`,
		new:    `grown+time.Duration(Jitter("", n)*`,
		by:     check{in: "internal/requests", test: "TestPausesDependOnWhoSends"},
	},
	{
		clause: "a request timeout is no answer",
		file:   "internal/requests/kind.go",
		old:    `, "RequestTimeout"`,
		new:    ``,
		by:     check{in: "internal/requests", test: "TestKindOfAnswersAsTheSDKReadsThem"},
	},
	{
		clause: "a statement that is neither done nor refused had no answer",
		file:   "internal/requests/kind.go",
		old:    "\tdefault:\n\t\treturn NoAnswer\n\t}\n}\n\n// errorOf is",
		new:    "\tdefault:\n\t\treturn Refused\n\t}\n}\n\n// errorOf is",
		by:     check{in: "internal/requests", test: "TestTheKindOfAStatement"},
	},
	{
		clause: "a table with another key is not taken for the one wanted",
		file:   "internal/requests/table.go",
		old:    `want != has {`,
		new:    `want != has && want == "" {`,
		by:     check{in: "internal/requests", test: "TestCreateTable"},
	},
}
