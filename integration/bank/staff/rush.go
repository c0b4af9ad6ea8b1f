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
	From    time.Time     // they begin at this moment,
	Every   time.Duration // and so long after it, again and again
}

// begin waits for the next moment at which all begin.
func (r Rush) begin(ctx context.Context) {
	pause(ctx, r.Every-time.Since(r.From)%r.Every)
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
