package journal

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// drawn is a journal of up to so many families, of keys of several depths, with
// few or many writes, small and large.
func drawn(t *testing.T, r *rand.Rand) *Journal {
	t.Helper()
	var keys []ordering.Key
	perFamily := 1 + r.IntN(1+r.IntN(40))
	for f := range 1 + r.IntN(30) {
		for range 1 + r.IntN(perFamily) {
			segments := []string{fmt.Sprintf("f%02d", f)}
			for range r.IntN(4) {
				segments = append(segments, fmt.Sprint(r.IntN(9)))
			}
			keys = append(keys, ordering.Join(segments...))
		}
	}
	plan := must(plans.New(keys...))(t)
	j := &Journal{Plan: plan, Writes: make([][]Write, len(plan))}
	n := 0
	manyWrites, rare := r.IntN(len(plan)), []int{2, 10, 100}[r.IntN(3)]
	for i := range plan {
		count := r.IntN(5)
		if i == manyWrites {
			count = r.IntN(300)
		}
		for range count {
			n++
			size := r.IntN(1000)
			if r.IntN(rare) == 0 {
				size = 200<<10 + r.IntN(190<<10)
			}
			j.Writes[i] = append(j.Writes[i], writeOf(n, size))
		}
	}
	return j
}

// longTexts are of characters of which one is one as sent, and of which one is six.
var longTexts = []string{strings.Repeat("x", 400<<10), strings.Repeat("\x01", 400<<10)}

func writeOf(n, size int) Write {
	return NewWrite("t", fmt.Sprint(n), types.TransactWriteItem{Put: &types.Put{
		TableName: aws.String("t"), Item: values{"ID": Number(int64(n)), "x": textValue(longTexts[n/10%2][:size])},
	}})
}

// freeing is what is known of a step while a plan is carried out.
type freeing struct {
	freed  bool
	writes []string
}

// checkParts holds a cut against everything that it promises.
func checkParts(t *testing.T, j *Journal, chains [][]Batch, most int) {
	t.Helper()
	steps, families, index := map[ordering.Key]*freeing{}, map[ordering.Key]int{}, map[ordering.Key]int{}
	for i, s := range j.Plan {
		index[s.Key] = i
	}
	for c, chain := range chains {
		last := len(j.Plan)
		for n, p := range chain {
			size := requests.Size{}
			linked := n == 0
			for _, slice := range p {
				key := slice.Step.Key
				at, of := index[key], families[key.Root()]
				require.Equal(t, j.Plan[at], slice.Step)
				require.True(t, of == 0 || of == c+1, "%v is in two chains", key.Root())
				linked = linked || of == c+1
				families[key.Root()] = c + 1
				require.LessOrEqual(t, at, last, "%v is not freed in reverse", key)
				last = at
				s := steps[key]
				if s == nil {
					s = &freeing{}
					steps[key] = s
				}
				require.False(t, s.freed, "%v is free already", key)
				require.True(t, slice.Frees || len(slice.Writes) > 0, "nothing is done for %v", key)
				s.freed = slice.Frees
				rows := 1
				if slice.Frees {
					rows = slice.Step.Rows()
				}
				for range rows {
					size = size.Plus(lockRow)
				}
				for _, w := range slice.Writes {
					s.writes = append(s.writes, w.Record)
					size = size.Plus(requests.SizeOf(w.Item))
				}
			}
			require.NotEmpty(t, p)
			require.True(t, linked, "part %d of chain %d has nothing to wait for", n, c)
			if len(p) > 1 || len(p[0].Writes) > 1 {
				require.LessOrEqual(t, size.Actions, most)
				require.LessOrEqual(t, size.Stored, requests.Room.Stored)
				require.LessOrEqual(t, size.Sent, requests.Room.Sent)
			}
		}
	}
	require.Len(t, steps, len(j.Plan))
	for i, s := range j.Plan {
		require.True(t, steps[s.Key].freed, "%v", s.Key)
		var staged []string
		for _, w := range j.Writes[i] {
			staged = append(staged, w.Record)
		}
		require.Equal(t, staged, steps[s.Key].writes, "%v", s.Key)
	}
}

