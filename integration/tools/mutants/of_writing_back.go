package main

// ofWritingBack: only what was changed changes, and nothing is lost without an error.
var ofWritingBack = []mutant{
	{
		clause: "a field that cannot be decoded is named",
		file:   "internal/writeback/codec.go",
		old:    `return c.whereDecoding(`,
		new:    `return err; return c.whereDecoding(`,
		by:     check{in: "unitofwork", test: "TestTheFieldThatCannotBeRead"},
	},
}
