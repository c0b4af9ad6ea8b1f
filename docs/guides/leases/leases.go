// Package leases is the code of the guide beside it: what tells whether a lease is too short.
package leases

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdall/holdall/trace"
)

// Watch logs each round of heartbeats after which less than a third of a lease is left, and each
// set that was lost. Set it as lockset.Config.Trace, or join it to yours with trace.Join.
func Watch(log *slog.Logger, lease time.Duration) *trace.Trace {
	return &trace.Trace{End: func(ctx context.Context, e trace.Event) {
		switch left := time.Until(e.Deadline); {
		case e.Kind == trace.Renewed && left < lease/3:
			log.WarnContext(ctx, "a lease is almost over", "unit", e.Unit, "left", left, "err", e.Err)
		case e.Kind == trace.Lost:
			log.ErrorContext(ctx, "locks were lost", "unit", e.Unit, "err", e.Err)
		}
	}}
}
