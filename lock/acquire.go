package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
)

// Policy says what happens to a tick that comes due while the job's previous run is not over.
type Policy string

const (
	Forbid    Policy = "Forbid"  // it is skipped; the default
	Allow     Policy = "Allow"   // it runs beside the other, under a lock of its own
	Queue     Policy = "Queue"   // one tick waits for the end of the present run
	Replace   Policy = "Replace" // the newest tick waits, and the present run is told to end
	HeldByOne Policy = "Lease"   // it is skipped, and nothing is kept of it: the answer is Held
)

// Claim asks for one tick of one job.
type Claim struct {
	Job  string    // one word; one that begins with "timer:" is a timer
	Tick time.Time // nominal, in whole milliseconds
	// Run is a random UUID (default: a new one), one per process, job and tick. If the caller asks again with the same
	// UUID, Redis gives the same answer. A tick that comes back as a due member is another run, and needs a new UUID. A
	// tick that is asked for again after ErrNoAnswer needs a new one too: the request that gives the first run back may
	// still be under way.
	Run     string
	Replica string // what losers are told
	TTL     time.Duration
	Policy  Policy
	Limit   int // with Allow: how many runs of the job may live at once; 0 = any number
	// Period is the distance from the tick before. A claim may be early by half of it, and by EarlyBy at most.
	Period time.Duration
	// Due is when the tick came due, if that is later than its nominal time: the tick overlaps with the runs that live
	// then.
	Due time.Time
	// Known is the newest tick up to which the caller knows that none was missed, mostly the newest claimed one. Before
	// is the tick of the schedule before Tick, or before the first of Older; zero if there is none. Ticks between the
	// newest claimed one and Tick were missed: the answer reports them in its Gaps.
	Known, Before time.Time
	// Kind, Attempt, Rounds and Deaths travel with the run to the replica that takes it over, and with its tick when it
	// is handed on. A kind is schedule (the default), catchup, handover, takeover, manual, backfill or timer.
	Kind    string
	Key     string // of its Due: it goes where the kind goes
	Attempt int    // from 1
	Retries int    // how many attempts may follow in the same run: a replica that takes it over counts on behind them
	Rounds  int    // how often all replicas have refused to start the tick
	Deaths  int    // how many replicas have died with it
	// Refused are the replicas that could not start the tick in this round.
	Refused []string
	// Again says that a run that is cut short must be run again: at-least-once.
	Again bool
	// Fingerprint is registered if Redis has lost the job's ledger.
	Fingerprint string

	// Until is the instant on Redis' clock from which the tick is not worth a run (zero = it always is). A copy of the
	// claim that Redis runs after it has no effect: a run that is not wanted any more would be in the way of newer
	// ticks.
	Until time.Time
	// MayNotWin says that the caller has no slot free for a run, and must not win. The script answers whether something
	// is in the tick's way, with the same effects as for any claim, or that nothing is: Free.
	MayNotWin bool

	// Member is the member of the due set that authorizes this run; empty = the tick comes from the table.
	Member string
	// Older are the ticks after OlderThan, up to and including Tick. OlderThan is the newest claimed tick as far as the
	// caller knows. If there are any, the claim does not run Tick at once: it makes all of them due, so that they are
	// run in order, and the answer is Queued. If OlderThan is no longer right, the answer is Gap. The script does not
	// check a zero OlderThan.
	Older     []Past
	OlderThan time.Time
}

// Past is a tick that was not fired in time.
type Past struct{ Tick, Due time.Time }

// prepare fills in what may be left out, and refuses what no replica may ask for.
func (c *Claim) prepare() error {
	if c.Run == "" {
		c.Run = uuid.NewString()
	}
	c.Policy, c.Kind, c.Replica = cmp.Or(c.Policy, Forbid), cmp.Or(c.Kind, "schedule"), cmp.Or(c.Replica, "-")
	c.Attempt = max(c.Attempt, 1)
	if c.Due.Before(c.Tick) {
		c.Due = c.Tick
	}
	if rds.IsTimer(c.Job) {
		if c.Member == "" {
			return fmt.Errorf("job %q has the name of a timer, and no tick of a table", c.Job)
		}
		c.Policy, c.Limit = Allow, 0 // timers share a ledger, not a turn
	}
	if c.TTL <= Margin {
		return fmt.Errorf("ttl %s is not longer than the margin of %s", c.TTL, Margin)
	}
	if err := rds.OneWord("replica", c.Replica); err != nil {
		return err
	}
	d := c.due()
	return d.check()
}

// slot is the part of the lock's key that keeps the locks of a job's ticks apart.
func (c *Claim) slot() string {
	if c.Policy == Allow {
		return ":" + rds.Itoa(rds.Millis(c.Tick))
	}
	return ""
}

