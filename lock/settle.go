package lock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
)

// Settled is the result of a settlement.
type Settled struct {
	Verdict
	Streak
	Cancelled bool // an operator had cancelled the run, and it is recorded so, whatever its Ending said
}

// Verdict says what Redis knew of a run that was to be settled.
type Verdict string

const (
	OK    Verdict = "OK"
	Late  Verdict = "LATE"  // the run had been taken over before
	None  Verdict = "NONE"  // nothing is known of the run: settled before, or lost with Redis' data
	moved Verdict = "MOVED" // not reaped: its lease was extended meanwhile
)

// Streak is how many ticks of a job in a row had failed before a run was settled, and how many have now. The settlement
// that decides how the job stands has it, and no other: in all others both are 0.
type Streak struct{ Before, Now int }

// Ending is what Redis keeps of a run that is settled; the zero value is nothing.
type Ending struct {
	At     time.Time // when the run ended, by Redis' clock; zero = just now
	Entry  string    // of the history; opaque here
	Failed bool      // the entry is kept among the failures too, which successes do not push out
	// Fate is what becomes of the run's tick if this run is its last. "" = the tick is not one of the job's schedule.
	Fate string
	// Again tells that an operator had the tick run once more. It keeps the fate that it had.
	Again bool
}

// Finish writes down that the run is over: its entry goes into the history, its lease ends, and what waited behind it
// is set free. The lock lives on for delay, and expires by itself. If an answer is lost, Finish asks again. If Redis
// stays away until ctx ends, Finish returns an error and leaves the run to a takeover.
func (l *Lease) Finish(ctx context.Context, delay time.Duration, e Ending) (Settled, error) {
	if l.claim.Policy == Allow {
		delay = 0 // a lock per tick protects nothing afterwards
	}
	return l.settle(ctx, settlement{verb: "finish", delay: delay, ending: e, again: l.claim.takeover(1)})
}

// Requeue ends a run that was cut short, as Finish does. If its claim has Again, its next attempt is due at once.
func (l *Lease) Requeue(ctx context.Context, e Ending) (Settled, error) {
	return l.settle(ctx, settlement{verb: "requeue", ending: e, again: l.claim.takeover(0)})
}

// Interrupt is Requeue for a run whose executor has died, or has stopped. It counts as the death of a replica does,
// which bounds how often a tick is run again. The next attempt is due after one second, and after four times as long
// each time.
func (l *Lease) Interrupt(ctx context.Context, e Ending) (Settled, error) {
	wait := time.Second << (2 * min(l.claim.Deaths, takeovers))
	return l.settle(ctx, settlement{verb: "requeue", ending: e, again: l.claim.takeover(1), wait: wait})
}

// LastAsked stands in Due.Refused before the name of the replica that is asked last in this round, and has not refused
// yet.
const LastAsked = "~"

// Handover gives the tick to another replica, because this one could not even start the run. It adds this replica to
// those that have refused the tick in this round. The tick becomes due after wait.
func (l *Lease) Handover(ctx context.Context, wait time.Duration, e Ending) (Settled, error) {
	d := l.claim.due()
	d.Refused = append(slices.Clone(d.Refused), l.claim.Replica)
	return l.handOn(ctx, d, wait, e)
}

// NextRound is Handover for a tick that all replicas have refused. It begins a further round, in which this replica is
// asked last.
func (l *Lease) NextRound(ctx context.Context, wait time.Duration, e Ending) (Settled, error) {
	d := l.claim.due()
	d.Rounds, d.Refused = d.Rounds+1, []string{LastAsked + l.claim.Replica}
	return l.handOn(ctx, d, wait, e)
}

func (l *Lease) handOn(ctx context.Context, d Due, wait time.Duration, e Ending) (Settled, error) {
	if d.Kind == "schedule" || d.Kind == "catchup" { // a request by hand, or a repeated run, keeps its kind
		d.Kind = "handover"
	}
	return l.settle(ctx, settlement{verb: "handover", ending: e, again: d.Member(), wait: wait})
}

// GiveUp ends a run that never began, for good. It sets free what came due meanwhile, because the run was not in its
// way.
func (l *Lease) GiveUp(ctx context.Context, e Ending) (Settled, error) {
	return l.settle(ctx, settlement{verb: "handover", ending: e})
}

// abandon gives back what a copy of the claim that was never answered may have claimed. It repeats its request until
// Redis answers, for at most a ttl, or until BeginShutdown; after that it makes one more try.
func (l *Lease) abandon(ctx context.Context) (Settled, error) {
	ending := l.store.redis.Ending()
	limit := l.claim.TTL
	if ending.Err() != nil {
		limit, ending = l.store.redis.Timeout(), context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ending, cancel)()
	return l.settle(ctx, settlement{verb: "abandon", again: l.claim.due().Member()})
}

