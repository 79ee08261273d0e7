package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Policy says what becomes of a tick that comes due while the job's previous run is not over.
type Policy string

const (
	Forbid  Policy = "Forbid"  // it is skipped; the default
	Allow   Policy = "Allow"   // it runs beside the other, under a lock of its own
	Queue   Policy = "Queue"   // one tick waits for the end of the present run
	Replace Policy = "Replace" // the newest tick waits, and the present run is told to end
)

// Claim asks for one tick of one job.
type Claim struct {
	Job  string    // one word; one that begins with "timer:" is a timer
	Tick time.Time // nominal, in whole milliseconds
	// Run is a random UUID (default: a new one), one per process, job and tick: asked again with it the answer is the same.
	// A tick that comes back as a due member is another run and takes a new one, and so does a tick that is asked for again
	// after ErrNoAnswer: what gave the first run back may still be under way.
	Run     string
	Replica string // what losers are told
	TTL     time.Duration
	Policy  Policy
	// Period is the smallest distance of the job's ticks. A claim may be early by half of it, and by a second at most.
	Period time.Duration
	// Kind, Attempt and Handovers travel with the run for whoever takes it over, and with its tick when it is handed on.
	// A kind is one word, opaque here.
	Kind      string
	Attempt   int // from 1
	Handovers int // how often the tick was handed on because it could not be started
	// Again says that a run that is cut short is to be run again: at-least-once.
	Again bool
	// Fingerprint is registered should Redis have lost the job's ledger.
	Fingerprint string

	// Second says that another replica was to ask first: whether it has is read before anything is asked, and a tick that
	// is claimed by then costs Redis a tenth of a question. It is for ticks of the table.
	Second bool

	// Member of the due set that is the authority for this run; empty, the tick comes from the table.
	Member string
	// Older are due members for the ticks between OlderThan, the newest tick claimed as far as the caller knows, and Tick,
	// and last for Tick itself. If there are any, the claim makes them due instead of running Tick at once, so that they
	// are run in order, and the answer is Queued: only if OlderThan is still right; else it is Gap. With a zero OlderThan
	// that is not asked.
	Older     []string
	OlderThan time.Time
}

func (c *Claim) setDefaults() {
	if c.Run == "" {
		c.Run = uuid.NewString()
	}
	if c.Policy == "" {
		c.Policy = Forbid
	}
	if c.Kind == "" {
		c.Kind = "schedule"
	}
	if c.Replica == "" {
		c.Replica = "-"
	}
	c.Attempt = max(c.Attempt, 1)
	if _, ok := TimerID(c.Job); ok {
		c.Policy = Allow // timers share a ledger, not a turn
	}
}

func (c *Claim) check() error {
	if c.TTL <= Margin {
		return fmt.Errorf("ttl %s is not longer than the margin of %s", c.TTL, Margin)
	}
	for _, w := range [...]struct{ what, text string }{{"job", c.Job}, {"kind", c.Kind}, {"run", c.Run}} {
		if err := oneWord(w.what, w.text); err != nil {
			return err
		}
	}
	if _, ok := TimerID(c.Job); ok && c.Member == "" || c.Job == TimerJobs {
		return fmt.Errorf("job %q has the name of a timer, and no tick of a table", c.Job)
	}
	return nil
}

// oneWord guards what Redis keeps separated by blanks: a record that cannot be read could not be taken over.
func oneWord(what, text string) error {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("%s %q is empty or has a blank", what, text)
	}
	return nil
}

func (c *Claim) slot() string {
	if id, ok := TimerID(c.Job); ok {
		return timerSlot(id)
	}
	if c.Policy == Allow {
		return ":" + itoa(millis(c.Tick))
	}
	return ""
}

// tolerance guards the order of ticks, not their precision: zero would cost every replica whose estimate of Redis' time
// is half a round trip off a second one.
func (c *Claim) tolerance() time.Duration {
	if c.Period == 0 {
		return time.Second
	}
	return min(time.Second, c.Period/2)
}