// draws are the seeds of journals. Among the few of the short form are some that are too
// large for one transaction, as stored and as sent.
func draws() (seeds []uint64) {
	first, end := uint64(0), uint64(40)
	if testing.Short() {
		first, end = 12, 22
	}
	for ; first < end; first++ {
		seeds = append(seeds, first)
	}
	return seeds
}

func TestPartsKeepTheirInvariants(t *testing.T) {
	for _, seed := range draws() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			j := drawn(t, r)
			for _, most := range []int{requests.MaxActions, 1 + r.IntN(requests.MaxActions)} {
				chains := j.Batches(most)
				checkParts(t, j, chains, most)
				require.Equal(t, chains, j.Batches(most), "it is the same whoever does it")
			}
		})
	}
}

// shape tells of each chain how many actions its batches have.
func shape(chains [][]Batch) (actions [][]int) {
	for _, chain := range chains {
		var of []int
		for _, p := range chain {
			n := 0
			for _, slice := range p {
				n += slice.size().Actions
			}
			of = append(of, n)
		}
		actions = append(actions, of)
	}
	return actions
}

func TestHowPartsAreCut(t *testing.T) {
	lone := func(n, writes int) *Journal {
		j := &Journal{}
		for i := range n {
			j.Plan = append(j.Plan, plans.Step{Key: ordering.Key(fmt.Sprintf("k%04d", i))})
			var ws []Write
			for w := range writes {
				ws = append(ws, writeOf(i*writes+w, 1))
			}
			j.Writes = append(j.Writes, ws)
		}
		return j
	}
	threes := func(n int) *Journal { // families of 2, 2 and 3 actions: the last frees the key above it
		j := &Journal{}
		for i := range n {
			above := ordering.Key(fmt.Sprintf("k%04d", i))
			for s := range 3 {
				step := plans.Step{Key: ordering.Key(fmt.Sprintf("%s/%d", above, s))}
				if s == 0 {
					step.Intents = []ordering.Key{above}
				}
				j.Plan, j.Writes = append(j.Plan, step), append(j.Writes, []Write{writeOf(3*i+s, 1)})
			}
		}
		return j
	}
	for name, c := range map[string]struct {
		j     *Journal
		most  int
		shape [][]int
	}{
		"one step":                           {lone(1, 3), 100, [][]int{{4}}},
		"a step of 99 writes":                {lone(1, 99), 100, [][]int{{100}}},
		"of 100: some are written before":    {lone(1, 100), 100, [][]int{{100, 2}}},
		"of 250":                             {lone(1, 250), 100, [][]int{{100, 100, 53}}},
		"families of one go anywhere":        {lone(120, 1), 100, [][]int{{100}, {100}, {40}}},
		"small transactions":                 {lone(5, 1), 4, [][]int{{4}, {4}, {2}}},
		"a transaction of one action":        {lone(2, 2), 1, [][]int{{2, 2}, {2, 2}}},
		"nothing is written, but it is held": {lone(3, 0), 100, [][]int{{3}}},
		"a family that does not fit goes on": {threes(3), 10, [][]int{{9, 9, 3}}},
		"unless little is lost by it":        {threes(3), 7, [][]int{{7}, {7}, {7}}},
	} {
		t.Run(name, func(t *testing.T) {
			chains := c.j.Batches(c.most)
			checkParts(t, c.j, chains, c.most)
			require.Equal(t, c.shape, shape(chains))
		})
	}
}

