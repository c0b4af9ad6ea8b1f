package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Saw is the note of a change whose unit has read another account, which had so many changes.
func Saw(account string, changes int) string { return fmt.Sprintf("saw %d %s", changes, account) }

// saw returns what a note made by Saw says.
func saw(c books.Change) (record string, changes int, is bool) {
	var account string
	if n, _ := fmt.Sscanf(c.Note, "saw %d %s", &changes, &account); n != 2 {
		return "", 0, false
	}
	return books.AccountRecord(account), changes, true
}

// skews: of two units that each changed what the other had read, the later one has seen the change
// of the earlier one. One finding for each two accounts: the first.
func skews(r Records) (findings []string) {
	of := histories(r)
	for _, record := range slices.Sorted(maps.Keys(of)) {
		for _, one := range of[record] {
			beside, seen, is := saw(one)
			if !is || beside < record {
				continue
			}
			i := slices.IndexFunc(of[beside], func(other books.Change) bool {
				back, known, is := saw(other)
				return is && back == record && other.Seq > seen && known < one.Seq
			})
			if i >= 0 {
				findings = append(findings, fmt.Sprintf("change %d of %s and change %d of %s, by the units %s and %s",
					one.Seq, record, of[beside][i].Seq, beside, one.Unit, of[beside][i].Unit))
				break
			}
		}
	}
	return findings
}