// record is what Redis keeps beside the run, behind tick, token and previous tick.
func (c *Claim) record() string {
	again := 0
	if c.Again {
		again = 1
	}
	return fmt.Sprintf("%s %d %s %d %d %d %s", c.Policy, c.TTL.Milliseconds(), c.Kind, c.Attempt, c.Handovers, again, c.Replica)
}

// rest are the arguments that most claims have no use for: a script's time grows with their number.
func (c *Claim) rest() []any {
	if c.slot() == "" && c.Member == "" && c.OlderThan.IsZero() && len(c.Older) == 0 {
		return nil
	}
	args := []any{c.slot(), c.Member, ""}
	if !c.OlderThan.IsZero() {
		args[2] = millis(c.OlderThan)
	}
	for _, m := range c.Older {
		args = append(args, m)
	}
	return args
}

// Acquire claims a tick: one round trip when nothing is wrong. It returns a Lease when this process may run the job now,
// and no Lease, with Redis' reason in the Answer, when not.
//
// A missing reply is neither: the same question is asked again, with the same UUID, until it is answered or ctx ends;
// too early a question waits for the tick on Redis' clock. The error, when ctx ends first, wraps ErrNoAnswer and the
// cause of ctx. Before a call returns without a lease, although a copy of its request may still be under way, it takes back
// what one may have claimed: a claim that nobody knows of would cost the tick, and stand in the way of the next. It returns
// when it has taken it back, or when no copy can have an effect any more (at most TTL after the last one was sent; another
// TTL, should Redis be away).
func (s *Store) Acquire(ctx context.Context, c Claim) (*Lease, Answer, error) {
	c.setDefaults()
	if err := c.check(); err != nil {
		return nil, Answer{}, fmt.Errorf("acquiring %q: %w", c.Job, err)
	}
	if c.Second && c.Member == "" {
		if a, ok := s.claimed(ctx, &c); ok {
			return nil, a, nil
		}
	}
	asked := c // so that what is only looked at needs no memory of its own
	q := question{store: s, claim: &asked}
	lease, answer, err := q.ask(ctx)
	if lease == nil && q.unanswered > 0 {
		q.abandon(ctx)
	}
	if err != nil {
		err = fmt.Errorf("acquiring %q: %w: %w", c.Job, ErrNoAnswer, err)
	}
	return lease, answer, err
}

// claimed reads whether the tick of a claim has been claimed, and what the script would answer then. Not ok: that is not
// known, so the script has to be asked.
func (s *Store) claimed(ctx context.Context, c *Claim) (Answer, bool) {
	reply, err := s.burst.do(ctx, "hmget", s.keys.ledger(c.Job), "tick", "overlap", "pausedTo", "by")
	fields, ok := reply.([]any)
	if err != nil || !ok || len(fields) != 4 {
		return Answer{}, false
	}
	var n [3]int64
	for i := range n {
		if fields[i] != nil { // most have no overlap and no pause behind them
			n[i], _ = integer(fields[i])
		}
	}
	holder, _ := fields[3].(string)
	a := Answer{Code: Fired, Prev: fromMillis(n[0]), Overlap: fromMillis(n[1]), PausedTo: fromMillis(n[2]), Holder: holder}
	a.Now, _ = s.Now()
	return a, millis(c.Tick) <= n[0]
}

// question is one claim with all its copies.
type question struct {
	store      *Store
	claim      *Claim
	unanswered int           // copies that Redis may still run, or has run
	closed     time.Duration // Boottime after which none of them can have an effect
}

