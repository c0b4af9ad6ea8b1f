package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
)

func change(record string, seq int, unit string, token fencing.Token, job string) books.Change {
	return books.Change{Record: record, Seq: seq, Unit: unit, Stamp: token, Job: job}
}

func of(branch, nonce string) audit.Unit { return audit.Unit{Branch: branch, Nonce: nonce} }

// believed is a testimony that the books confirm.
func believed() (audit.Testimony, audit.Records) {
	return audit.Testimony{
			Begun: map[string]bool{"a/1": true, "a/2": true, "a/3": true, "a/4": true, "b/1": true, "b/2": true},
			Done:  map[string]bool{"a/1": true},
			Not:   map[string]bool{"a/2": true},
			Held:  map[audit.Unit]fencing.Token{of("a", "u7"): 7, of("a", "u8"): 8, of("b", "u9"): 9, of("b", "u11"): 11},
			Lost:  map[audit.Unit]bool{of("a", "u8"): true, of("b", "u7"): true, of("b", "u11"): true},
			Tried: map[audit.Unit]bool{of("a", "u12"): true, of("a", "u13"): true},
			Void:  map[audit.Unit]bool{of("a", "u13"): true},
			Led:   map[audit.Unit]string{},
		}, audit.Records{History: []books.Change{
			change("account:x", 1, "u7", 7, "a/1"), change("account:y", 1, "u7", 7, "a/1"), // both sides of one
			change("account:x", 2, "u9", 9, "b/1"),                                                      // whose teller was not told
			{Record: "account:x", Seq: 3, Unit: "u11", Stamp: 11, Job: "b/2", Kind: books.KindMonthEnd}, // stopped while it was decided
			{Record: "account:x", Seq: 4, Unit: "u12", Token: 12, Stamp: 20, Job: "a/4"},                // without locks, and written again since
		}}
}

// What the checks of a testimony count.
const (
	unlocked = "changes by units that had lost their locks, or never had any and never began to commit"
	void     = "changes by units that were told that nothing was written"
	apart    = "changes by units that were committed together, and not as one"
)

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
		map[string][]string{"jobs told not committed that are in the books": {"job b/1, by the units [u9]"}},
	},
	"failed": {
		func(t *audit.Testimony, _ *audit.Records) { t.Failed = []string{"a/3: because"} },
		map[string][]string{"jobs that failed of what nobody expected": {"a/3: because"}},
	},
	"done twice": {
		func(t *audit.Testimony, r *audit.Records) {
			t.Held[of("b", "u10")] = 10
			r.History = append(r.History, change("account:z", 1, "u10", 10, "b/1"))
		},
		map[string][]string{"jobs done by two units": {"job b/1, by the units [u10 u9]"}},
	},
	"by nobody": {
		func(t *audit.Testimony, r *audit.Records) { delete(t.Begun, "b/1") },
		map[string][]string{"changes that nobody began": {`job "b/1", by the units [u9]`}},
	},
	"no locks": {
		func(t *audit.Testimony, r *audit.Records) { delete(t.Held, of("b", "u9")) },
		map[string][]string{unlocked: {
			"account:x: change 2, job b/1: its unit u9 never had its locks, and never began to commit without them",
		}},
	},
	"the locks of another branch": {
		func(t *audit.Testimony, r *audit.Records) { r.History[4].Unit = "u9" },
		map[string][]string{unlocked: {
			"account:x: change 4, job a/4: its unit u9 never had its locks, and never began to commit without them",
		}},
	},
	"after the locks were lost": {
		func(t *audit.Testimony, r *audit.Records) { t.Lost[of("b", "u9")] = true },
		map[string][]string{unlocked: {"account:x: change 2, job b/1: its unit u9 had lost its locks"}},
	},
	"another token": {
		func(t *audit.Testimony, r *audit.Records) { r.History[2].Stamp = 10 },
		map[string][]string{unlocked: {"account:x: change 2, job b/1: its unit u9 had the token 9, and the change has 10"}},
	},
	"without locks, and never began to commit": {
		func(t *audit.Testimony, r *audit.Records) { delete(t.Tried, of("a", "u12")) },
		map[string][]string{unlocked: {
			"account:x: change 4, job a/4: its unit u12 never had its locks, and never began to commit without them",
		}},
	},
	"a void run": {
		func(t *audit.Testimony, r *audit.Records) { r.History[4].Unit = "u13" },
		map[string][]string{void: {"account:x: change 4, job a/4, by the unit u13"}},
	},
	"led by one without locks, with another token": {
		func(t *audit.Testimony, r *audit.Records) {
			t.Tried[of("a", "u14")], t.Led[of("a", "u14")] = true, "u12"
			r.History = append(r.History, change("account:y", 2, "u14", 13, "a/4"))
			r.History[4].Job = "a/3"
		},
		map[string][]string{apart: {
			"account:y: change 2, job a/4: its unit u14 has the token 13, and another of what u12 led has 12",
		}},
	},
	"led by one under locks, with another token": {
		func(t *audit.Testimony, r *audit.Records) { t.Led[of("a", "u12")] = "u7" },
		map[string][]string{apart: {
			"account:x: change 4, job a/4: its unit u12 has the token 12, and another of what u7 led has 7",
		}},
	},
	"led by one that had lost its locks": {
		func(t *audit.Testimony, r *audit.Records) {
			t.Led[of("a", "u12")] = "u8"
			r.History[4].Token = 8
		},
		map[string][]string{apart: {
			"account:x: change 4, job a/4: its unit u12 was led by u8, which had lost its locks",
		}},
	},
	"rolled back": {
		func(t *audit.Testimony, r *audit.Records) { t.Void[of("b", "u9")] = true },
		map[string][]string{void: {"account:x: change 2, job b/1, by the unit u9"}},
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
