package main

// ofWritingBack: only what was changed changes, and nothing is lost without an error.
var ofWritingBack = []mutant{
	{
		clause: "a put keeps what its struct does not know within a map",
		file:   "internal/writeback/merge.go",
		old:    `if wasMap && knewMap {`,
		new:    `if wasMap && knewMap && t == c.typ {`,
		by:     check{in: "internal/writeback", test: "TestWhatHasChangedIsWritten"},
	},
	{
		clause: "what a struct knows and has emptied is removed",
		file:   "internal/writeback/merge.go",
		old:    `if _, still := now[name]; !still {`,
		new:    `if _, still := now[name]; !still && raw == nil {`,
		by:     check{in: "internal/writeback", test: "TestWhatHasChangedIsWritten"},
	},
	{
		clause: "of a set all that encodes as what is still there is kept",
		file:   "internal/writeback/merge.go",
		old:    `if still[text(e)] {`,
		new:    `if still[text(e)] && !still[text(read[i])] {`,
		by:     check{in: "internal/writeback", test: "TestWhatHasChangedIsWritten"},
	},
	{
		clause: "a guard is that of the attribute with the exact name",
		file:   "internal/writeback/spelling.go",
		old:    `delete(item, name)`,
		new:    `_ = name`,
		by:     check{in: "unitofwork", test: "TestBothSpellingsSurvive"},
	},
	{
		clause: "a field that cannot be decoded is named",
		file:   "internal/writeback/codec.go",
		old:    `return c.whereDecoding(`,
		new:    `return err; return c.whereDecoding(`,
		by:     check{in: "unitofwork", test: "TestTheFieldThatCannotBeRead"},
	},
}
