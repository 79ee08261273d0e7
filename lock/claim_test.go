package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestOneOfAHundredContendersWinsAndTheOthersLearnWho(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		var all []*redisworld.Replica
		for i := range 100 {
			all = append(all, w.Replica(fmt.Sprint("replica-", i)))
		}
		var wg sync.WaitGroup
		leases, answers := make([]*lock.Lease, len(all)), make([]lock.Answer, len(all))
		for i, r := range all {
			wg.Go(func() {
				var err error
				if leases[i], answers[i], err = r.Asks(r.Claim(1)); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		winner := ""
		for i, l := range leases {
			if l == nil {
				continue
			}
			if winner != "" {
				w.Fatalf("%s and %s won", winner, all[i].Name)
			}
			winner = all[i].Name
		}
		for i, a := range answers {
			if leases[i] == nil && (a.Code != lock.Fired || a.Holder != winner || !a.Prev.Equal(w.Tick(1))) {
				w.Errorf("%s was told %+v; %s won", all[i].Name, a, winner)
			}
		}
	})
}

func TestLosersWriteNothing(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born("paused", "foreign")
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:job:paused", "paused", "0 1 by me").Err())
		w.Must(w.Admin.Set(w.Context(), "solotick:{svc}:lock:foreign", "another tool", 0).Err())
		a.Wins(a.Claim(2))
		b.Loses(b.Claim(3), lock.Overlap) // the first loser of an overlapped tick writes it down
		before := w.Dump()
		b.Loses(b.Claim(2), lock.Fired)
		b.Loses(b.Claim(1), lock.Fired)
		b.Loses(b.Claim(3), lock.Overlap)
		gone := b.Claim(1)
		gone.Member = "1 billing schedule 1 0 0 x"
		b.Loses(gone, lock.Gone)
		on := b.Claim(4)
		on.Job = "paused"
		b.Loses(on, lock.Paused)
		on.Job = "foreign"
		b.Loses(on, lock.Locked)
		if after := w.Dump(); after != before {
			w.Errorf("losers changed\n%s\nto\n%s", before, after)
		}
	})
}

func TestRoundTripsAreOneBeforeTheRunTwoAfterItAndOneForTheLoser(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(a.Sync(w.Context())) // at its start, once
		w.Must(b.Sync(w.Context()))
		winner, loser := a.Proxy.Count(lossy.Any), b.Proxy.Count(lossy.Any)
		l, _ := a.Wins(a.Claim(1))
		if winner.N() != 1 {
			w.Errorf("winner before the run: %d", winner.N())
		}
		b.Loses(b.Claim(1), lock.Fired)
		if loser.N() != 1 {
			w.Errorf("loser: %d", loser.N())
		}
		a.Finishes(l, time.Second)
		w.Must(l.Release(0)(w.Context()))
		if winner.N() != 3 {
			w.Errorf("winner with the end of the run: %d", winner.N())
		}
	})
}

func TestLingeringLockNeverCostsALaterTick(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(l, time.Minute)
		if w.Owner() != l.Run() {
			w.Fatalf("the lock does not outlive the run: %q", w.Owner())
		}
		b.Loses(b.Claim(1), lock.Fired)
		next, _ := b.Wins(b.Claim(2))
		w.Must(l.Release(0)(w.Context())) // a's safety delay is over now
		if w.Owner() != next.Run() {
			w.Errorf("the lock is %q's, want %q", w.Owner(), next.Run())
		}
		if err := next.Verify(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

func TestReleasesOfOneMomentSpareTheLocksOfOthers(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born("x", "y")
		a := w.Replica("a")
		var leases []*lock.Lease
		for _, job := range []string{redisworld.Job, "x", "y"} {
			c := a.Claim(1)
			c.Job = job
			l, _ := a.Wins(c)
			leases = append(leases, l)
		}
		a.Finishes(leases[0], time.Minute)
		a.Finishes(leases[1], time.Minute) // y's run goes on
		other := a.Claim(2)
		other.Job = "x"
		next, _ := a.Wins(other)
		ended, end := context.WithCancel(w.Context())
		end()
		if err := leases[2].Release(0)(ended); !errors.Is(err, context.Canceled) {
			w.Errorf("a release that nobody waits for: %v", err)
		}
		var all sync.WaitGroup
		for _, l := range leases {
			all.Go(func() { w.Must(l.Release(0)(w.Context())) })
		}
		all.Wait()
		if w.Owner() != "" {
			w.Errorf("the lock is still %q's", w.Owner())
		}
		for job, owner := range map[string]string{"x": next.Run(), "y": leases[2].Run()} {
			if got := w.Admin.Get(w.Context(), "solotick:{svc}:lock:"+job).Val(); got != owner {
				w.Errorf("the lock of %s is %q's, want %q", job, got, owner)
			}
		}
	})
}

