package staff

import (
	"context"
	"time"
)

// Rush is work that several tellers of each owner begin at the same moments, beside all
// other work, and at which they do not take their time: what wants the same records then
// comes to be committed together. The zero value is none.
type Rush struct {
	Desk    *Desk
	Tellers int           // of each owner, beside the others
	Every   time.Duration // so often they begin, at the same moments in all processes of a machine
}

// begin waits for the next moment at which all begin.
func (r Rush) begin(ctx context.Context) {
	now := time.Now()
	pause(ctx, now.Truncate(r.Every).Add(r.Every).Sub(now))
}

// hurry is work for a teller in a rush.
func (t teller) hurry(r Rush) {
	t.desk = r.Desk
	t.run = t.owner.prompt
	for {
		r.begin(t.owner.ctx)
		job, ok := t.desk.take(t.owner.ctx)
		if !ok {
			return
		}
		t.do(job)
	}
}
