package main

// ofMending: what an operator chooses about a stuck unit is done on what was shown, and once.
var ofMending = []mutant{
	{
		clause: "a record is mended only while the unit has its key",
		file:   "unitofwork/mend.go",
		old:    `append(items, pending.CheckHeld(o.step), stamper.OnlyAsShown(write, w.Found)), nil`,
		new:    `append(items, stamper.OnlyAsShown(write, w.Found)), nil`,
		by:     check{in: "unitofwork", test: "TestWhatWasShownHasChanged"},
	},
	{
		clause: "a record is mended only as it was shown, in every attribute",
		file:   "internal/actions/shown.go",
		old:    `for i, name := range sortedNames(shown) {`,
		new:    `for i, name := range sortedNames(map[string]types.AttributeValue{s.Attribute: shown[s.Attribute]}) {`,
		by:     check{in: "unitofwork", test: "TestWhatWasShownHasChanged"},
	},
	{
		clause: "a record that is kept has exactly the unit's stamp",
		file:   "unitofwork/mend.go",
		old:    `actions.NewStamper(o.fence, o.Token)`,
		new:    `actions.NewStamper(o.fence, o.Token+1)`,
		by:     check{in: "unitofwork", test: "TestAnOperatorDecidesAboutARecord"},
	},
	{
		clause: "a row that is put back free keeps older tokens out than the one that is gone did",
		file:   "internal/locks/prepared.go",
		old:    `	token := p.c.clock.Next()`,
		new:    `	token := p.token`,
		by:     check{in: "unitofwork", test: "TestAnOperatorDecidesAboutAKeyWhoseRowIsGone"},
	},
	{
		clause: "what a permission is in the way of is not kept",
		file:   "unitofwork/mend_look.go",
		old:    `invalid := requests.IsInvalidWrite(cause)`,
		new:    `invalid := requests.IsInvalidWrite(cause) || true`,
		by:     check{in: "unitofwork", test: "TestAPermissionIsNoChoice"},
	},
}
