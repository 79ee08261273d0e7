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

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

func TestOneOfAHundredContendersWinsAndTheOthersLearnWho(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		var all []*replica
		for i := range 100 {
			all = append(all, w.replica(fmt.Sprint("replica-", i)))
		}
		var wg sync.WaitGroup
		leases, answers := make([]*lock.Lease, len(all)), make([]lock.Answer, len(all))
		for i, r := range all {
			wg.Go(func() {
				var err error
				if leases[i], answers[i], err = r.acquire(r.claim(1)); err != nil {
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
				w.Fatalf("%s and %s won", winner, all[i].name)
			}
			winner = all[i].name
		}
		for i, a := range answers {
			if leases[i] == nil && (a.Code != lock.Fired || a.Holder != winner || !a.Prev.Equal(w.tick(1))) {
				w.Errorf("%s was told %+v; %s won", all[i].name, a, winner)
			}
		}
	})
}

func TestLosersWriteNothing(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born("paused", "foreign")
		a, b := w.replica("a"), w.replica("b")
		w.must(w.admin.HSet(w.Context(), "solotick:{svc}:job:paused", "paused", "0 1 by me").Err())
		w.must(w.admin.Set(w.Context(), "solotick:{svc}:lock:foreign", "another tool", 0).Err())
		a.wins(a.claim(2))
		b.loses(b.claim(3), lock.Overlap) // the first loser of an overlapped tick writes it down
		before := w.dump()
		b.loses(b.claim(2), lock.Fired)
		b.loses(b.claim(1), lock.Fired)
		b.loses(b.claim(3), lock.Overlap)
		gone := b.claim(1)
		gone.Member = "1 billing schedule 1 0 0 x"
		b.loses(gone, lock.Gone)
		on := b.claim(4)
		on.Job = "paused"
		b.loses(on, lock.Paused)
		on.Job = "foreign"
		b.loses(on, lock.Locked)
		if after := w.dump(); after != before {
			w.Errorf("losers changed\n%s\nto\n%s", before, after)
		}
	})
}

func TestRoundTripsAreOneBeforeTheRunTwoAfterItAndOneForTheLoser(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		w.must(a.Sync(w.Context())) // at its start, once
		w.must(b.Sync(w.Context()))
		winner, loser := a.proxy.Count(lossy.Any), b.proxy.Count(lossy.Any)
		l, _ := a.wins(a.claim(1))
		if winner.N() != 1 {
			w.Errorf("winner before the run: %d", winner.N())
		}
		b.loses(b.claim(1), lock.Fired)
		if loser.N() != 1 {
			w.Errorf("loser: %d", loser.N())
		}
		a.finishes(l, time.Second)
		w.must(l.Release(w.Context()))
		if winner.N() != 3 {
			w.Errorf("winner with the end of the run: %d", winner.N())
		}
	})
}

func TestLingeringLockNeverCostsALaterTick(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		a.finishes(l, time.Minute)
		if w.owner() != l.Run() {
			w.Fatalf("the lock does not outlive the run: %q", w.owner())
		}
		b.loses(b.claim(1), lock.Fired)
		next, _ := b.wins(b.claim(2))
		w.must(l.Release(w.Context())) // a's safety delay is over now
		if w.owner() != next.Run() {
			w.Errorf("the lock is %q's, want %q", w.owner(), next.Run())
		}
		if err := next.Verify(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

func TestReleaseNeverDeletesTheLockOfALiveRun(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		w.must(l.Release(w.Context())) // before Finish: not the run's end
		if w.owner() != l.Run() {
			w.Fatalf("the lock is %q's", w.owner())
		}
		a.finishes(l, time.Minute)
		w.must(l.Release(w.Context()))
		if w.owner() != "" {
			w.Fatalf("the lock is still %q's", w.owner())
		}
	})
}

func TestLockOfAReplicaThatCrashesInTheSafetyDelayExpires(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		a.finishes(l, 500*time.Millisecond)
		w.pass(600 * time.Millisecond) // nobody releases
		if w.owner() != "" || w.runs() != 0 {
			w.Errorf("%s", w.dump())
		}
	})
}

func TestForeignValueInTheLockKeyIsRespected(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		a.finishes(l, time.Minute)
		w.must(w.admin.Set(w.Context(), lockKey, "another tool", 0).Err())
		a.loses(a.claim(2), lock.Locked)
		if w.owner() != "another tool" || w.runs() != 0 {
			w.Fatalf("%s", w.dump())
		}
		w.must(w.admin.Del(w.Context(), lockKey).Err())
		a.wins(a.claim(2)) // the refusal did not claim it
	})
}