// policy is the policy as the script knows it.
func (c *Claim) policy() string {
	if c.Policy == Allow && c.Limit > 0 {
		return fmt.Sprintf("%s:%d", Allow, c.Limit)
	}
	return string(c.Policy)
}

// EarlyBy is how long before its tick a claim may come at most.
const EarlyBy = time.Second

// tolerance guards the order of ticks, not their precision. A tolerance of zero would cost a second round trip for each
// replica whose estimate of Redis' time is half a round trip off.
func (c *Claim) tolerance() time.Duration {
	if c.Period == 0 {
		return EarlyBy
	}
	return min(EarlyBy, c.Period/2)
}

// record is the text that Redis keeps of the run, after tick, token, previous tick and the time of the claim.
func (c *Claim) record() string {
	again, n := "0", strconv.Itoa
	if c.Again {
		again = "1"
	}
	return strings.Join([]string{string(c.Policy), rds.Itoa(c.TTL.Milliseconds()), kindText(c.Kind, c.Key),
		n(c.Attempt), n(c.Retries), n(c.Rounds), n(c.Deaths), again, c.Replica}, " ")
}

// rest are the arguments that most claims do not need: the script's time grows with their number.
func (c *Claim) rest() []any {
	plain := c.slot() == "" && c.Member == "" && !c.MayNotWin && c.OlderThan.IsZero() && len(c.Older) == 0
	if plain && c.Due.Equal(c.Tick) && c.Before.IsZero() {
		return nil
	}
	args := []any{rds.Millis(c.Due), rds.Millis(c.Known), rds.Millis(c.Before), c.slot(), c.Member, "", ""}
	if c.MayNotWin {
		args[5] = "look"
	}
	if !c.OlderThan.IsZero() {
		args[6] = rds.Millis(c.OlderThan)
	}
	for _, p := range c.Older {
		d := Due{Tick: p.Tick, Job: c.Job, Kind: "catchup", Attempt: 1, Nonce: c.Run}
		args = append(args, d.Member(), rds.Millis(p.Due))
	}
	return args
}

// Acquire claims a tick: one round trip if nothing is wrong. It returns a Lease if this process may run the job now. If
// not, it returns no Lease, and Redis' reason in the Answer.
//
// A missing reply is neither of the two: Acquire asks the same question again, with the same UUID, until Redis answers
// or ctx ends. Without an Until, a question that comes too early waits for the tick on Redis' clock. If ctx ends first,
// the error wraps ErrNoAnswer and the cause of ctx.
//
// If Acquire returns without a lease while a copy of its request may still be under way, it first takes back what a
// copy may have claimed. A claim that no process knows of would cost the tick, and stand in the way of the next one.
// Acquire returns when it has taken the claim back, or when no copy can have an effect any more. That is at most TTL
// after it sent the last copy, and another TTL if Redis is away.
func (s *Store) Acquire(ctx context.Context, c Claim) (*Lease, Answer, error) {
	l := newLease(s, c)
	if err := l.claim.prepare(); err != nil {
		return nil, Answer{}, fmt.Errorf("acquiring %q: %w", c.Job, err)
	}
	q := question{store: s, claim: &l.claim, lease: l}
	lease, answer, err := q.ask(ctx)
	if lease == nil && q.unanswered > 0 && !c.MayNotWin { // which claims no run
		q.abandon(ctx)
	}
	if err != nil {
		err = fmt.Errorf("acquiring %q: %w: %w", c.Job, ErrNoAnswer, err)
	}
	return lease, answer, err
}

// question is one claim with all its copies.
type question struct {
	store      *Store
	claim      *Claim        // the lease's
	lease      *Lease        // of who wins
	unanswered int           // copies that Redis may still run, or has run
	closed     time.Duration // Boottime after which no copy can have an effect
}

func (q *question) ask(ctx context.Context) (*Lease, Answer, error) {
	var last error
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, Answer{}, rds.GaveUp(ctx, last)
		}
		sent := q.store.redis.Boottime()
		a, err := q.send(ctx, sent)
		switch {
		case err != nil:
			last = err
			if !beat.Sleep(ctx, rds.Backoff(try)) {
				return nil, Answer{}, rds.GaveUp(ctx, last)
			}
		case a.Code == Won:
			return q.won(ctx, a, sent)
		case a.Code == Lost: // taken over meanwhile: abandon says that the run never started
			q.unanswered++
			return nil, a, nil
		case a.Code == Early && (q.claim.Until.IsZero() || q.unanswered > 0): // Redis' clock may be set right meanwhile
			if !beat.Sleep(ctx, min(q.claim.Due.Sub(a.Now), 2*time.Second)) {
				return nil, a, context.Cause(ctx)
			}
		case a.Code == unknown:
			if _, err := q.store.RegisterAgain(ctx, q.claim.Job, q.claim.Fingerprint, q.claim.before()); err != nil {
				last = err
				if !beat.Sleep(ctx, rds.Backoff(try)) {
					return nil, a, rds.GaveUp(ctx, last)
				}
			}
		case a.Code == Early, a.Code == Stale && !q.claim.Until.IsZero(): // the caller looks at the tick again
			return nil, a, nil
		case a.Code == Stale: // the estimate of Redis' clock was wrong; this answer corrects it
			if !beat.Sleep(ctx, rds.Backoff(try)) {
				return nil, a, context.Cause(ctx)
			}
		default:
			// A tick, and a member, is claimed once: no copy can win any more.
			if a.Code == Fired || a.Code == Waits || a.Code == Gone {
				q.closed = 0
			}
			return nil, a, nil
		}
	}
}