// A family that does not fit into what is left goes on from part to part, unless little
// is lost by a part of its own, or the chain is long.
func TestHowFamiliesFollowEachOther(t *testing.T) {
	families := func(actions ...int) *Journal { // the one that is done first comes first
		j := &Journal{}
		for f, n := range actions {
			for i := range n {
				j.Plan = append(j.Plan, plans.Step{Key: ordering.Join(fmt.Sprintf("f%02d", len(actions)-f), fmt.Sprintf("%03d", i))})
				j.Writes = append(j.Writes, nil)
			}
		}
		return j
	}
	full := func(batches int, more ...int) []int { return append(slices.Repeat([]int{10}, batches), more...) }
	for name, c := range map[string]struct {
		done  []int
		most  int
		shape [][]int
	}{
		"what fits is added, however little is left": {[]int{9, 1}, 10, [][]int{{10}}},
		"a tenth is little":                          {[]int{9, 2}, 10, [][]int{{9}, {2}}},
		"more is not":                                {[]int{8, 3}, 10, [][]int{{10, 1}}},
		"a tenth of more":                            {[]int{18, 3}, 20, [][]int{{18}, {3}}},
		"more than a tenth of more":                  {[]int{17, 4}, 20, [][]int{{20, 1}}},
		"nothing is left":                            {[]int{10, 3}, 10, [][]int{{10}, {3}}},
		"a chain of eight, and one that is open":     {[]int{85, 20}, 10, [][]int{full(8, 5), full(2)}},
		"a chain of seven, and one that is open":     {[]int{75, 20}, 10, [][]int{full(9, 5)}},
		"the open one is not of the long chain":      {[]int{80, 5, 10}, 10, [][]int{full(8), {10, 5}}},
		"a family that is linked, and one more":      {[]int{8, 3, 9}, 10, [][]int{{10, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			j := families(c.done...)
			slices.SortStableFunc(j.Plan, func(a, b plans.Step) int { return ordering.Compare(a.Key, b.Key) })
			chains := j.Batches(c.most)
			checkParts(t, j, chains, c.most)
			require.Equal(t, c.shape, shape(chains))
		})
	}
}

// Families that are larger than a transaction are not all done one after the other:
// a chain ends when it is long, and the next family begins another.
func TestLargeFamiliesAreDoneAtTheSameTime(t *testing.T) {
	const families = 20
	var keys []ordering.Key
	for f := range families {
		for i := range 250 {
			keys = append(keys, ordering.Join(fmt.Sprintf("f%02d", f), fmt.Sprintf("%03d", i)))
		}
	}
	plan := must(plans.New(keys...))(t)
	j := &Journal{Plan: plan, Writes: make([][]Write, len(plan))}
	chains := j.Batches(requests.MaxActions)
	checkParts(t, j, chains, requests.MaxActions)
	batches := 0
	for _, chain := range chains {
		require.LessOrEqual(t, len(chain), longChain+3, "and the batches of one family more")
		batches += len(chain)
	}
	require.GreaterOrEqual(t, len(chains), families*3/(longChain+3))
	require.LessOrEqual(t, batches, (plan.Rows()+requests.MaxActions-1)/requests.MaxActions+len(chains), "each end of a chain costs a part at most")
}

// What is cut in halves is the same, in the same order, and the lock is freed with
// the last of it.
func TestHalves(t *testing.T) {
	for _, seed := range draws() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			j := drawn(t, rand.New(rand.NewPCG(seed, 2)))
			for c, chain := range j.Batches(requests.MaxActions) {
				var cut []Batch
				for _, p := range chain {
					cut = append(cut, quarters(p)...)
				}
				only := &Journal{}
				for i, s := range j.Plan {
					if slices.ContainsFunc(chain, func(p Batch) bool {
						return slices.ContainsFunc(p, func(of Slice) bool { return of.Step.Key == s.Key })
					}) {
						only.Plan, only.Writes = append(only.Plan, s), append(only.Writes, j.Writes[i])
					}
				}
				for _, p := range cut {
					require.Less(t, len(p), requests.MaxActions/2, "chain %d", c)
				}
				checkHalves(t, only, cut)
			}
		})
	}
	two := Batch{{Step: plans.Step{Key: "k"}, Writes: []Write{writeOf(1, 1), writeOf(2, 1)}, Frees: true}}
	first, second, ok := two.Halves()
	require.True(t, ok, "a step and two writes")
	require.Equal(t, Batch{{Step: two[0].Step, Writes: two[0].Writes[:1]}}, first, "it keeps the step")
	require.Equal(t, Batch{{Step: two[0].Step, Writes: two[0].Writes[1:], Frees: true}}, second)
	last := Batch{{Step: plans.Step{Key: "k"}, Writes: []Write{writeOf(1, 1)}, Frees: true}}
	_, _, ok = last.Halves()
	require.False(t, ok, "a step and a write")
	last[0].Writes = nil
	_, _, ok = last.Halves()
	require.False(t, ok, "a step")
}