func (q *question) ask(ctx context.Context) (*Lease, Answer, error) {
	var last error
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, Answer{}, gaveUp(ctx, last)
		}
		sent := q.store.boottime()
		a, err := q.send(ctx, sent)
		switch {
		case err != nil:
			last = err
			if !pause(ctx, backoff(try)) {
				return nil, Answer{}, gaveUp(ctx, last)
			}
		case a.Code == Won:
			return q.won(ctx, a, sent)
		case a.Code == Lost: // taken over meanwhile: abandoning says that it never started
			q.unanswered++
			return nil, a, nil
		case a.Code == Early:
			if !pause(ctx, q.claim.Tick.Sub(a.Now)) {
				return nil, a, context.Cause(ctx)
			}
		case a.Code == unknown:
			if _, err := q.store.Register(ctx, q.claim.Job, q.claim.Fingerprint); err != nil {
				last = err
				if !pause(ctx, backoff(try)) {
					return nil, a, gaveUp(ctx, last)
				}
			}
		case a.Code == stale: // Redis' clock is not where it was thought to be; by this answer it is known again
			if !pause(ctx, backoff(try)) {
				return nil, a, context.Cause(ctx)
			}
		default:
			if a.Code == Fired || a.Code == Gone { // a tick, and a member, is claimed once: no copy can win any more
				q.closed = 0
			}
			return nil, a, nil
		}
	}
}

// gaveUp says that ctx has ended, and what the last try met with.
func gaveUp(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (last try: %w)", context.Cause(ctx), last)
}

// send asks once. The copy carries the end of its own window: sent + ttl - margin on Redis' clock. A copy that is under
// way is waited for, within the round trip's timeout, even when ctx ends: an answer costs less than not knowing.
func (q *question) send(ctx context.Context, sent time.Duration) (Answer, error) {
	s, c := q.store, q.claim
	redisSent, ok := s.clock.middle(sent)
	if !ok {
		if err := s.Sync(ctx); err != nil {
			return Answer{}, err
		}
		redisSent, _ = s.clock.middle(sent)
	}
	window := c.TTL - Margin
	args := make([]any, 0, 12+len(c.Older))
	args = append(args, c.Run, c.Job, millis(c.Tick), millis(redisSent.Add(window)), c.TTL.Milliseconds(), c.tolerance().Milliseconds(),
		string(c.Policy), c.record())
	args = append(args, c.rest()...)
	parts, err := s.call(context.WithoutCancel(ctx), acquireScript, 1,
		[]string{s.keys.lock(c.Job, c.slot()), s.keys.ledger(c.Job), s.keys.running, s.keys.due}, args...)
	if err == nil {
		var a Answer
		a, err = parseAnswer(parts)
		return a, err
	}
	if !withoutEffect(err) {
		q.unanswered++
		q.closed = sent + c.TTL // the window, and a margin for what is wrong in the estimate of Redis' clock
	}
	return Answer{}, err
}

// won makes a lease of the answer to the copy that was sent at `sent`, and extends it first when that answer came too
// late to be trusted.
func (q *question) won(ctx context.Context, a Answer, sent time.Duration) (*Lease, Answer, error) {
	c := q.claim
	l := newLease(q.store, *c)
	l.Token = a.Token
	l.trust.Store(int64(sent + c.TTL - Margin))
	if l.Trusted() {
		return l, a, nil
	}
	err := l.Verify(ctx)
	if err == nil {
		return l, a, nil
	}
	q.unanswered++ // claimed, and not to be started any more
	q.closed = 0   // it cannot be claimed a second time, so no copy is worth waiting for
	if errors.Is(err, ErrLost) {
		a.Code = Lost
		return nil, a, nil
	}
	return nil, a, err
}

// abandon gives back what a copy of the claim may have claimed, or may yet claim until the window of the last one is over.
// It does so at once, a second later, and then less and less often until that end: copies that waited for a Redis that
// stood still are run when it goes on, and a claim that nobody knows of would be in the way of all ticks until then. Given
// back, it is not made again: its tick counts as claimed, and its due member is gone. abandon outlives ctx: this is what
// the end of ctx makes necessary.
func (q *question) abandon(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s, l := q.store, newLease(q.store, *q.claim)
	forgotten := s.burst.replicas > 0 // as a failover may: replicas that were waited for have the claim, and perhaps not its end
	for wait := glance; ; wait *= 2 {
		last := s.boottime() >= q.closed || s.ending.Err() != nil
		// When Redis stays away, the lease runs out by itself and a takeover records the run as interrupted.
		if given, err := l.abandon(ctx); last || err == nil && given != None && !forgotten {
			return
		}
		_ = s.outlast(min(q.closed, s.boottime()+wait))
	}
}