// before is what a claim that found no ledger says of the lost one. Under at-least-once, the new ledger goes on where
// the claim stands: it must not settle the very ticks that are asked for.
func (c *Claim) before() Before {
	b := Before{Again: c.Again, Tick: c.Known}
	if c.Before.After(c.Known) {
		b.Tick = c.Before
	}
	if c.Again && len(c.Older) > 0 && !b.Tick.Before(c.Older[0].Tick) {
		b.Tick = c.Older[0].Tick.Add(-time.Millisecond)
	}
	return b
}

// send asks once. The copy carries the end of its own window on Redis' clock: sent + ttl - margin, or the claim's Until
// if that is earlier. send waits for the answer within the timeout of the round trip, even if ctx ends: an answer costs
// less than not knowing.
func (q *question) send(ctx context.Context, sent time.Duration) (Answer, error) {
	s, c := q.store, q.claim
	redisSent, err := s.redis.TimeAt(ctx, sent)
	if err != nil {
		return Answer{}, err
	}
	window := c.TTL - Margin
	if !c.Until.IsZero() {
		window = min(window, c.Until.Sub(redisSent))
	}
	args := make([]any, 0, 16+2*len(c.Older))
	args = append(args, c.Run, c.Job, rds.Millis(c.Tick), rds.Millis(redisSent.Add(window)), c.TTL.Milliseconds(),
		c.tolerance().Milliseconds(), c.policy(), c.record())
	args = append(args, c.rest()...)
	parts, err := s.redis.Call(context.WithoutCancel(ctx), acquireScript, 1,
		[]string{s.redis.Keys.Lock(c.Job, c.slot()), s.redis.Keys.Ledger(c.Job), s.redis.Keys.Running,
			s.redis.Keys.Due(c.Job), s.redis.Keys.Events}, args...)
	if err == nil {
		var a Answer
		a, err = parseAnswer(parts)
		return a, err
	}
	if !rds.WithoutEffect(err) {
		q.unanswered++
		q.closed = max(q.closed, sent+max(window, 0)+Margin) // a margin for errors in the estimate of Redis' clock
	}
	return Answer{}, err
}

// won makes a lease of the answer to the copy that was sent at `sent`. If that answer came too late to be trusted, won
// extends the lease first.
func (q *question) won(ctx context.Context, a Answer, sent time.Duration) (*Lease, Answer, error) {
	c, l := q.claim, q.lease
	l.Token, l.Since, l.born = a.Token, a.Since, a.Born
	l.trust.Store(int64(sent + c.TTL - Margin))
	if l.Trusted() {
		return l, a, nil
	}
	err := l.Verify(ctx)
	if err == nil {
		return l, a, nil
	}
	q.unanswered++ // claimed, and the run must not start any more
	q.closed = 0   // it cannot be claimed a second time, so no copy is worth waiting for
	if errors.Is(err, ErrLost) {
		a.Code = Lost
		return nil, a, nil
	}
	return nil, a, err
}

// abandon gives back what a copy of the claim has claimed, or may still claim until the window of the last copy is
// over. It asks Redis at once, a second later, and then less and less often until that end. If Redis stood still, it
// runs the waiting copies when it goes on, and a claim that no process knows of would be in the way of all ticks until
// then. A claim that was given back is not made again: its tick counts as claimed, and its due member is gone. abandon
// does not end with ctx, because the end of ctx makes it necessary.
func (q *question) abandon(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s, l := q.store, newLease(q.store, *q.claim)
	forgotten := s.redis.WaitReplicas() > 0 // a failover may forget the end and not the claim
	for wait := rds.ClockCheckEvery; ; wait *= 2 {
		last := s.redis.Boottime() >= q.closed || s.redis.Ending().Err() != nil
		// If Redis stays away, the lease runs out by itself and a takeover records the run as interrupted.
		if given, err := l.abandon(ctx); last || err == nil && given.Verdict != None && !forgotten {
			return
		}
		_ = s.redis.Outlast(min(q.closed, s.redis.Boottime()+wait))
	}
}