func quarters(p Batch) []Batch {
	first, second, ok := p.Halves()
	if !ok {
		return []Batch{p}
	}
	batches := []Batch{}
	for _, half := range []Batch{first, second} {
		if a, b, ok := half.Halves(); ok {
			batches = append(batches, a, b)
		} else {
			batches = append(batches, half)
		}
	}
	return batches
}

// checkHalves is checkParts for what goes on from part to part in any case: halves
// of two families follow one another, too.
func checkHalves(t *testing.T, j *Journal, chain []Batch) {
	t.Helper()
	var all Batch
	for _, p := range chain {
		require.NotEmpty(t, p)
		all = append(all, p...)
	}
	at := len(j.Plan) - 1
	var writes []Write
	for _, slice := range all {
		require.Equal(t, j.Plan[at], slice.Step)
		writes = append(writes, slice.Writes...)
		if slice.Frees {
			require.Equal(t, j.Writes[at], writes)
			at, writes = at-1, nil
		}
	}
	require.Equal(t, -1, at)
	require.Empty(t, writes)
}

// A part is filled to the byte, and not a byte further, as stored and as sent.
func TestPartsAreFilledToTheByte(t *testing.T) {
	room := RoomFor(requests.MaxActions)
	ofSize := func(n, stored, sent int) Write {
		w := writeOf(n, 1)
		w.size = requests.Size{Actions: 1, Stored: stored, Sent: sent}
		return w
	}
	for name, limit := range map[string]func(int) Write{
		"stored": func(bytes int) Write { return ofSize(2, room.Stored-bytes, 1) },
		"sent":   func(bytes int) Write { return ofSize(2, 1, room.Sent-bytes) },
	} {
		t.Run(name, func(t *testing.T) {
			first := ofSize(1, 1000, 1000)
			frees := lockRow.Plus(first.size)
			rows := frees.Stored
			if name == "sent" {
				rows = frees.Sent
			}
			one := func(bytes int) *Journal { // a step with two writes
				return &Journal{Plan: plans.Plan{{Key: "a"}}, Writes: [][]Write{{first, limit(bytes)}}}
			}
			require.Equal(t, [][]int{{3}}, shape(one(rows).Batches(requests.MaxActions)))
			require.Equal(t, [][]int{{2, 2}}, shape(one(rows-1).Batches(requests.MaxActions)))

			row := lockRow.Stored
			if name == "sent" {
				row = lockRow.Sent
			}
			two := func(bytes int) *Journal { // two steps of a write each
				return &Journal{Plan: plans.Plan{{Key: "a"}, {Key: "b"}}, Writes: [][]Write{{first}, {limit(bytes)}}}
			}
			require.Equal(t, [][]int{{4}}, shape(two(rows+row).Batches(requests.MaxActions)))
			require.Equal(t, 2, len(two(rows+row-1).Batches(requests.MaxActions)))
		})
	}
}

