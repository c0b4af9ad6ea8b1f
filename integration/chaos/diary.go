package chaos

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"time"
)

// entry is a line of a branch's diary, as far as it matters here. It is read as any
// program would read it: a type that both could import would have to be public, and
// with it what the bank calls an outcome.
type entry struct {
	At    time.Time `json:"at"`
	Began *struct {
		Job  string `json:"job"`
		Kind string `json:"kind"`
	} `json:"began"`
	Told *struct {
		Job     string `json:"job"`
		Outcome string `json:"outcome"`
		Why     string `json:"why"`
	} `json:"told"`
	Holds *struct {
		Unit string `json:"unit"`
	} `json:"holds"`
	Lost *struct {
		Unit string `json:"unit"`
	} `json:"lost"`
	Vitals *vitals `json:"vitals"`
}

// vitals are how a branch's process was.
type vitals struct {
	Heap       uint64  `json:"heap"`
	Goroutines uint64  `json:"goroutines"`
	Jobs       int64   `json:"jobs"`
	Requests   int64   `json:"requests"`
	Capacity   float64 `json:"capacity"`
}

// readDiary reads what a branch, and those before it, wrote down.
func readDiary(name string) (entries []entry, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	text := bufio.NewScanner(file)
	for text.Scan() {
		var e entry
		if json.Unmarshal(text.Bytes(), &e) == nil { // a line that is cut short was the last of a process
			entries = append(entries, e)
		}
	}
	return entries, text.Err()
}

// known is how long after it was continued a process that was stopped beyond a lease
// knew of each set that it had when it was stopped, and had lost. A set is known to be
// lost by its own line in the diary.
func known(entries []entry, stops []stop, lease time.Duration) (after []time.Duration) {
	held := map[string]time.Time{}
	for _, e := range entries {
		if e.Holds != nil {
			held[e.Holds.Unit] = e.At
		}
		if e.Lost == nil {
			continue
		}
		since, ok := held[e.Lost.Unit]
		i := slices.IndexFunc(stops, func(s stop) bool {
			return ok && s.to.Sub(s.from) > lease && since.Before(s.from) && !e.At.Before(s.to)
		})
		if i >= 0 {
			after = append(after, e.At.Sub(stops[i].to))
		}
	}
	return after
}

// heldSince are the units that had their locks at some time or later.
func heldSince(entries []entry, t time.Time) map[string]bool {
	units := map[string]bool{}
	for _, e := range entries {
		if e.Holds != nil && !e.At.Before(t) {
			units[e.Holds.Unit] = true
		}
	}
	return units
}

// outcomes counts what jobs were told, by outcome and kind, and how many of each kind
// were begun.
func outcomes(entries []entry) (begun map[string]int, told map[string]map[string]int) {
	kinds, begun, told := map[string]string{}, map[string]int{}, map[string]map[string]int{}
	for _, e := range entries {
		if e.Began != nil && kinds[e.Began.Job] == "" { // else again, by an heir
			kinds[e.Began.Job] = e.Began.Kind
			begun[e.Began.Kind]++
		}
		if e.Told == nil {
			continue
		}
		if told[e.Told.Outcome] == nil {
			told[e.Told.Outcome] = map[string]int{}
		}
		told[e.Told.Outcome][kinds[e.Told.Job]]++
	}
	return begun, told
}

// failures are what jobs failed of, which is nothing that anybody expected.
func failures(entries []entry) (why []string) {
	for _, e := range entries {
		if e.Told != nil && e.Told.Outcome == "failed" {
			why = append(why, e.Told.Job+": "+e.Told.Why)
		}
	}
	return why
}
