package chaos

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
)

// Statements: late was sent when second had been written.
var (
	opened  = books.Statement{Account: "a", Balance: 100, Changes: 0, Token: 10}
	earlier = books.Statement{Account: "a", Balance: 60, Changes: 1, Token: 12}
	again   = books.Statement{Account: "a", Balance: 60, Changes: 1, Token: 14}
	late    = books.Statement{Account: "a", Balance: 60, Changes: 1, Token: 15}
	second  = books.Statement{Account: "a", Balance: 65, Changes: 2, Token: 16}
	other   = books.Statement{Account: "b", Balance: 30, Changes: 0, Token: 11}
)

// diaries are those of two branches, which the books and the archive of the case confirm.
func diaries() map[string][]entry {
	statement := func(is, job, outcome string, s ...books.Statement) entry {
		return entry{Is: is, Job: job, Outcome: outcome, Statements: s}
	}
	return map[string][]entry{
		"a": {
			{Is: began, Job: "a/1", Kind: "move"}, {Is: began, Job: "a/2", Kind: "move"}, {Is: began, Job: "a/3", Kind: "move"}, {Is: began, Job: "a/4", Kind: "move"},
			{Is: began, Job: "a/5", Kind: "statements"}, {Is: began, Job: "a/6", Kind: kindOverviews},
			{Is: told, Job: "a/1", Outcome: "committed"}, {Is: told, Job: "a/2", Outcome: "refused"}, {Is: told, Job: "a/6", Outcome: "committed"},
			{Is: holds, Unit: "u7", Token: 7}, {Is: ended, Unit: "u7", Outcome: "committed"},
			{Is: holds, Unit: "u8", Token: 8}, {Is: loses, Unit: "u8"},
			{Is: tries, Unit: "u12"}, {Is: tries, Unit: "u13"}, {Is: ended, Unit: "u13", Outcome: "fell back"},
			{Is: tries, Unit: "u14"}, {Is: ended, Unit: "u14", Outcome: "committed", Leader: "u12"},
			statement(sends, "a/5", "", opened, earlier, other), statement(filed, "a/5", "committed", earlier, other), {Is: told, Job: "a/5", Outcome: "committed"},
			{Is: shown, Job: "a/6", Positions: []position{{Record: "account:x", Changes: 1, Balance: 1}, {Record: "account:y", Changes: 1, Balance: 9}}},
		},
		"b": {
			{Is: began, Job: "b/1", Kind: "move"}, {Is: began, Job: "b/2", Kind: "move"}, {Is: began, Job: "b/3", Kind: "statement"},
			{Is: holds, Unit: "u9", Token: 9}, {Is: loses, Unit: "u7"}, // of another branch
			{Is: holds, Unit: "u11", Token: 11}, {Is: loses, Unit: "u11"},
			statement(sends, "b/3", "", again), statement(sends, "b/3", "", late), statement(filed, "b/3", "refused", late),
			statement(sends, "b/3", "", second), statement(filed, "b/3", "committed", second), // it was killed before its teller was told
		},
	}
}

func confirmed() (books.Records, []books.Statement) {
	change := func(record string, seq int, unit string, token fencing.Token, job string, balance int64) books.Change {
		return books.Change{Record: record, Seq: seq, Unit: unit, Stamp: token, Job: job, Balance: balance}
	}
	month := change("account:x", 3, "u11", 11, "b/2", 3)
	month.Kind = books.KindMonthEnd // stopped while it was decided
	return books.Records{
		Accounts: []books.Account{{ID: "x"}, {ID: "y", Opening: 10}},
		History: []books.Change{
			change("account:x", 1, "u7", 7, "a/1", 1), change("account:y", 1, "u7", 7, "a/1", 9),
			change("account:x", 2, "u9", 9, "b/1", 2), month, change("account:x", 4, "u12", 12, "a/4", 4), change("account:y", 2, "u14", 12, "a/3", 8),
		},
	}, []books.Statement{other, earlier, again, second}
}

type world struct {
	of map[string][]entry
	r  *books.Records
	a  *[]books.Statement
}

func add(branch string, e entry) func(world) {
	return func(w world) { w.of[branch] = append(w.of[branch], e) }
}

// without removes an entry about a unit or a job.
func without(branch, is, of string) func(world) {
	return func(w world) {
		var kept []entry
		for _, e := range w.of[branch] {
			if e.Is != is || e.Unit != of && e.Job != of {
				kept = append(kept, e)
			}
		}
		w.of[branch] = kept
	}
}

// Checks.
const (
	unlocked = "changes by units that had lost their locks, or never had any and never began to commit"
	void     = "changes by units that were told that nothing was written"
	apart    = "changes by units that were committed together, and not as one"
	skew     = "changes that did not see each other"
	half     = "overviews of half a unit"
	nowhere  = "records that never were as an overview has them"
	unfiled  = "statements told written that are not in the archive, or stand behind an older one"
	stale    = "statements told stale that are in the archive"
	unsent   = "statements in the archive that were never sent"
	unheard  = "statement jobs told committed without the archive's answer"
)