func TestAllowRunsTwoTicksSideBySideUnderLocksOfTheirOwn(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		one, two := a.claim(1), b.claim(2)
		one.Policy, two.Policy = lock.Allow, lock.Allow
		first, _ := a.wins(one)
		second, _ := b.wins(two)
		if first.Token >= second.Token {
			w.Errorf("tokens %d and %d", first.Token, second.Token)
		}
		for _, l := range []*lock.Lease{first, second} {
			w.must(l.Verify(w.Context()))
		}
		again := b.claim(2)
		again.Policy = lock.Allow
		b.loses(again, lock.Fired)
		locks, err := w.admin.Keys(w.Context(), lockKey+":*").Result()
		if err != nil || len(locks) != 2 {
			w.Errorf("locks: %v, %v", locks, err)
		}
		a.finishes(first, time.Minute)
		w.must(second.Verify(w.Context()))
		b.finishes(second, time.Minute)
		// A lock per tick protects nothing after the run.
		if locks, _ := w.admin.Keys(w.Context(), lockKey+"*").Result(); len(locks) != 0 || w.runs() != 0 {
			w.Errorf("left: %v, %d runs", locks, w.runs())
		}
	})
}

func TestClaimFromTheFutureWaitsForItsTick(t *testing.T) {
	inBubble(t, func(w *world) { // to the millisecond
		w.born()
		a, b := w.replica("fast-by-a-second"), w.replica("b")
		c := a.claim(0)
		c.Tick = w.start.Add(2 * time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l, _, err := a.Store.Acquire(w.Context(), c)
			if err != nil || l == nil {
				w.Errorf("%v, %v", l, err)
			}
			if now := w.now(); now.Before(c.Tick.Add(-time.Second)) {
				w.Errorf("won at %s, tick %s", now, c.Tick)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		l, _ := b.wins(b.claim(2)) // the tick of its own time is not refused for the one that is ahead
		b.finishes(l, 0)
		<-done
	})
}

// A clock that is an hour behind may be set right long before the tick.
func TestClaimOfATickThatIsFarAheadOfRedisClockIsAnsweredAtOnce(t *testing.T) {
	inBubble(t, func(w *world) { // to the millisecond
		w.born()
		a := w.replica("fast-by-an-hour")
		before := w.dump()
		for _, ahead := range []time.Duration{2001 * time.Millisecond, time.Hour} {
			c := a.claim(0)
			c.Tick = w.start.Add(ahead)
			c.Until = c.Tick.Add(time.Minute)
			got := a.loses(c, lock.Early)
			if now := w.now(); !got.Now.Equal(now) || now.After(w.start) || w.dump() != before {
				w.Errorf("at %s: %+v", now.Sub(w.start), got)
			}
		}
	})
}

// Without an Until there is nobody who would ask again: the claim is won on its tick, however far that is ahead.
func TestClaimOfATickThatIsFarAheadWaitsForIt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		c := a.claim(0)
		c.Tick = w.start.Add(time.Hour)
		l, got, err := a.Store.Acquire(w.Context(), c)
		if err != nil || l == nil || w.now().Before(c.Tick.Add(-time.Second)) {
			w.Errorf("at %s: %+v, %v", w.now().Sub(w.start), got, err)
		}
	})
}

func TestClaimFromTheFutureEndsWithItsContext(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		c := a.claim(0)
		c.Tick = w.now().Add(1900 * time.Millisecond)
		before := w.dump()
		ctx, cancel := context.WithCancelCause(w.Context())
		early := a.proxy.Count(lossy.Script(lock.AcquireSHA))
		time.AfterFunc(a.timeout/4, func() { cancel(errors.New("the job was taken from the table")) })
		l, answer, err := a.Store.Acquire(ctx, c)
		if l != nil || err == nil || !strings.Contains(err.Error(), "taken from the table") || answer.Code != lock.Early {
			w.Fatalf("%v, %+v, %v", l, answer, err)
		}
		if early.N() > 2 || w.dump() != before { // NOSCRIPT, EARLY
			w.Errorf("asked %d times", early.N())
		}
	})
}

