package main

import (
	"flag"
	"hash/fnv"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// branchOptions are those of the bank as several processes.
type branchOptions struct {
	name           string
	diary, diaries string
	rate           float64
	think          time.Duration
}

func (o *options) forOpening(fs *flag.FlagSet) {
	o.forStaff(fs)
	o.forTown(fs, 40)
	o.atArchive(fs)
}

func (o *options) forBranch(fs *flag.FlagSet) {
	o.owners = 1
	o.thesePrefix(fs)
	o.atArchive(fs)
	fs.StringVar(&o.name, "name", "", "`name` of the branch, which no other has at the same time (required)")
	fs.StringVar(&o.diary, "diary", "", "`file` to write down in what was begun and told; who finds one does again what was begun under an ID")
	fs.IntVar(&o.tellers, "tellers", 8, "`number` of tellers")
	fs.Float64Var(&o.rate, "rate", 0, "units a `second` that are begun at most (default: as many as can be)")
	fs.DurationVar(&o.think, "think", 0, "`time` that a teller takes, at most, between reading and writing, with the locks held")
	fs.DurationVar(&o.duration, "for", 0, "begin no new unit after this `time` (default: until SIGTERM or Ctrl-C)")
	fs.Var(o.mix, "mix", "what changes there are: `kind=share,...`")
	fs.Uint64Var(&o.seed, "seed", 1, "`number` from which the work is drawn, with the branch's name")
	fs.DurationVar(&o.wait, "wait", 0, "`time` for which a unit waits for others' locks before its teller gives up and puts the job back (default 2 leases)")
	fs.BoolVar(&o.quiet, "quiet", false, "show no progress")
}

func (o *options) forAuditing(fs *flag.FlagSet) {
	o.thesePrefix(fs)
	o.atArchive(fs)
	fs.StringVar(&o.diaries, "diaries", "", "`pattern` of the branches' diaries, such as 'logs/*.diary': what they were told is compared with the books")
	fs.BoolVar(&o.quiet, "quiet", false, "show no progress")
}

func (o *options) thesePrefix(fs *flag.FlagSet) {
	fs.StringVar(&o.prefix, "prefix", "", "`prefix` of the tables' names (required)")
}

func (o *options) atArchive(fs *flag.FlagSet) {
	fs.StringVar(&o.archive, "archive", "", "`file` of SQLite, or postgres://… URL, to which statements are written (default: none are)")
}

// branchNames are also part of names of jobs, before a slash.
var branchNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`)

func (o *options) checkBranches(command string, given map[string]bool) []flagCheck {
	checks := []flagCheck{
		{o.where.Embedded(), "endpoint", "or -aws is required: what one process has in memory no other sees"},
		{o.archive != "" && !isArchive(o.archive), "archive", "names neither a file in a folder that exists nor a postgres:// URL"},
		{o.archive != "" && len(o.prefix) > maxArchivePrefix, "prefix", "is too long for an archive: names in PostgreSQL are short"},
	}
	switch command {
	case "open":
		return slices.Concat(checks, o.checkStaff(given), o.checkTown())
	case "branch":
		return slices.Concat(checks, o.checkStaff(given), []flagCheck{
			{o.prefix == "", "prefix", "is required: that of the tables"},
			{!branchNames.MatchString(o.name), "name", "is required, and may have letters, digits, _, . and -, at most 60"},
			{o.diary != "" && !isDir(filepath.Dir(o.diary)), "diary", "names a file in no folder that exists"},
			{o.rate != 0 && !(o.rate >= minRate && o.rate <= maxRate), "rate", "must be 0, for as many as can be, or 0.001 to 1e6"},
			{o.think < 0, "think", "must not be negative"},
			{given["for"] && o.duration <= 0, "for", "must be more than 0"},
		})
	default:
		return append(checks, flagCheck{o.prefix == "", "prefix", "is required: that of the tables"})
	}
}

const minRate, maxRate = 1e-3, 1e6

// seedOfBranch makes branches with one seed do different work.
func (o *options) seedOfBranch() {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.name)) // never fails
	o.seed ^= h.Sum64()
}
