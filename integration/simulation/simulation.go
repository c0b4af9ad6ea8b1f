// Package simulation runs the library as it is, many processes of many hosts
// against one embedded DynamoDB, in virtual time, while networks, clocks,
// processes and DynamoDB itself misbehave; and checks that every promise held.
//
// One seed decides everything: how many hosts there are, what they want, what
// befalls them and when. The same seed takes the same course to the nanosecond,
// unless goroutines of one process act at one instant: which comes first is for
// the machine to say. So a failure is replayed by its seed, at once or within a
// few tries, and cut down to the shortest course that still fails. The manner is
// that of FoundationDB's simulation and TigerBeetle's VOPR; the judgement, from a
// history of what callers believed and were told, is that of Jepsen.
//
// A course is read in this order:
//
//   - plan.go draws what a seed decides;
//   - run.go plays it; host.go has the hosts and their processes, mishaps.go what
//     befalls those, weather.go what befalls their requests, work.go and unit.go
//     what they do;
//   - history.go keeps what happened, heir.go what was left behind;
//   - check*.go judge;
//   - shrink.go and story.go make a failure short and readable.
package simulation

import (
	"time"

	recording "github.com/holdall/holdall/record"
)

// Settings say what course to take.
type Settings struct {
	Seed uint64
	// Until, if set, ends the course early: from then on nothing begins and
	// nothing goes wrong.
	Until time.Duration
	// Without names the faults that stay away.
	Without []string
	// Only, if set, names the one fault that happens, and often.
	Only string
	// Story keeps an account of everything that happens.
	Story bool
	// Record is told what befalls processes, and what their hooks are told; it may be nil.
	Record *recording.Recording
}

// Result is what a course came to.
type Result struct {
	Plan     Plan
	Length   time.Duration // of the course until its end, without the aftermath
	Problems []string      // promises that did not hold
	Counts   Counts
	Instants []time.Duration // of what began and what went wrong, in order
	Story    []Line
}

// Counts are the figures of a course.
type Counts struct {
	HostTime   time.Duration // hosts times length
	Began      int           // units of work, and sets of locks alone
	Sets       int           // sets of locks alone that were held and released
	Finished   int           // units of work that had their locks, and whose end was told
	Commits    int           // units that were committed
	Free       int           // of those, without locks
	Grouped    int           // of those, that came along with another
	FellBack   int           // runs without locks that were in vain
	Journals   int           // of those, by a journal
	Rescues    int           // units with a journal that others decided about, or finished
	Doubts     int           // units told to be in doubt
	Deliveries int           // writes to the store downstream
	Late       int           // of those, refused: others had been there with a later token
	Swept      int           // what sweeps freed, settled, cleaned and dropped
	Reads      int           // calls of who reads without locks
	// Of those, that read in several requests; that looked more than once, because a
	// unit was in the way; and that their callers ended.
	ReadsInParts, ReadsAgain, ReadsEnded int
	Requests                             int
	Faults                               map[string]int
}

// Add adds the figures of another course.
func (c *Counts) Add(o Counts) {
	c.HostTime += o.HostTime
	c.Began += o.Began
	c.Sets += o.Sets
	c.Finished += o.Finished
	c.Commits += o.Commits
	c.Free += o.Free
	c.Grouped += o.Grouped
	c.FellBack += o.FellBack
	c.Journals += o.Journals
	c.Rescues += o.Rescues
	c.Doubts += o.Doubts
	c.Deliveries += o.Deliveries
	c.Late += o.Late
	c.Swept += o.Swept
	c.Reads += o.Reads
	c.ReadsInParts += o.ReadsInParts
	c.ReadsAgain += o.ReadsAgain
	c.ReadsEnded += o.ReadsEnded
	c.Requests += o.Requests
	if c.Faults == nil {
		c.Faults = map[string]int{}
	}
	for name, n := range o.Faults {
		c.Faults[name] += n
	}
}

// AllFaults is how many faults there were, of any kind.
func (c *Counts) AllFaults() (n int) {
	for _, more := range c.Faults {
		n += more
	}
	return n
}

// PerHour is a number per simulated hour of a host.
func (c *Counts) PerHour(n int) float64 {
	if c.HostTime == 0 {
		return 0
	}
	return float64(n) / c.HostTime.Hours()
}
