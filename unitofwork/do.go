package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Work says what a unit is to be: everything about it but its function. The zero value is
// right for most.
type Work struct {
	// Keys are what the unit needs beside the guards of what it reads and stages: a customer
	// as a whole, say. Naming those that it will find saves calling its function again where
	// others are in the way. Required for [Client.Begin], and with Lock.
	Keys []ordering.Key
	// Lock takes the locks of Keys before the function is called: for functions that take
	// long, and for those that need a token. A record that none of them covers is an error
	// then. To write to another store, use Begin or a lock set: Do may call its function again.
	Lock bool
	// ID makes the unit commit once, ever (within Config.IDRetention): whoever
	// commits first under an ID wins, everybody after is told it is done. At
	// most 1,024 bytes of UTF-8, not beginning with "unit:". Needs Config.Table.
	ID string
	// Payload is what the ID stands for: the same ID with another payload, or
	// with other Keys, is refused with an *[IDError].
	Payload []byte
	// Alone keeps the unit apart from others. Else units of one process that want the same keys
	// at the same time may be committed together: their functions run one after another, each
	// on what those before it have staged, which is not committed yet.
	Alone bool
	// Wait limits how long the unit waits for others, in all: the record wait. When it is over, the
	// error is a *lockset.HeldError. If the wait, or the time before the context's deadline, is too
	// short to wait in turn, the call fails at once (see [lockset.Wait]). Default: two leases.
	// lockset.Forever waits until the context ends.
	Wait lockset.Wait
	// Purpose says what the unit is for, in at most 256 bytes of UTF-8, for people: it is on the
	// rows that the unit locks, and those who wait for it are told.
	Purpose string
	// Attempts is how often Do tries at most under locks. When they were lost, or the
	// commit was refused for it or for a later token (see [lockset.StartOver]), it starts
	// over with a fresh unit and a fresh token, and calls its function again. It
	// does not for an error that the function returned while the locks were held,
	// not even for a *fencing.StaleError: only the function's author knows what it
	// did before. A run without locks does not count, nor one that has found keys. With Lock
	// and one attempt the function is never called twice. Default 10. Begin tries once.
	Attempts int
}

// defaultAttempts outlasts a run of bad luck, and ends what would go on for ever
// under a context without an end.
const defaultAttempts = 10

// leasesToWait is how many leases a unit waits for others by default: a holder that died is
// succeeded within one, and the caller of a server often has no deadline of its own.
const leasesToWait = 2

// checked returns the work with its defaults, or why no unit of this client can be so.
func (w Work) checked(cfg Config, lease time.Duration) (Work, error) {
	w.Keys = slices.Clone(w.Keys) // the caller's slice may change before the commit
	if w.Attempts == 0 {
		w.Attempts = defaultAttempts
	}
	if w.Wait == (lockset.Wait{}) {
		w.Wait = lockset.For(leasesToWait * lease)
	}
	switch {
	case w.Lock && len(w.Keys) == 0:
		return w, errNoKeys
	case w.Attempts < 0:
		return w, &locks.ConfigError{Field: "Work.Attempts", Reason: "is less than 0"}
	case lockrow.WrongWith(w.Purpose) != "":
		return w, &locks.ConfigError{Field: "Work.Purpose", Reason: lockrow.WrongWith(w.Purpose)}
	case w.ID == "" && w.Payload != nil:
		return w, &IDError{"", "there is a payload but no ID"}
	case w.ID != "" && cfg.Table == "":
		return w, &IDError{w.ID, "unitofwork.Config.Table is not set, so IDs cannot be remembered"}
	}
	return w, checkID(w.ID)
}

var errNoKeys = &locks.ConfigError{Field: "Work.Keys", Reason: "is empty: without keys nothing can be locked first"}

// fits returns a *[tooLargeError] if a unit of this work, with so many lock rows and
// writes, does not fit into one transaction of at most so many actions.
func (w Work) fits(rows, writes, most int) error {
	records := 0
	if w.ID != "" {
		records = 1
	}
	if rows+writes+records > most {
		return &tooLargeError{Rows: rows, Writes: writes, Records: records, Most: most}
	}
	return nil
}

