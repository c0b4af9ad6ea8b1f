package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
)

// checkFleet reads all lock rows, one page at a time.
func (a *app) checkFleet(ctx context.Context, cfg lockset.Config, capacity float64) ([]finding, error) {
	i, err := a.inspector(ctx, nil)
	if err != nil {
		return nil, err
	}
	p := newProgress(a.stderr)
	defer p.clear()
	s := &survey{lease: cfg.Lease, now: time.Now(), leases: map[time.Duration]sample{}}
	for r, err := range i.List(ctx, inspect.ListOptions{Units: capacity, Progress: p.listed}) {
		if denied := deniedScan(a.table, err); denied != nil {
			return []finding{*denied}, nil
		}
		if errors.As(err, new(*types.ResourceNotFoundException)) { // which the library's check has said
			return nil, nil
		}
		if err != nil && r.Damage == "" {
			return nil, err
		}
		s.see(r)
	}
	return s.findings(a.table), nil
}

// deniedScan is the finding that the rows may not be listed; nil if err says no such thing. Only
// operators have to list them: the library's own check does not ask.
func deniedScan(table string, err error) *finding {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "AccessDeniedException" {
		return nil
	}
	return &finding{
		Table: table, Problem: fmt.Sprintf("Scan is denied, which check --fleet, ls and sweep need (%s: %s)", api.ErrorCode(), api.ErrorMessage()),
		Do: "allow dynamodb:Scan", Error: plain.Error(err),
	}
}

// survey is what lock rows tell of the processes that wrote them. It keeps one name of a
// kind, so it stays small.
type survey struct {
	lease time.Duration // what this command was told
	now   time.Time

	leases  map[time.Duration]sample // of rows that are held, where it is another
	ahead   time.Duration            // of the clock that is most ahead
	who     string                   // whose it is
	damaged int
	damage  string // of one of those
}

// sample is how many rows are of a kind, and one of their owners.
type sample struct {
	rows  int
	owner string
}

// clockOff is by how much a clock may be wrong before it is said, as the library has it. How
// long a row was under way is no part of that: it makes a clock look behind, not ahead.
const clockOff = time.Minute

func (s *survey) see(r inspect.Row) {
	if r.Damage != "" {
		if s.damaged++; s.damaged == 1 {
			s.damage = fmt.Sprintf("key %q: %s", string(r.Key), r.Damage)
		}
		return
	}
	owner, since := r.LastOwner, r.LastHeld
	if h := r.Holder; h != nil {
		owner, since = h.Owner, h.Since
		if h.Lease != s.lease {
			s.leases[h.Lease] = sample{s.leases[h.Lease].rows + 1, h.Owner}
		}
	}
	if ahead := since.Sub(s.now); !since.IsZero() && ahead > max(clockOff, s.ahead) {
		s.ahead, s.who = ahead, owner
	}
}

func (s *survey) findings(table string) (found []finding) {
	if s.damaged > 0 {
		found = append(found, finding{Table: table, Problem: fmt.Sprintf("%s not of holdall's making, such as %s", plain.Count(s.damaged, "row is", "rows are"), s.damage),
			Do: "find out who else writes to the table"})
	}
	if s.ahead > 0 {
		found = append(found, finding{Table: table, Problem: fmt.Sprintf("the clock of owner %q is %v ahead of this host's, or was", s.who, s.ahead.Round(time.Second)),
			Do: "run a time service on both hosts"})
	}
	for _, lease := range slices.Sorted(maps.Keys(s.leases)) {
		is := s.leases[lease]
		found = append(found, finding{Table: table, Advice: true,
			Problem: fmt.Sprintf("%s held with a lease of %v, by owner %q for one, and this command was told %v", plain.Count(is.rows, "row is", "rows are"), lease, is.owner, s.lease),
			Do:      "give all processes the same lease, and this command --lease"})
	}
	return found
}
