package locks

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go"
)

// remindAfter is how long a set is held before the log mentions it, and the time between two
// mentions: a set that is not released is renewed in silence otherwise.
const remindAfter = time.Hour

// mostReminded is how many keys of a set are logged.
const mostReminded = 8

// remind logs that the set is still held.
func (s *Set) remind() {
	ctx := s.group.Context()
	if ctx.Err() != nil {
		return
	}
	keys := s.plan.Keys()
	s.c.cfg.Logger.WarnContext(ctx, "holdall: a lock set is still held",
		"unit", s.unit.nonce, "purpose", s.claim.Caller.Purpose, "keys", keys[:min(len(keys), mostReminded)], "of", len(keys),
		"since", s.since, "held", time.Since(s.since).Round(time.Minute))
	time.AfterFunc(remindAfter, s.remind)
}

// HoldFor loses the set when it has been held for so long.
func (s *Set) HoldFor(d time.Duration) {
	s.group.Limit(time.Now().Add(d), fmt.Errorf("held for %v, as long as Options.HoldFor allows", d))
}

// errDenied says that a renewal is refused for good: retrying changes nothing, and the set is lost
// at its deadline. The permission may be granted before that.
var errDenied = errors.New("renewals are denied: allow dynamodb:PartiQLUpdate")

// withPermission names the permission that a denied renewal lacks.
func withPermission(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException" {
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	return err
}
