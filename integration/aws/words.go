package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/holdall/holdall/integration/engines"
)

// plan says what is going to happen, and what it costs.
func plan(o options, t target, run []suite) string {
	text := fmt.Sprintf("DynamoDB  %s, Region %s\n", t.Endpoint, t.Region)
	if t.Caller != "" {
		text = fmt.Sprintf("account   %s\nRegion    %s\n", t.Caller, t.Region)
	}
	text += fmt.Sprintf("tables    their names begin with %q; no other is touched, and all are deleted in the end\n", o.namespace())
	for _, s := range run {
		text += fmt.Sprintf("runs      %s: %s\n", s.Name, s.About)
	}
	expected, most := usage{Write: expectedWrites, Read: expectedReads}, usage{Write: o.Units}
	text += fmt.Sprintf("sends     about %d requests in all, and %d at most\n", expectedRequests, o.Requests)
	if t.Kind == engines.KindAWS {
		text += fmt.Sprintf("costs     about $%.2f, and $%.2f at most: %d write and %d read request units, in all %.0f at most, as far as they can\n"+
			"          be estimated, at $%g and $%g for a million. That is the list price of us-east-1, on demand, since 2024-11-01:\n"+
			"          see yours at https://aws.amazon.com/dynamodb/pricing/on-demand/, and give it as -write-price and -read-price\n",
			expected.cost(o), most.cost(o), expectedWrites, expectedReads, o.Units, o.WritePrice, o.ReadPrice)
	}
	return text
}

// report says what a run has come to.
func report(w io.Writer, o options, t target, results []result, u usage) {
	fmt.Fprintln(w)
	for _, r := range results {
		state := "passed"
		if !r.ok() {
			state = "FAILED"
		}
		fmt.Fprintf(w, "%-12s %s: %d tests passed, %d failed, in %v\n", r.Suite, state, r.Passed, len(r.Failed), r.Took.Round(time.Second))
		for _, name := range r.Failed {
			fmt.Fprintf(w, "             failed: %s\n", name)
		}
		if r.Err != nil {
			fmt.Fprintf(w, "             %v\n", r.Err)
		}
	}
	for _, is := range []string{"refuted", "open", "confirmed"} {
		for _, r := range results {
			for _, v := range r.Verdicts {
				if v.Is == is {
					fmt.Fprintf(w, "%-12s %s: %s\n", is, v.Case, v.Why)
				}
			}
		}
	}
	fmt.Fprintf(w, "\n%d requests, about %.0f write and %.0f read request units, %d tables", u.Requests, u.Write, u.Read, u.Tables)
	if t.Kind == engines.KindAWS && t.Caller != "" {
		fmt.Fprintf(w, ": about $%.2f", u.cost(o))
	}
	fmt.Fprintln(w)
	if t.usage != nil {
		counted := t.usage()
		fmt.Fprintf(w, "the engine itself has counted %d requests, %.0f write and %.0f read request units\n", counted.Requests, counted.WriteUnits, counted.ReadUnits)
	}
	for _, code := range slices.Sorted(maps.Keys(u.Codes)) {
		fmt.Fprintf(w, "  %6d  %s\n", u.Codes[code], code)
	}
}
