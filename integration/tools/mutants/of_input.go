package main

// ofInput: what nobody meant to be there harms nobody, and is left as it is.
var ofInput = []mutant{
	{
		clause: "a row that another lock client released is not taken",
		file:   "internal/lockrow/expressions.go",
		old:    `isNewer = "(attribute_not_exists(#key) OR #fence < :token)"`,
		new:    `isNewer = "(attribute_not_exists(#fence) OR #fence < :token)"`,
		by:     check{in: "lockset", test: "TestForeignRowsAreLeftAlone"},
	},
	{
		clause: "an exponent has one value, however many zeros it begins with",
		file:   "internal/actions/values.go",
		old:    `([+-]?)0*(\d*))?$`,
		new:    `([+-]?)(\d*))?$`,
		by:     check{in: "internal/actions", test: "FuzzNumber"},
	},
}