// FuzzRecord: of any item, what is read as a record of an ID, of a decision, or as a
// row of a journal has all that one has.
func FuzzRecord(f *testing.F) {
	for i := range byte(6) {
		f.Add([]byte{i, 2, 3, 0, i, 2, 1, i, 3})
		f.Add([]byte{i})
	}
	f.Add([]byte{2, 1, 1, 2, 1, 2, 1, 4}) // a digest of one byte
	sum := sha256.Sum256(nil)
	digest := &types.AttributeValueMemberB{Value: sum[:]}
	names := []string{attrState, attrRows, attrDigest, attrCommittedBy, attrBody, attrLast, AttrUnit, AttrPart}
	words := []string{"committed", "aborted", "done", "", "1", string(sum[:])}
	f.Fuzz(func(t *testing.T, input []byte) {
		from := arbitrary.New(input)
		item := from.Change(arbitrary.Pick(from,
			values{attrState: textValue("committed"), attrRows: Number(3), attrDigest: digest},
			values{attrState: textValue("aborted")},
			values{attrCommittedBy: textValue(ofUnit), attrDigest: digest},
			values{attrBody: &types.AttributeValueMemberB{Value: []byte("x")}, attrLast: &types.AttributeValueMemberBOOL{Value: true}},
		), names, words)
		item[AttrUnit] = textValue("u")
		is := func(name, kind string) bool {
			return fmt.Sprintf("%T", item[name]) == "*types.AttributeValueMember"+kind
		}
		const s, n, b, boolean = "S", "N", "B", "BOOL"

		whole := is(attrDigest, b) && requests.ValueSize(item[attrDigest]) == sha256.Size
		found, err := ParseIDRecord(item)
		require.Equal(t, whole && is(attrCommittedBy, s) && requests.ValueSize(item[attrCommittedBy]) > 0, err == nil)
		require.Equal(t, err == nil, found != nil)

		v, err := ParseDecision(item)
		state := ""
		if is(attrState, s) {
			state = item[attrState].(*types.AttributeValueMemberS).Value
		}
		switch state {
		case "aborted", "done":
			require.NoError(t, err)
		case "committed":
			require.Equal(t, whole && v.Rows > 0, err == nil, "%v", err)
			require.True(t, err != nil || is(attrRows, n))
		default:
			require.Error(t, err)
		}
		body, _, ok := ParseRow(item)
		require.Equal(t, is(attrBody, b) && is(attrLast, boolean), ok)
		require.True(t, ok || body == nil)
	})
}

// FuzzJournal: nothing that stands in a journal's rows makes its reader panic, and
// what it takes for a journal has a plan, and reads the same when it is written again.
func FuzzJournal(f *testing.F) {
	f.Add(written(f, journalOf(f, everyType())))
	f.Add(written(f, journalOf(f, values{})))
	f.Add([]byte(`{"version":1,"unit":"0123456789012345678901","locks":"l","token":1,"fence":"f","steps":1,"writes":1}` + "\n" + `{"key":"a"}` + "\n" +
		`{"step":0,"table":"t","record":"r","key":{"ID":{"S":"1"}},"update":"SET #a = :v","names":{"#a":"b"},"values":{":v":{"N":"1"}}}`))
	f.Add([]byte(`{"version":1,"unit":"0123456789012345678901","token":1,"fence":"f","steps":1,"writes":1}` +
		"\n" + `{"key":"a"}` + "\n" + `{"step":0,"table":"t","record":"r","put":null,"key":null,"update":"","names":null,"values":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := decode(ofUnit, bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NotEmpty(t, j.Plan)
		require.Len(t, j.Writes, len(j.Plan))
		plan := must(plans.New(j.Plan.Keys()...))(t)
		require.Equal(t, plan.Keys(), j.Plan.Keys(), "a plan that no unit has")
		for i, step := range plan { // what frees rows relies on it
			require.ElementsMatch(t, step.Intents, j.Plan[i].Intents, "those of %q", step.Key)
		}
		var rewritten bytes.Buffer
		if err := j.Encode(&rewritten); err != nil { // a value of a type that the SDK does not know
			return
		}
		again := must(decode(ofUnit, &rewritten))(t)
		require.Equal(t, j.Writes, again.Writes)
		for _, chain := range j.Batches(requests.MaxActions) {
			require.NotEmpty(t, chain)
		}
	})
}
