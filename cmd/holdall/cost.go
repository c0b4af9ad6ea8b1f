package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/costs"
)

type costFlags struct {
	unit       costs.Unit
	record     bytesFlag
	rate       float64
	inTheWay   float64
	priceWrite float64 // of a million
	priceRead  float64
}

func costCommand(a *app) *cobra.Command {
	f := costFlags{record: 1 << 10}
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Work out what units cost: requests, capacity units, money",
		Long: "cost works out what units cost that are all alike, from what they do. It asks no table, and needs\n" +
			"no account.\n\n" +
			"--in-the-way is the share of runs without locks that find somebody in the way, whichever run of\n" +
			"a unit it is: of 100 units with 0.1, ten run again, one of them twice. All runs in vain count as\n" +
			"whole ones. With --locked it is the share of units that wait for others, once.\n\n" +
			"Units that nobody is in the way of cost exactly this, if they fit into one transaction; larger\n" +
			"ones nearly. Units of one process that are committed together cost less. Money is for what is\n" +
			"billed on demand, at the prices that you give. What units read outside u.Get, storage, streams,\n" +
			"backups, data transfer, and what is sent again after throttling are not in it.",
		Example: "  holdall cost --rate 50 --keys 2 --writes 2 --reads 2 --id --in-the-way 0.1\n" +
			"  holdall cost --rate 50 --keys 2 --depth 2 --locked --hold 1m --price-write 0.625 --price-read 0.125",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.cost(f, cmd.Flags().Changed) },
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.rate, "rate", 1, "`units` a second")
	flags.IntVar(&f.unit.Keys, "keys", 1, "`number` of keys of a unit")
	flags.IntVar(&f.unit.Depth, "depth", 1, "`segments` of each key: customer:42/account:7 has 2")
	flags.IntVar(&f.unit.Shared, "shared", 0, "`segments`, the first, that all keys of a unit have in common")
	flags.IntVar(&f.unit.Writes, "writes", 1, "`number` of records that a unit writes")
	flags.IntVar(&f.unit.Reads, "reads", 1, "`number` of records that a unit reads, by one Get")
	flags.Var(&f.record, "record-size", "`size` of a record with its fence: bytes, or as 3KB, of 1,024 bytes")
	flags.BoolVar(&f.unit.ID, "id", false, "units have an ID")
	flags.Float64Var(&f.inTheWay, "in-the-way", 0, "`share`, from 0 to 1, of runs that find somebody in the way")
	flags.BoolVar(&f.unit.Lock, "locked", false, "units take their locks first: Work.Lock, Begin")
	flags.DurationVar(&f.unit.Hold, "hold", 0, "`time` that a unit's function takes; under locks it has heartbeats")
	flags.Float64Var(&f.priceWrite, "price-write", 0, "`price` of a million write units")
	flags.Float64Var(&f.priceRead, "price-read", 0, "`price` of a million read units")
	return cmd
}

type bytesFlag int

func (b *bytesFlag) String() string {
	if n := int(*b); n >= 1<<10 && n%(1<<10) == 0 {
		return strconv.Itoa(n>>10) + "KB"
	}
	return strconv.Itoa(int(*b))
}

// Set is pflag's.
func (b *bytesFlag) Set(text string) error {
	digits, kilo := strings.CutSuffix(strings.ToUpper(text), "KB")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return errors.New("it must be a whole number of bytes, or of KB as in 3KB")
	}
	if kilo {
		if n > costs.MostRecord {
			n = costs.MostRecord // it is refused as it is
		}
		n <<= 10
	}
	*b = bytesFlag(n)
	return nil
}

// Type is pflag's.
func (b *bytesFlag) Type() string { return "size" }

