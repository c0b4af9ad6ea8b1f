package main

import "github.com/holdall/holdall/integration/tools/mutants/internal/places"

// What becomes of drawn mutants that no test can be asked to notice.
const (
	equivalent verdict = "equivalent" // nothing that it does is different
	diagnostic verdict = "diagnostic" // only what people read is different: a log line, the text of an error
)

// unseen is a change of that kind, as it is printed when it is drawn. Without new it is
// whatever the operator makes of old.
type unseen struct {
	file, operator string
	kind           verdict
	why            string
	old, new       string
}

// is reports whether a change is the one that is listed.
func (u unseen) is(c places.Change) bool {
	return u.file == c.File && u.operator == c.Operator && u.old == c.Old && (u.new == "" || u.new == c.New)
}

// find returns the listed one that a change is, nil if it is none.
func find(list []unseen, c places.Change) *unseen {
	for i := range list {
		if list[i].is(c) {
			return &list[i]
		}
	}
	return nil
}