func TestReleaseNeverDeletesTheLockOfALiveRun(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		w.Must(l.Release(0)(w.Context())) // before Finish: not the run's end
		if w.Owner() != l.Run() {
			w.Fatalf("the lock is %q's", w.Owner())
		}
		a.Finishes(l, time.Minute)
		w.Must(l.Release(0)(w.Context()))
		if w.Owner() != "" {
			w.Fatalf("the lock is still %q's", w.Owner())
		}
	})
}

func TestALockIsReleasedAfterItsOwnSafetyDelay(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born("x")
		a := w.Replica("a")
		c := a.Claim(1)
		c.Job = "x"
		longer, _ := a.Wins(c)
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(longer, time.Hour)
		a.Finishes(l, time.Hour)
		longer.Release(time.Minute)
		const delay = 200 * time.Millisecond
		began := w.Now()
		w.Must(l.Release(delay)(w.Context()))
		if passed := w.Now().Sub(began); passed < delay || w.Owner() != "" {
			w.Errorf("after %s, of a delay of %s, the lock is %q's", passed, delay, w.Owner())
		}
		if owner := w.Admin.Get(w.Context(), "solotick:{svc}:lock:x").Val(); owner != longer.Run() {
			w.Errorf("the lock of x, whose delay is not over, is %q's", owner)
		}
	})
}

func TestLockOfAReplicaThatCrashesInTheSafetyDelayExpires(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(l, 500*time.Millisecond)
		w.Pass(600 * time.Millisecond) // nobody releases
		if w.Owner() != "" || w.Runs() != 0 {
			w.Errorf("%s", w.Dump())
		}
	})
}

func TestForeignValueInTheLockKeyIsRespected(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(l, time.Minute)
		w.Must(w.Admin.Set(w.Context(), lockKey, "another tool", 0).Err())
		a.Loses(a.Claim(2), lock.Locked)
		if w.Owner() != "another tool" || w.Runs() != 0 {
			w.Fatalf("%s", w.Dump())
		}
		w.Must(w.Admin.Del(w.Context(), lockKey).Err())
		a.Wins(a.Claim(2)) // the refusal did not claim it
	})
}

func TestAllowRunsTwoTicksSideBySideUnderLocksOfTheirOwn(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		one, two := a.Claim(1), b.Claim(2)
		one.Policy, two.Policy = lock.Allow, lock.Allow
		first, _ := a.Wins(one)
		second, _ := b.Wins(two)
		if first.Token >= second.Token {
			w.Errorf("tokens %d and %d", first.Token, second.Token)
		}
		for _, l := range []*lock.Lease{first, second} {
			w.Must(l.Verify(w.Context()))
		}
		again := b.Claim(2)
		again.Policy = lock.Allow
		b.Loses(again, lock.Fired)
		locks, err := w.Admin.Keys(w.Context(), lockKey+":*").Result()
		if err != nil || len(locks) != 2 {
			w.Errorf("locks: %v, %v", locks, err)
		}
		a.Finishes(first, time.Minute)
		w.Must(second.Verify(w.Context()))
		b.Finishes(second, time.Minute)
		// A lock per tick protects nothing after the run.
		if locks, _ := w.Admin.Keys(w.Context(), lockKey+"*").Result(); len(locks) != 0 || w.Runs() != 0 {
			w.Errorf("left: %v, %d runs", locks, w.Runs())
		}
	})
}