// checked returns the unit that the flags say, or what is wrong with them.
func (f costFlags) checked(lease time.Duration, changed func(flag string) bool) (costs.Unit, error) {
	u := f.unit
	u.Record, u.Lease = int(f.record), lease
	for _, n := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{"keys", u.Keys, 1, costs.Most}, {"depth", u.Depth, 1, costs.MostDepth}, {"writes", u.Writes, 0, costs.Most},
		{"reads", u.Reads, 0, costs.Most}, {"shared", u.Shared, 0, costs.MostDepth}, {"record-size", u.Record, 1, costs.MostRecord},
	} {
		if n.value < n.least || n.value > n.most {
			return u, fmt.Errorf("--%s is %d: it must be from %d to %d", n.flag, n.value, n.least, n.most)
		}
	}
	for _, n := range []struct {
		flag  string
		value float64
		most  float64
	}{
		{"rate", f.rate, 1e6}, {"in-the-way", f.inTheWay, 1}, {"price-write", f.priceWrite, 1e6}, {"price-read", f.priceRead, 1e6},
	} {
		if !(n.value >= 0 && n.value <= n.most) { // NaN is neither
			return u, fmt.Errorf("--%s is %v: it must be from 0 to %v", n.flag, n.value, n.most)
		}
	}
	switch {
	case u.Hold < 0 || u.Hold > mostHeld:
		return u, fmt.Errorf("--hold is %v: it must be from 0 to %v, as long as locks are held", u.Hold, mostHeld)
	case u.Hold >= u.Lease && !u.Lock:
		return u, fmt.Errorf("--hold is %v, and the lease %v: a run without locks must commit within a lease; add --locked", u.Hold, u.Lease)
	case u.Shared >= u.Depth:
		return u, fmt.Errorf("--shared is %d, and --depth %d: keys that have all segments in common are one", u.Shared, u.Depth)
	case changed("price-write") != changed("price-read"):
		return u, errors.New("--price-write and --price-read need each other: DynamoDB bills both")
	case u.Writes == 0 && u.Reads == 0 && !u.Lock && !u.ID:
		return u, errors.New("--writes and --reads are 0: such a unit sends nothing; for a lock by itself, add --locked")
	}
	return u, nil
}

type worked struct {
	costs.Estimate
	PerSecond costs.Cost `json:"perSecond"`
	PerMonth  costs.Cost `json:"perMonth"` // of 730 hours
	Money     *money     `json:"money,omitempty"`
}

type money struct {
	Writes float64 `json:"writes"`
	Reads  float64 `json:"reads"`
	All    float64 `json:"all"`
}

const (
	month    = 730 * time.Hour
	mostHeld = 7 * 24 * time.Hour // as lockset.Config has it
)

func (a *app) cost(f costFlags, changed func(flag string) bool) error {
	lease, err := a.lease.orFrom(a.getenv)
	if err != nil {
		return wrongUsage(err)
	}
	unit, err := f.checked(cmp.Or(lease, defaultLease), changed)
	if err != nil {
		return wrongUsage(err)
	}
	w := worked{Estimate: unit.Estimate(f.inTheWay)}
	w.PerSecond = w.Average.Times(f.rate)
	w.PerMonth = w.PerSecond.Times(month.Seconds())
	if changed("price-write") {
		writes, reads := w.PerMonth.WriteUnits/1e6*f.priceWrite, w.PerMonth.ReadUnits/1e6*f.priceRead
		w.Money = &money{writes, reads, writes + reads}
	}
	a.out.lines(w.lines())
	return a.out.json(w)
}

func (w worked) lines() []string {
	t := columns{{"A UNIT", "SHARE", "REQUESTS", "WRITE UNITS", "READ UNITS"}}
	for _, k := range w.Kinds {
		t = append(t, append([]string{k.Name, percent(k.Share)}, inColumns(k.Cost)...))
	}
	if len(w.Kinds) > 1 {
		t = append(t, append([]string{"on average", ""}, inColumns(w.Average)...))
	}
	all := columns{
		append([]string{"ALL"}, t[0][2:]...),
		append([]string{"a second"}, inColumns(w.PerSecond)...),
		append([]string{"a month of 730 h"}, inColumns(w.PerMonth)...),
	}
	if m := w.Money; m != nil {
		all[0] = append(all[0], "IN ALL")
		two := func(n float64) string { return fmt.Sprintf("%.2f", n) }
		all = append(all, []string{"money for that month", "", two(m.Writes), two(m.Reads), two(m.All)})
	}
	lines := append(append(t.lines(), ""), all.lines()...)
	if w.Near {
		lines = append(lines, "", "The units are larger than one transaction: this is near, and not exact.")
	}
	return lines
}

func inColumns(c costs.Cost) []string {
	return []string{short(c.Requests), short(c.WriteUnits), short(c.ReadUnits)}
}

func percent(share float64) string {
	return short(100*share) + "%"
}

// short is a number for people: four digits are enough, but for those before the point.
func short(n float64) string {
	switch {
	case n >= 1e12:
		return short(n/1e12) + " trillion"
	case n >= 1e6:
		return short(n/1e6) + " million"
	case n > 0 && n < 1e-3/2:
		return "<0.001" // which is not nothing
	}
	decimals := 3
	for whole := n; whole >= 10 && decimals > 0; whole /= 10 {
		decimals--
	}
	text := strconv.FormatFloat(n, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
