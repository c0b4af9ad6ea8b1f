package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

const one, two = "0000000000000007", "0000000000000009"

func change(record string, seq int, token, job string) books.Change {
	return books.Change{Record: record, Seq: seq, Token: token, Job: job}
}

// believed is a testimony that the books confirm.
func believed() (audit.Testimony, audit.Records) {
	return audit.Testimony{
			Begun: map[string]bool{"a/1": true, "a/2": true, "a/3": true, "b/1": true, "b/2": true},
			Done:  map[string]bool{"a/1": true},
			Not:   map[string]bool{"a/2": true},
			Held:  map[audit.Hold]bool{{Branch: "a", Token: 7}: true, {Branch: "a", Token: 8}: true, {Branch: "b", Token: 9}: true, {Branch: "b", Token: 11}: true},
			Lost:  map[audit.Hold]bool{{Branch: "a", Token: 8}: true, {Branch: "b", Token: 7}: true, {Branch: "b", Token: 11}: true},
		}, audit.Records{History: []books.Change{
			change("account:x", 1, one, "a/1"), change("account:y", 1, one, "a/1"), // both sides of one
			change("account:x", 2, two, "b/1"), // whose teller was not told
			{Record: "account:x", Seq: 3, Token: "0000000000000011", Job: "b/2", Kind: books.KindMonthEnd}, // stopped while it was decided
		}}
}

var spoilt = map[string]struct {
	spoil func(*audit.Testimony, *audit.Records)
	want  map[string][]string
}{
	"told committed, and not there": {
		func(t *audit.Testimony, _ *audit.Records) { t.Done["a/3"] = true },
		map[string][]string{"jobs told committed that are not in the books": {"job a/3"}},
	},
	"told refused, and there": {
		func(t *audit.Testimony, _ *audit.Records) { t.Not["b/1"] = true },
		map[string][]string{"jobs told not committed that are in the books": {"job b/1, by the tokens [" + two + "]"}},
	},
	"failed": {
		func(t *audit.Testimony, _ *audit.Records) { t.Failed = []string{"a/3: because"} },
		map[string][]string{"jobs that failed of what nobody expected": {"a/3: because"}},
	},
	"done twice": {
		func(t *audit.Testimony, r *audit.Records) {
			t.Held[audit.Hold{Branch: "b", Token: 10}] = true
			r.History = append(r.History, change("account:z", 1, "0000000000000010", "b/1"))
		},
		map[string][]string{"jobs done by two units": {"job b/1, by the tokens [" + two + " 0000000000000010]"}},
	},
	"by nobody": {
		func(t *audit.Testimony, r *audit.Records) { delete(t.Begun, "b/1") },
		map[string][]string{"changes that nobody began": {`job "b/1", by the tokens [` + two + "]"}},
	},
	"without locks": {
		func(t *audit.Testimony, r *audit.Records) { delete(t.Held, audit.Hold{Branch: "b", Token: 9}) },
		map[string][]string{"changes by units that never had their locks, or had lost them": {
			"account:x: change 2, job b/1: its unit, with the token " + two + ", never had its locks",
		}},
	},
	"after the locks were lost": {
		func(t *audit.Testimony, r *audit.Records) { t.Lost[audit.Hold{Branch: "b", Token: 9}] = true },
		map[string][]string{"changes by units that never had their locks, or had lost them": {
			"account:x: change 2, job b/1: its unit, with the token " + two + ", had lost its locks",
		}},
	},
	"a token that is none": {
		func(t *audit.Testimony, r *audit.Records) { r.History[2].Token = "x" },
		map[string][]string{"changes by units that never had their locks, or had lost them": {
			"account:x: change 2, job b/1: its unit, with the token x, never had its locks",
		}},
	},
}

// What each check of a testimony finds, and only that.
func TestCheckTestimony(t *testing.T) {
	testimony, records := believed()
	require.True(t, audit.Sound(audit.CheckTestimony(testimony, records)))
	for name, c := range spoilt {
		t.Run(name, func(t *testing.T) {
			testimony, records := believed()
			c.spoil(&testimony, &records)
			found := map[string][]string{}
			for _, r := range audit.CheckTestimony(testimony, records) {
				if len(r.Findings) > 0 {
					found[r.Count] = r.Findings
				}
			}
			require.Equal(t, c.want, found)
		})
	}
}