func TestClaimFromTheFutureWaitsForItsTick(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // to the millisecond
		w.Born()
		a, b := w.Replica("fast-by-a-second"), w.Replica("b")
		c := a.Claim(0)
		c.Tick = w.Start.Add(2 * time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l, _, err := a.Store.Acquire(w.Context(), c)
			if err != nil || l == nil {
				w.Errorf("%v, %v", l, err)
			}
			if now := w.Now(); now.Before(c.Tick.Add(-time.Second)) {
				w.Errorf("won at %s, tick %s", now, c.Tick)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		l, _ := b.Wins(b.Claim(2)) // the tick of its own time is not refused for the one that is ahead
		b.Finishes(l, 0)
		<-done
	})
}

// Its asker can do without a slot meanwhile, and a clock that is an hour behind may be set right long before the tick.
func TestAClaimWithAnUntilThatComesTooEarlyIsAnsweredAtOnce(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // to the millisecond
		w.Born()
		a := w.Replica("fast-by-an-hour")
		before := w.Dump()
		for _, ahead := range []time.Duration{1001 * time.Millisecond, time.Hour} {
			c := a.Claim(0)
			c.Tick = w.Start.Add(ahead)
			c.Until = c.Tick.Add(time.Minute)
			got := a.Loses(c, lock.Early)
			if now := w.Now(); !got.Now.Equal(now) || now.After(w.Start) || w.Dump() != before {
				w.Errorf("at %s: %+v", now.Sub(w.Start), got)
			}
		}
	})
}

// Without an Until there is nobody who would ask again: the claim is won on its tick, however far that is ahead.
func TestClaimOfATickThatIsFarAheadWaitsForIt(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		c := a.Claim(0)
		c.Tick = w.Start.Add(time.Hour)
		l, got, err := a.Store.Acquire(w.Context(), c)
		if err != nil || l == nil || w.Now().Before(c.Tick.Add(-time.Second)) {
			w.Errorf("at %s: %+v, %v", w.Now().Sub(w.Start), got, err)
		}
	})
}

func TestClaimFromTheFutureEndsWithItsContext(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // cancelled after the answer, and not while a busy machine waits for it
		w.Born()
		a := w.Replica("a")
		c := a.Claim(0)
		c.Tick = w.Now().Add(time.Hour)
		before := w.Dump()
		ctx, cancel := context.WithCancelCause(w.Context())
		early := a.Proxy.Count(lossy.Script(lock.AcquireSHA))
		time.AfterFunc(a.Timeout/4, func() { cancel(errors.New("the job was taken from the table")) })
		l, answer, err := a.Store.Acquire(ctx, c)
		if l != nil || err == nil || !strings.Contains(err.Error(), "taken from the table") || answer.Code != lock.Early {
			w.Fatalf("%v, %+v, %v", l, answer, err)
		}
		if early.N() > 2 || w.Dump() != before { // NOSCRIPT, EARLY
			w.Errorf("asked %d times", early.N())
		}
	})
}

func TestToleranceGuardsTheOrderOfTicksAndNotTheirPrecision(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // to the millisecond
		w.Born()
		a := w.Replica("a")
		for i, c := range []struct {
			period, ahead time.Duration
			early         bool
		}{
			{0, time.Second, false}, {0, 1001 * time.Millisecond, true},
			{time.Minute, time.Second, false}, {time.Minute, 1001 * time.Millisecond, true},
			{time.Second, 500 * time.Millisecond, false}, {time.Second, 501 * time.Millisecond, true},
		} {
			name := fmt.Sprint("job", i)
			w.Born(name)
			claim := lock.Claim{Job: name, Tick: w.Now().Add(c.ahead), TTL: w.TTL, Period: c.period}
			w.Must(a.Sync(w.Context()))
			began := time.Now()
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			l, _, err := a.Store.Acquire(ctx, claim)
			cancel()
			if l == nil || err != nil {
				w.Fatalf("%+v: %v", c, err)
			}
			if waited := time.Since(began) > 0; waited != c.early {
				w.Errorf("%+v: waited %v", c, waited)
			}
		}
	})
}

