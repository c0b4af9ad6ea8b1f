package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// How many rows a page has at most, and how many of them are called the hottest: nobody reads more.
const (
	mostShown = 200
	mostHot   = 10
)

// Filter says which rows are shown.
type Filter struct {
	Text string // in the key, the owner, the purpose or the unit, in whatever case; empty: all
	Only string // the name of a kind; empty: all
}

// kinds of rows that can be shown alone.
var kinds = []struct {
	name, title string
	has         func(Row) bool
}{
	{"held", "Held", func(r Row) bool { return r.Row.Held() }},
	{"waiting", "Waited for", func(r Row) bool { return r.Row.Awaited() }},
	{"dead", "Dead", func(r Row) bool { return r.Life == "dead" }},
	{"prepared", "Prepared", func(r Row) bool { return r.Row.Prepared() }},
	{"stuck", "Stuck", func(r Row) bool { return r.Stuck }},
	{"damaged", "Damaged", func(r Row) bool { return r.Row.Damage != "" }},
}

// filterOf reads a filter from the query of a URL; a kind that there is not is none.
func filterOf(q url.Values) Filter {
	f := Filter{Text: strings.TrimSpace(q.Get("q"))}
	for _, k := range kinds {
		if k.name == q.Get("only") {
			f.Only = k.name
		}
	}
	return f
}

// Query is the filter in a URL.
func (f Filter) Query() string {
	q := url.Values{}
	if f.Text != "" {
		q.Set("q", f.Text)
	}
	if f.Only != "" {
		q.Set("only", f.Only)
	}
	return q.Encode()
}

func (f Filter) wants(r Row) bool {
	for _, k := range kinds {
		if k.name == f.Only && !k.has(r) {
			return false
		}
	}
	text, who := strings.ToLower(f.Text), r.Who()
	return slices.ContainsFunc([]string{string(r.Row.Key), who.Owner, who.Purpose, who.Unit}, func(s string) bool {
		return strings.Contains(strings.ToLower(s), text)
	})
}

// Overview is what the first page shows.
type Overview struct {
	Filter Filter
	Kinds  []Kind
	Counts string // in a sentence, for those who cannot see them
	Hot    []Row  // with the most waiting first
	Stuck  []StuckUnit
	Rows   []Row
	Found  int    // rows that the filter wants
	More   int    // that were not kept
	Rates  []Rate // that are known
	List   List
}

// Kind is a link to the rows of a kind.
type Kind struct {
	Name, Title, Href string
	Count             int
	Chosen            bool
	Alarms            bool // somebody has to do something about these
}

// StuckUnit is one with the rows that it keeps.
type StuckUnit struct {
	Unit, Owner string
	Keys        []Row
}

// overview decides what to show of a list.
func overview(l List, f Filter) Overview {
	o := Overview{Filter: f, More: l.More, List: l}
	o.Kinds = []Kind{{Title: "All", Href: href("/", Filter{Text: f.Text}), Count: len(l.Rows), Chosen: f.Only == ""}}
	var counts []string
	for _, k := range kinds {
		n := 0
		for _, r := range l.Rows {
			if k.has(r) {
				n++
			}
		}
		if n > 0 || f.Only == k.name || k.name != "damaged" {
			o.Kinds = append(o.Kinds, Kind{
				Name: k.name, Title: k.title, Href: href("/", Filter{Text: f.Text, Only: k.name}), Count: n, Chosen: f.Only == k.name,
				Alarms: n > 0 && (k.name == "dead" || k.name == "stuck" || k.name == "damaged"),
			})
			counts = append(counts, fmt.Sprintf("%d %s", n, strings.ToLower(k.title)))
		}
	}
	for _, r := range l.Rows {
		if !f.wants(r) {
			continue
		}
		if o.Found++; len(o.Rows) < mostShown {
			o.Rows = append(o.Rows, r)
		}
		if r.Row.Awaited() {
			o.Hot = append(o.Hot, r)
		}
	}
	slices.SortStableFunc(o.Hot, func(a, b Row) int { return cmp.Compare(len(b.Row.Queue), len(a.Row.Queue)) })
	o.Hot = o.Hot[:min(len(o.Hot), mostHot)]
	o.Stuck = stuckUnits(l.Rows)
	for _, r := range l.Rates {
		if r.Known {
			o.Rates = append(o.Rates, r)
		}
	}
	o.Counts = fmt.Sprintf("%d keys: %s. The filter shows %d.", len(l.Rows), strings.Join(counts, ", "), o.Found)
	return o
}

func href(path string, f Filter) string {
	if q := f.Query(); q != "" {
		return path + "?" + q
	}
	return path
}

// stuckUnits are those that have stuck rows, in the order of the first of them. They are shown whatever the
// filter: they wait for somebody.
func stuckUnits(rows []Row) (all []StuckUnit) {
	for _, r := range rows {
		if !r.Stuck {
			continue
		}
		who := r.Who()
		at := slices.IndexFunc(all, func(u StuckUnit) bool { return u.Unit == who.Unit })
		if at < 0 {
			all, at = append(all, StuckUnit{Unit: who.Unit, Owner: who.Owner}), len(all)
		}
		all[at].Keys = append(all[at].Keys, r)
	}
	return all
}