// Do calls fn, and commits what it staged when it returns nil; otherwise, also when it
// panics, nothing is written. What fn read is still true when it commits, and nobody else's
// unit is in between.
//
// Units of one process that wait for the same keys are committed together, if they are short and
// none of them is to be alone (Work.Alone): one after another fn is called, or goes on, on what
// those before it have staged, and one transaction commits them all. If it does not, fn's error is
// not told, and fn is called again. The end of ctx does not interrupt a commit that was sent: Do
// returns when its outcome is known. If DynamoDB does not answer, finding it out takes up to a
// lease; a commit that units share is sent again before that, for up to another.
//
// At first Do takes no locks. It looks at the lock rows of the guards of what fn reads,
// together with that, and commits only if nobody has had them since: as many requests as a
// transaction with versions, and nothing is left behind if the process dies. If somebody has
// had them, or has, it calls fn anew after a random pause, four times at most. After that, or if
// the run took longer than a quarter of a second, or the unit is too large for one transaction
// or has more than 50 lock rows, Do locks the keys that it has found, together with Work.Keys, and
// calls fn anew.
// It waits for locks, first come, first served, until ctx ends or Work.Wait is over, which is two
// leases by default. If fn needs other keys then, because the data has changed or because it reads
// one by one what it did not come to before, Do starts over with those as well; after eight times
// the error names them all. So records whose keys are known are best read by one Get.
//
// So fn may be called several times, and must not act on the outside world. It reads with
// [Unit.Get]: what it queries, scans or reads by itself is protected by nothing, unless
// Work.Keys covers it and Work.Lock is set; what a query has found is to be read once more
// by Get before it counts. After an error of the unit's methods fn is to return. Its context
// ends when ctx does, when the locks are lost, or when Do is going to call it again.
// Do ends the unit: if fn calls Commit or Rollback, nothing is written, and the error
// says so.
//
// Do returns nil if the unit is committed, by this call or, under the same ID,
// by an earlier one. Otherwise nothing was written, unless the error matches
// [ErrInDoubt]; [lockset.NextOf] says what may be done. The error matches [lockset.ErrNested] under
// the context of another unit, and of a lock set that holds a key which the unit needs, or one above
// or below it. fn's own error is returned as it is, joined with the loss of the locks if there was
// one, or with why the ID could not be looked up; what fn was told was one state of the tables.
func (c *Client) Do(ctx context.Context, work Work, fn func(context.Context, *Unit) error) error {
	if fn == nil {
		misuse.Of("unitofwork", "Client.Do", "nil function")
	}
	bounded := work.Wait != (lockset.Wait{})
	work, err := work.checked(c.cfg, c.lockConfig.Lease)
	if err != nil {
		return err
	}
	ctx, call, end, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer end()
	r := newRuns(work)
	r.bounded = bounded
	r.finding = !work.Lock
	if !work.Lock && !work.Alone {
		r.group = &group{}
	}
	defer c.locks.Gone(&r.caller)
	r.large = tooMany(work.Keys)
	r.locked = work.Lock || r.large
	for n := 1; ; {
		unit, next, err := c.once(ctx, call, r, fn)
		call.unit.Store(nil)
		// Who still waits for its turn comes along again, or with whoever is faster.
		r.group.putBack()
		if void, is := err.(*voidError); is { //nolint:errorlint // our own, as it is
			if err := r.again(void); err != nil {
				return call.tell(err)
			}
			switch {
			case void.alone, void.together, r.found > 0: // they do not all come back at once
				_ = requests.Sleep(ctx, requests.Jittered(comeBack, unit, 1))
			case !r.locked:
				_ = requests.Sleep(ctx, r.pause(unit, void.took))
			}
			continue
		}
		if n == work.Attempts || next != lockset.StartOver || ctx.Err() != nil || call.closed.Load() {
			return call.tell(err)
		}
		n++
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.StartingOver, N: n, Err: err})
		if requests.Sleep(ctx, startOverPause(unit, n-1)) != nil {
			return call.tell(err)
		}
	}
}

// comeBack is how soon those are back whose group came to nothing.
const comeBack = time.Millisecond

// startOverPause grows with n, jittered by the unit that failed.
func startOverPause(unit string, n int) time.Duration {
	return requests.Jittered(20*time.Millisecond<<min(n, 6), unit, n)
}