// Only how far Boottime advances tells anything; that no other clock is read, internal/imports sees to.
func TestBeginningOfBoottimeDoesNotMatter(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour before": time.Hour, "an hour after": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				w.Born()
				a, b := w.Replica("other"), w.Replica("one")
				a.Suspend(off) // before it asks anything, so that its whole CLOCK_BOOTTIME is another
				l, _ := a.Wins(a.Claim(1))
				if left := lock.TrustLeft(l); left > w.TTL-lock.Margin || left <= 0 {
					w.Errorf("trusts for %s", left)
				}
				now, ok := a.Now()
				if d := now.Sub(w.Now()).Abs(); !ok || d > a.Timeout {
					w.Errorf("Redis' time is off by %s", d)
				}
				b.Loses(b.Claim(1), lock.Fired)
				a.Finishes(l, 0)
				b.Wins(b.Claim(2))
			})
		})
	}
}

func TestTickOfAReplicaThatLagsIsRefused(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("slow-by-an-hour")
		l, _ := a.Wins(a.Claim(10))
		a.Finishes(l, 0)
		got := b.Loses(b.Claim(5), lock.Fired)
		if !got.Prev.Equal(w.Tick(10)) {
			w.Errorf("newest tick %s", got.Prev)
		}
	})
}

func TestStepOfRedisClockDoesNotRefuseClaimsForLong(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // only miniredis' clock can be set
		w.Born()
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		w.Mini.SetTime(time.Now().Add(time.Hour)) // every `until` made from the estimate has passed
		began := time.Now()
		l, _ := a.Wins(a.Claim(1))
		if d := time.Since(began); d > time.Second {
			w.Errorf("took %s", d)
		}
		if now, _ := a.Now(); time.Until(now) < 59*time.Minute {
			w.Errorf("Redis' time is still thought to be %s", now)
		}
		a.Finishes(l, 0)
	})
}

func TestGapListMadeFromAnOldLedgerIsRefusedWhole(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(3))
		a.Finishes(l, 0)
		c := b.Claim(9)
		c.OlderThan, c.Older = w.Tick(2), pasts(w.Tick(3), w.Tick(5))
		got := b.Loses(c, lock.Gap)
		if !got.Prev.Equal(w.Tick(3)) || len(w.Dues()) != 0 {
			w.Fatalf("%+v, due %+v", got, w.Dues())
		}
		c.OlderThan, c.Older = got.Prev, pasts(w.Tick(5), w.Tick(6), w.Tick(9))
		queued := b.Loses(c, lock.Queued)
		w.DueTicks(5, 6, 9)
		if !queued.Prev.Equal(w.Tick(3)) || w.Runs() != 0 {
			w.Errorf("%+v, %s", queued, w.Dump())
		}
		b.Loses(b.Claim(9), lock.Waits)
		b.Loses(b.Claim(6), lock.Waits)
		b.Loses(b.Claim(4), lock.Fired)
	})
}

// pasts are ticks that were not fired in time, and came due at their own instants.
func pasts(ticks ...time.Time) (all []lock.Past) {
	for _, t := range ticks {
		all = append(all, lock.Past{Tick: t, Due: t})
	}
	return all
}

func TestClaimThatCannotBeWrittenDownIsRefused(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		for name, spoil := range map[string]func(*lock.Claim){
			"ttl of the margin":     func(c *lock.Claim) { c.TTL = lock.Margin },
			"no job":                func(c *lock.Claim) { c.Job = "" },
			"a blank in the job":    func(c *lock.Claim) { c.Job = "my job" },
			"a blank in the kind":   func(c *lock.Claim) { c.Kind = "by hand" },
			"no such kind":          func(c *lock.Claim) { c.Kind = "other" },
			"a blank in a refusal":  func(c *lock.Claim) { c.Refused = []string{"my host"} },
			"no time":               func(c *lock.Claim) { c.Tick = time.UnixMilli(-1) },
			"a blank in the key":    func(c *lock.Claim) { c.Key = "of today" },
			"a blank in the name":   func(c *lock.Claim) { c.Replica = "my host" },
			"a line end in the run": func(c *lock.Claim) { c.Run = "u\n" },
		} {
			c := a.Claim(1)
			spoil(&c)
			if l, _, err := a.Store.Acquire(w.Context(), c); l != nil || err == nil || errors.Is(err, lock.ErrNoAnswer) {
				w.Errorf("%s: %v, %v", name, l, err)
			}
		}
		if _, err := a.Register(w.Context(), "my job", ""); err == nil {
			w.Error("a job with a blank was registered")
		}
	})
}