var falsified = map[string]struct {
	falsify func(world)
	want    string
	also    string
}{
	"nothing":                       {falsify: func(world) {}},
	"told committed, and not there": {falsify: add("a", entry{Is: told, Job: "a/2", Outcome: "committed"}), want: "jobs told committed that are not in the books"},
	"told refused, and there":       {falsify: add("b", entry{Is: told, Job: "b/1", Outcome: "refused"}), want: "jobs told not committed that are in the books"},
	"failed":                        {falsify: add("a", entry{Is: told, Job: "a/3", Outcome: "failed", Why: "because"}), want: "jobs that failed unexpectedly"},
	"done twice":                    {falsify: func(w world) { w.r.History[5].Job = "a/4" }, want: "jobs done by two units"},
	"not begun":                     {falsify: without("b", began, "b/1"), want: "changes of jobs that were not begun"},
	"no locks":                      {falsify: without("b", holds, "u9"), want: unlocked},
	"the locks of another branch":   {falsify: func(w world) { w.r.History[4].Unit = "u9" }, want: unlocked},
	"after the locks were lost":     {falsify: add("b", entry{Is: loses, Unit: "u9"}), want: unlocked},
	"another token":                 {falsify: func(w world) { w.r.History[2].Stamp = 10 }, want: unlocked},
	"never began to commit":         {falsify: without("a", tries, "u12"), want: unlocked},
	"an aborted run":                {falsify: add("a", entry{Is: ended, Unit: "u12", Outcome: "fell back"}), want: void},
	"rolled back":                   {falsify: add("b", entry{Is: ended, Unit: "u9", Outcome: "not committed"}), want: void},
	"led, with another token":       {falsify: func(w world) { w.r.History[5].Stamp = 13 }, want: apart},
	"led by one under locks":        {falsify: add("a", entry{Is: ended, Unit: "u12", Outcome: "committed", Leader: "u7"}), want: apart},
	"led by one that lost its locks": {falsify: func(w world) {
		add("a", entry{Is: ended, Unit: "u12", Outcome: "committed", Leader: "u8"})(w)
		w.r.History[4].Stamp = 8
	}, want: apart},
	"neither saw the other": {falsify: func(w world) {
		w.r.History[2].Note, w.r.History[5].Note = saw("y", 1), saw("x", 1)
	}, want: skew},
	"half a unit":                   {falsify: add("a", entry{Is: shown, Job: "a/6", Positions: []position{{Record: "account:x", Changes: 2, Balance: 2}, {Record: "account:y", Balance: 10}}}), want: half},
	"another balance":               {falsify: add("a", entry{Is: shown, Job: "a/6", Positions: []position{{Record: "account:x", Changes: 1, Balance: 11}}}), want: nowhere},
	"a change that never was":       {falsify: add("a", entry{Is: shown, Job: "a/6", Positions: []position{{Record: "account:z", Changes: 1}}}), want: nowhere},
	"a record before its first":     {falsify: add("a", entry{Is: shown, Job: "a/6", Positions: []position{{Record: "account:z"}}})},
	"told written, and removed":     {falsify: func(w world) { *w.a = []books.Statement{other, again, second} }, want: unfiled},
	"told written, and another":     {falsify: func(w world) { (*w.a)[0].Balance = 31 }, want: unfiled, also: unsent},
	"told written, an older stands": {falsify: func(w world) { *w.a = append(*w.a, again) }, want: unfiled},
	"told stale, and there":         {falsify: func(w world) { *w.a = []books.Statement{other, earlier, again, late, second} }, want: stale},
	"never sent":                    {falsify: func(w world) { (*w.a)[2].Token = 13 }, want: unsent},
	"told written without a reply": {falsify: func(w world) {
		without("b", filed, "b/3")(w)
		add("b", entry{Is: told, Job: "b/3", Outcome: "committed"})(w)
	}, want: unheard},
}

// Each check finds what is wrong, and no other check finds it.
func TestEveryCheckOfTheDiariesCanFail(t *testing.T) {
	for name, c := range falsified {
		t.Run(name, func(t *testing.T) {
			r, a := confirmed()
			of := diaries()
			c.falsify(world{of, &r, &a})
			dir := t.TempDir()
			for branch, entries := range of {
				d, _, err := openDiary(filepath.Join(dir, branch+".diary"))
				require.NoError(t, err)
				for _, e := range entries {
					d.write(e)
				}
				require.NoError(t, d.close())
			}
			heard, err := hear(filepath.Join(dir, "*.diary"))
			require.NoError(t, err)
			want := map[string]int{}
			for _, check := range []string{c.want, c.also} {
				if check != "" {
					want[check] = 1
				}
			}
			results := heard.check(r, a)
			require.Equal(t, want, findings(results), inLines(results))
		})
	}
}

// Of two units that each wrote what the other had read, the later one saw the earlier one's change.
func TestChangesThatSawEachOther(t *testing.T) {
	for _, seen := range [][2]int{{2, 1}, {1, 2}, {2, 0}} {
		r, _ := confirmed()
		r.History[2].Note, r.History[5].Note = saw("y", seen[0]), saw("x", seen[1])
		require.Empty(t, skews(r), seen)
	}
}

// Payments one and two changed x and y each, and x had a change in between: which states of the two an
// overview may have.
func TestOverviewsAreComparedWithTheBooks(t *testing.T) {
	row := func(record string, seq int, unit string) books.Change {
		return books.Change{Record: record, Seq: seq, Unit: unit}
	}
	r := books.Records{History: []books.Change{row("x", 1, "u1"), row("y", 1, "u1"), row("x", 2, "u3"), row("x", 3, "u2"), row("y", 2, "u2")}}
	whole := map[[2]int]bool{{0, 0}: true, {1, 1}: true, {2, 1}: true, {3, 2}: true}
	for x := range 4 {
		for y := range 3 {
			half, nowhere := halves([]entry{{Positions: []position{{Record: "y", Changes: y}, {Record: "x", Changes: x}}}}, r)
			require.Equal(t, whole[[2]int{x, y}], len(half) == 0, "%d, %d", x, y)
			require.Empty(t, nowhere)
		}
	}
}

func TestNoDiary(t *testing.T) {
	_, err := hear(filepath.Join(t.TempDir(), "none*"))
	require.ErrorContains(t, err, "none*")
}