// once is one run. It returns the nonce of its unit, if it got one, and what holdall itself
// has to say of starting over: fn's own error is fn's business. The error is a *voidError
// if another run is to follow.
func (c *Client) once(ctx context.Context, call *call, r *runs, fn func(context.Context, *Unit) error) (unit string, next lockset.Next, err error) {
	begin := c.beginWithoutLocks
	if r.locked {
		begin = c.begin
	}
	u, err := begin(ctx, r)
	if errors.Is(err, ErrAlreadyCommitted) {
		return "", lockset.Decide, nil
	}
	if err != nil {
		return "", lockset.NextOf(err), err
	}
	u.managed = true
	u.call = call
	if call.unit.Store(u); call.closed.Load() { // Close may not have seen the unit
		return u.nonce, lockset.Decide, u.rollback(u.outer, lockset.ErrClosed)
	}
	returned := false
	defer func() { // a panic or runtime.Goexit on its way through
		if !returned {
			u.quiet()
			u.leaveGroup()
			r.group.putBack()
			_ = u.rollback(u.outer, errFnDidNotReturn)
		}
	}()
	began := time.Now()
	err = u.callFunction(fn)
	returned = true
	if r.locked { // without locks it may have waited, too
		r.worked(time.Since(began))
	}
	u.quiet()
	if u.follows() {
		return u.endInGroup(err)
	}
	verdict := u.verdict(err)
	if verdict == nil && err != nil && u.leadsOn(err) {
		return u.nonce, lockset.Decide, u.commit(u.outer)
	}
	if verdict != nil || err != nil { // before others have what it had
		r.group.putBack()
	}
	switch {
	case errors.Is(verdict, ErrAlreadyCommitted):
		_ = u.conclude(u.outer, verdict)
		return u.nonce, lockset.Decide, nil
	case verdict != nil:
		return u.nonce, lockset.NextOf(verdict), u.conclude(u.outer, verdict)
	case err == nil:
		if err = u.commit(u.outer); errors.Is(err, ErrAlreadyCommitted) {
			err = nil
		}
		return u.nonce, lockset.NextOf(err), err
	}
	next = lockset.Decide
	var lost *heartbeat.LostError
	if u.optimistic == nil && errors.As(context.Cause(u.set.Context()), &lost) {
		next = lockset.StartOver
		if !errors.Is(err, lockset.ErrLost) {
			err = oneline.Join(lost, err) // which is why fn failed, or makes it moot
		}
	}
	return u.nonce, next, u.rollback(u.outer, err)
}

// callFunction calls the unit's function, and tells of it.
func (u *Unit) callFunction(fn func(context.Context, *Unit) error) (err error) {
	began, told := time.Now(), u.c.cfg.Trace
	ctx := hooks.Start(u.ctx, told, trace.Event{Kind: trace.Function, Unit: u.nonce})
	err = errFnDidNotReturn // a panic or runtime.Goexit on its way through
	defer func() {
		hooks.Tell(ctx, told, trace.Event{Kind: trace.Function, Unit: u.nonce, Took: time.Since(began), Err: err})
	}()
	err = fn(ctx, u)
	return err
}

// quiet ends the reads of a unit whose function has returned: one that is under way would change
// what the unit relies on, or what its group has read.
func (u *Unit) quiet() {
	u.cancel(errEnded)
	if u.optimistic != nil {
		u.turn <- struct{}{} // for good
	} else {
		u.gathering.Lock() // for good
	}
}

// verdict is what becomes of the unit, whatever its function has made of it: failed is what
// the function returned. What a function says of an ID that was committed before does not
// count.
func (u *Unit) verdict(failed error) error {
	u.mu.Lock()
	verdict := u.stage.verdict
	u.mu.Unlock()
	if verdict != nil || failed == nil || u.optimistic == nil || u.work.ID == "" || u.lookedUp {
		return verdict
	}
	if errors.As(failed, new(*lockset.NoAnswerError)) { // nor would the look be answered
		return nil
	}
	err := u.lookUp(requests.Overtime(u.outer, u.readEnd))
	if err == nil || errors.Is(err, ErrAlreadyCommitted) || errors.As(err, new(*IDError)) {
		return err
	}
	if refused, again := new(lockset.TableError), new(lockset.TableError); errors.As(failed, &refused) && errors.As(err, &again) && refused.Err.Error() == again.Err.Error() {
		return nil // failed says it
	}
	return oneline.Join(failed, err)
}

var errFnDidNotReturn = errors.New("the function of the unit did not return")