func TestDueMemberIsReadBackAsWritten(t *testing.T) {
	for _, d := range []lock.Due{
		{Tick: time.UnixMilli(1795197400705).UTC(), Job: "a", Kind: "catchup", Attempt: 1, Nonce: "n"},
		{Tick: time.UnixMilli(1).UTC(), Job: "a.b-c", Kind: "handover", Attempt: 2, Rounds: 3, Deaths: 1, Nonce: "n",
			Refused: []string{"a", "b.c"}},
	} {
		if got, err := lock.ParseDue(d.Member()); err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%q: %+v, %v", d.Member(), got, err)
		}
	}
	for _, text := range []string{
		"", "1 a manual 1 0 0", "x a manual 1 0 0 n", "1 a manual x 0 0 n", "1 a manual 1 x 0 n", "1 a manual 1 0 x n", // no member at all
		"1 a by\thand 1 0 0 n", "1 a manual\n 1 0 0 n", "1 a  1 0 0 n", "1 a MANUAL 1 0 0 n", // no kind
		"1 a manual: 1 0 0 n", "1 a manual:k\tk 1 0 0 n", "1 a backfill:\n 1 0 0 n", "1 a backfill:\x01k 1 0 0 n", // no key
		"1 a\tb manual 1 0 0 n", "1  manual 1 0 0 n", "1 @timers timer 1 0 0 n", "1 a manual 1 0 0 n\t", "1 a manual 1 0 0 n b  c", // no word
		"0 a manual 1 0 0 n", "-5 a manual 1 0 0 n", "1000000000000000 a manual 1 0 0 n", // no tick
		"1 a manual -1 0 0 n", "1 a manual 1 -1 0 n", "1 a manual 1 0 -1 n", // no count
		"01 a manual 1 0 0 n", "+1 a manual 1 0 0 n", "1 a manual 01 0 0 n", "1 a manual 1 +0 0 n", // it would be claimed as another member
	} {
		if d, err := lock.ParseDue(text); err == nil {
			t.Errorf("%q was read as %+v", text, d)
		}
	}
}

// FuzzWhatIsReadAsDueCanBeClaimed: a member that is read and refused would stay due for ever, in the way of its job's
// others.
func FuzzWhatIsReadAsDueCanBeClaimed(f *testing.F) {
	for _, kind := range []string{"schedule", "catchup", "handover", "takeover", "manual", "backfill", "timer", "by\thand", "other",
		"manual:key", "manual:a\tkey", "manual:\x01id", "backfill:"} {
		f.Add("1795197400705 a " + kind + " 1 0 0 n")
		f.Add("1795197400705 timer:a " + kind + " 2 1 1 n b \v")
	}
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"},
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errNoRedis }}, time.Second)
	s, err := lock.New(rdb, "svc", lock.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, member string) {
		d, err := lock.ParseDue(member)
		if err != nil {
			return
		}
		if d.Member() != member {
			t.Errorf("%q is read, and would be claimed as %q", member, d.Member())
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // nobody is asked: a claim that can be made has no answer
		c := lock.Claim{Job: d.Job, Tick: d.Tick, TTL: 15 * time.Second, Kind: d.Kind, Key: d.Key, Attempt: d.Attempt, Rounds: d.Rounds,
			Deaths: d.Deaths, Refused: d.Refused, Member: member}
		if _, _, err := s.Acquire(ctx, c); !errors.Is(err, lock.ErrNoAnswer) {
			t.Errorf("%q is read, and cannot be claimed: %v", member, err)
		}
	})
}

var errNoRedis = errors.New("there is no Redis")