func TestToleranceGuardsTheOrderOfTicksAndNotTheirPrecision(t *testing.T) {
	inBubble(t, func(w *world) { // to the millisecond
		w.born()
		a := w.replica("a")
		for i, c := range []struct {
			period, ahead time.Duration
			early         bool
		}{
			{0, time.Second, false}, {0, 1001 * time.Millisecond, true},
			{time.Minute, time.Second, false}, {time.Minute, 1001 * time.Millisecond, true},
			{time.Second, 500 * time.Millisecond, false}, {time.Second, 501 * time.Millisecond, true},
		} {
			name := fmt.Sprint("job", i)
			w.born(name)
			claim := lock.Claim{Job: name, Tick: w.now().Add(c.ahead), TTL: w.ttl, Period: c.period}
			w.must(a.Sync(w.Context()))
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
			onEvery(t, func(w *world) {
				w.born()
				a, b := w.replica("other"), w.replica("one")
				a.suspend(off) // before it asks anything, so that its whole CLOCK_BOOTTIME is another
				l, _ := a.wins(a.claim(1))
				if left := lock.TrustLeft(l); left > w.ttl-lock.Margin || left <= 0 {
					w.Errorf("trusts for %s", left)
				}
				now, ok := a.Now()
				if d := now.Sub(w.now()).Abs(); !ok || d > a.timeout {
					w.Errorf("Redis' time is off by %s", d)
				}
				b.loses(b.claim(1), lock.Fired)
				a.finishes(l, 0)
				b.wins(b.claim(2))
			})
		})
	}
}

func TestTickOfAReplicaThatLagsIsRefused(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("slow-by-an-hour")
		l, _ := a.wins(a.claim(10))
		a.finishes(l, 0)
		got := b.loses(b.claim(5), lock.Fired)
		if !got.Prev.Equal(w.tick(10)) {
			w.Errorf("newest tick %s", got.Prev)
		}
	})
}

func TestStepOfRedisClockDoesNotRefuseClaimsForLong(t *testing.T) {
	inBubble(t, func(w *world) { // only miniredis' clock can be set
		w.born()
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		w.mini.SetTime(time.Now().Add(time.Hour)) // every `until` made from the estimate has passed
		began := time.Now()
		l, _ := a.wins(a.claim(1))
		if d := time.Since(began); d > time.Second {
			w.Errorf("took %s", d)
		}
		if now, _ := a.Now(); time.Until(now) < 59*time.Minute {
			w.Errorf("Redis' time is still thought to be %s", now)
		}
		a.finishes(l, 0)
	})
}

func TestGapListMadeFromAnOldLedgerIsRefusedWhole(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(3))
		a.finishes(l, 0)
		c := b.claim(9)
		c.OlderThan, c.Older = w.tick(2), pasts(w.tick(3), w.tick(5))
		got := b.loses(c, lock.Gap)
		if !got.Prev.Equal(w.tick(3)) || len(w.dues()) != 0 {
			w.Fatalf("%+v, due %+v", got, w.dues())
		}
		c.OlderThan, c.Older = got.Prev, pasts(w.tick(5), w.tick(6), w.tick(9))
		queued := b.loses(c, lock.Queued)
		w.dueTicks(5, 6, 9)
		if !queued.Prev.Equal(w.tick(3)) || w.runs() != 0 {
			w.Errorf("%+v, %s", queued, w.dump())
		}
		b.loses(b.claim(9), lock.Waits)
		b.loses(b.claim(6), lock.Fired)
	})
}

// pasts are ticks that were not fired in time, and came due at their own instants.
func pasts(ticks ...time.Time) (all []lock.Past) {
	for _, t := range ticks {
		all = append(all, lock.Past{Tick: t, Due: t})
	}
	return all
}

// dueTicks demands that exactly these are due.
func TestClaimThatCannotBeWrittenDownIsRefused(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		for name, spoil := range map[string]func(*lock.Claim){
			"ttl of the margin":     func(c *lock.Claim) { c.TTL = lock.Margin },
			"no job":                func(c *lock.Claim) { c.Job = "" },
			"a blank in the job":    func(c *lock.Claim) { c.Job = "my job" },
			"a blank in the kind":   func(c *lock.Claim) { c.Kind = "by hand" },
			"no such kind":          func(c *lock.Claim) { c.Kind = "other" },
			"a blank in a refusal":  func(c *lock.Claim) { c.Refused = []string{"my host"} },
			"no time":               func(c *lock.Claim) { c.Tick = time.UnixMilli(-1) },
			"a blank in the key":    func(c *lock.Claim) { c.Key = "of today" },
			"a blank in its heir":   func(c *lock.Claim) { c.AgainKey = "of today" },
			"a blank in the name":   func(c *lock.Claim) { c.Replica = "my host" },
			"a line end in the run": func(c *lock.Claim) { c.Run = "u\n" },
		} {
			c := a.claim(1)
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
		"1 a manual: 1 0 0 n", "1 a manual:k\tk 1 0 0 n", "1 a backfill:\n 1 0 0 n", // no key
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

// FuzzWhatIsReadAsDueCanBeClaimed: a member that is read and refused would stay due for ever, in the way of its job's others.
func FuzzWhatIsReadAsDueCanBeClaimed(f *testing.F) {
	for _, kind := range []string{"schedule", "catchup", "handover", "takeover", "manual", "backfill", "timer", "by\thand", "other",
		"manual:key", "manual:a\tkey"} {
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
