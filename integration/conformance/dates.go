package conformance

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// A process that finds a row without the table's time, or with one in the future, dates it. Of several, the
// first counts.
var (
	dateHolder = write{"SET #renewed = :renewed",
		"#rvn = :observed AND attribute_exists(#unit) AND (attribute_not_exists(#renewed) OR #renewed = :seen)", item{":seen": number(0)}}
	dateTurn = write{"SET #turn = :turn",
		"#released = :one AND attribute_not_exists(#below) AND #queue[0] = :other AND #fence = :fence AND (attribute_not_exists(#turn) OR #turn = :seen)",
		item{":seen": number(0), ":fence": older}}

	noteSilence = write{"SET #silentOf = :silentOf, #silentFor = :silentFor",
		"#rvn = :observed AND attribute_exists(#unit) AND (attribute_not_exists(#silentOf) OR #silentOf <> :silentOf OR #silentFor < :silentFor)", nil}
)

// seeing is the write of a process that has seen this time on the row.
func (w write) seeing(at int64) write {
	w.values = with(w.values, item{":seen": number(at)})
	return w
}

func dateCases() (all []expression) {
	for _, form := range []struct {
		name string
		attr string
		do   write
		row  item
	}{
		{"holder", "renewedAt", dateHolder, held},
		{"turn", "turnAt", dateTurn, queued(released, "other", "me")},
	} {
		dated := with(form.row, item{form.attr: number(tableNow)})
		try := func(name string, had types.AttributeValue, do write, done bool) {
			e := expression{form.name + ": " + name, with(form.row, item{form.attr: had}), do, nil}
			if done {
				e.after = dated
			}
			all = append(all, e)
		}
		try("not dated", nil, form.do, true)
		try("dated 0", number(0), form.do, true)
		try("dated meanwhile", number(aliveAt), form.do, false)
		try("dated by a text", text("0"), form.do, false)
		try("dated by a NULL", &types.AttributeValueMemberNULL{Value: true}, form.do, false)
		try("in the future, as seen", number(tableNow+1), form.do.seeing(tableNow+1), true)
		try("in the future, and dated meanwhile", number(tableNow), form.do.seeing(tableNow+1), false)
		try("in the future, and gone meanwhile", nil, form.do.seeing(tableNow+1), true)

		refuse := func(name string, change item) {
			all = append(all, expression{form.name + ": " + name, with(with(form.row, item{form.attr: nil}), change), form.do, nil})
		}
		all = append(all, expression{form.name + ": no row", nil, form.do, nil})
		if form.attr == "turnAt" {
			refuse("held", item{"isReleased": nil, "unit": text("other")})
			refuse("released with another value", item{"isReleased": text("0")})
			refuse("intents below", item{"below": set("other address:9")})
			refuse("another head", item{"queue": list("me", "other")})
			refuse("emptied", item{"queue": list()})
			refuse("no queue", item{"queue": nil})
			refuse("no list", item{"queue": text("other")})
			refuse("had since", item{"fence": number(token)})
			refuse("no fence", item{"fence": nil})
		} else {
			refuse("renewed since", item{"recordVersionNumber": text("rvn-3")})
			refuse("no RVN", item{"recordVersionNumber": nil})
			refuse("freed since", item{"isReleased": text("1"), "unit": nil})
			// Nobody evicts its holder, but processes look for signs of life there, too.
			marked := with(held, item{"renewedAt": nil, "pending": text("units")})
			all = append(all, expression{"holder: marked", marked, form.do, with(marked, item{"renewedAt": number(tableNow)})})
		}
	}
	return all
}

func silenceCases() []expression {
	noted := func(of string, ms int64) item {
		return with(held, item{"silentOf": text(of), "silentFor": number(ms)})
	}
	after := noted("rvn-1", 5000)
	return []expression{
		{"the first", held, noteSilence, after},
		{"of another sign of life", noted("rvn-0", 9000), noteSilence, after},
		// As text, 900 would be longer.
		{"longer", noted("rvn-1", 900), noteSilence, after},
		{"as long", after, noteSilence, nil},
		{"shorter", noted("rvn-1", 5001), noteSilence, nil},
		{"beside half a record", with(held, item{"silentOf": text("rvn-1")}), noteSilence, nil},
		{"beside the other half", with(held, item{"silentFor": number(9000)}), noteSilence, after},
		{"beside a text", with(held, item{"silentOf": text("rvn-1"), "silentFor": text("1")}), noteSilence, nil},
		{"of one that is no text", with(held, item{"silentOf": number(1), "silentFor": number(9000)}), noteSilence, after},
		{"renewed since", with(held, item{"recordVersionNumber": text("rvn-3")}), noteSilence, nil},
		{"freed since", released, noteSilence, nil},
		{"no row", nil, noteSilence, nil},
	}
}