// due is this run's tick as a member of the due set.
func (c *Claim) due() Due {
	return Due{Tick: c.Tick, Job: c.Job, Kind: c.Kind, Key: c.Key, Attempt: c.Attempt,
		Rounds: c.Rounds, Deaths: c.Deaths, Nonce: c.Run, Refused: c.Refused}
}

// takeovers bounds how many replicas or executors may die with a tick: a job that kills its replica would kill one
// after the other.
const takeovers = 3

// takeover is the due member by which a run that is cut short is run again; "" if it must not be. Every replica makes
// the same member, so that a late finish can take it back. Only the run's own replica knows how many attempts there
// were, so the next attempt's number follows the highest possible one. A manual or backfill run keeps its kind.
func (c *Claim) takeover(deaths int) string {
	if !c.Again || c.Deaths+deaths > takeovers {
		return ""
	}
	d := c.due()
	if d.Kind != "manual" && d.Kind != "backfill" {
		d.Kind = "takeover"
	}
	d.Attempt += 1 + c.Retries
	d.Deaths, d.Rounds, d.Refused = c.Deaths+deaths, 0, nil
	return d.Member()
}

func (l *Lease) settle(ctx context.Context, how settlement) (Settled, error) {
	how.compared = rds.Millis(l.born)
	return l.store.settle(ctx, &l.claim, how)
}

// settlement is how a run leaves the set of runs: see settle.lua.
type settlement struct {
	verb     string
	delay    time.Duration // how long the lock outlives the run
	ending   Ending
	again    string        // due member
	wait     time.Duration // until it is due
	leaseEnd int64         // that the watcher saw, of a reap
	compared any           // when the ledger was born, as the run's claim saw it; of a reap, the watcher
}

// settle repeats a settlement until it is answered or ctx ends. Each verb is harmless when it is run twice.
func (s *Store) settle(ctx context.Context, c *Claim, how settlement) (Settled, error) {
	k := s.redis.Keys
	keys := []string{k.Lock(c.Job, c.slot()), k.Ledger(c.Job), k.Running, k.Due(c.Job), k.History(c.Job), k.Memo(c.Run),
		k.Failures(c.Job)}
	if rds.IsTimer(c.Job) {
		keys = append(keys, k.Timer(c.Job))
	}
	for try := 0; ; try++ {
		args := []any{how.verb, c.Run, c.Job, how.delay.Milliseconds(), k.Events, how.ending.Entry,
			s.redis.History(c.Job), how.ending.Fate}
		args = append(args, how.rest(s.endedAgo(c, how.ending.At))...)
		parts, err := s.redis.Call(ctx, settleScript, 1, keys, args...)
		if err == nil {
			return settled(parts)
		}
		if !beat.Sleep(ctx, min(rds.Backoff(try), soon)) {
			return Settled{}, fmt.Errorf("settling (%s) the run of %q: %w: %w", how.verb, c.Job, ErrNoAnswer, err)
		}
	}
}

// rest are the arguments that most settlements do not need. ago is how long ago the run ended.
func (how *settlement) rest(ago time.Duration) []any {
	e := &how.ending
	if how.verb == "finish" && ago == 0 && !e.Failed && how.again == "" && !e.Again {
		return nil
	}
	failed := ""
	if e.Failed {
		failed = "failed"
	}
	return []any{how.leaseEnd, how.compared, ago.Milliseconds(), failed, how.again, how.wait.Milliseconds(), e.Again}
}

// settled reads the answer of settle.lua.
func settled(parts []any) (Settled, error) {
	if len(parts) < 6 {
		return Settled{}, fmt.Errorf("the answer to a settlement has %d parts", len(parts))
	}
	code, _ := parts[0].(string)
	before, err := rds.Integer(parts[4])
	now, err2 := rds.Integer(parts[5])
	return Settled{Verdict(code), Streak{int(before), int(now)}, len(parts) > 6 && parts[6] != nil}, cmp.Or(err, err2)
}

// soon bounds the wait between two tries on which a lease depends: when Redis is back, little of the lease may be left.
const soon = 250 * time.Millisecond

// endedAgo is how long ago a run ended, if that was not just now: ticks that came due since then do not overlap with
// it.
func (s *Store) endedAgo(c *Claim, at time.Time) time.Duration {
	now, ok := s.Now()
	if !ok || at.IsZero() {
		return 0
	}
	ago := now.Sub(at)
	if ago < soon || ago > c.TTL { // the ending's clock is not Redis'
		return 0
	}
	return ago
}
