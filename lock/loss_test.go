package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// registers makes the case's job known, by one who knew it before.
func registers(r *redisworld.Replica, fingerprint string, known lock.Before) lock.Ledger {
	r.World.Helper()
	got, err := r.RegisterAgain(r.World.Context(), job, fingerprint, known)
	r.World.Must(err)
	return got
}

func TestAfterALossTheTicksSinceAreMissedUnderAtMostOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a, b, c := w.Replica("a"), w.Replica("b"), w.Replica("c")
		before := registers(a, "x", lock.Before{})
		known := lock.Before{Born: before.Born, Tick: before.Tick}
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		w.Pass(20 * time.Millisecond)
		registers(c, "x", lock.Before{}) // it has just begun, and says nothing
		got := registers(a, "x", known)
		registers(b, "x", lock.Before{Born: before.Born, Tick: before.Tick.Add(-time.Minute)})
		if !got.Born.After(before.Born) || !got.Tick.Equal(got.Born.Add(time.Second)) || !got.Since.Equal(got.Tick) {
			w.Errorf("before %+v, after %+v", before, got)
		}
		wantGaps(w, w.Field("gaps"), before.Tick, got.Tick.Add(time.Millisecond))
		w.DueTicks()
	})
}

// A Redis that comes back from a snapshot has the ledger of an earlier time, with the same birth.
func TestAReplicaTellsAnOlderLedgerWhatWasClaimed(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		born := registers(a, "x", lock.Before{}).Born
		claims := func(claimed, at int) { // on a ledger that is at a tick
			w.Must(w.Admin.HSet(w.Context(), ledger, "tick", w.Tick(at).UnixMilli()).Err())
			for _, c := range []struct {
				known lock.Before
				want  int
			}{
				{lock.Before{}, at},
				{lock.Before{Born: born, Tick: w.Tick(claimed), Claimed: w.Tick(claimed), Again: true}, at},
				{lock.Before{Born: born, Tick: w.Tick(claimed)}, at}, // it was refused, and is no claim
				{lock.Before{Born: born, Claimed: w.Tick(claimed)}, max(claimed, at)},
				{lock.Before{Born: born, Claimed: w.Tick(at - 1)}, max(claimed, at)},
			} {
				got := registers(a, "x", c.known)
				if !got.Tick.Equal(w.Tick(c.want)) || w.Field("tick") != fmt.Sprint(w.Tick(c.want).UnixMilli()) {
					w.Errorf("told %+v, a ledger at %d is at %s, in Redis %s", c.known, at, got.Tick, w.Field("tick"))
				}
			}
		}
		claims(9000, 5000)
		claims(5000, 9000)
		w.Must(w.Admin.HSet(w.Context(), ledger, "late", 1).Err()) // a loss of which Redis has been told
		if got := registers(a, "x", lock.Before{Born: born.Add(-time.Minute), Claimed: w.Tick(20000)}); !got.Tick.Equal(w.Tick(9000)) {
			w.Errorf("what was claimed in an earlier ledger counts in this one: %s", got.Tick)
		}
		if gaps := w.Field("gaps"); gaps != "" {
			w.Errorf("ticks that were claimed are missed: %s", gaps)
		}
	})
}

// In a rollout, a replica with the table before registers its jobs once more, after a reconnect or a day.
func TestALedgerThatIsKnownKeepsItsSchedule(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a, b := w.Replica("a"), w.Replica("b")
		born := registers(a, "x", lock.Before{}).Born
		w.Pass(20 * time.Millisecond)
		changed := registers(b, "y", lock.Before{})
		w.Pass(20 * time.Millisecond)
		for _, known := range []lock.Before{
			{Born: born}, {Born: born, Tick: born, Claimed: born}, {Born: born, Tick: born, Claimed: w.Tick(90000)}, {Born: born, Tick: born, Again: true},
		} {
			if got := registers(a, "x", known); !got.Since.Equal(changed.Since) || w.Field("schedule") != "y" {
				w.Errorf("told %+v, the ticks begin at %s with the schedule %s, and had begun at %s", known, got.Since, w.Field("schedule"), changed.Since)
			}
		}
		if got := registers(a, "x", lock.Before{}); !got.Since.After(changed.Since) || w.Field("schedule") != "x" {
			w.Errorf("who knew nothing leaves the schedule %s alone", w.Field("schedule"))
		}
	})
}

func TestAfterALossOwedTicksAreDueOnceUnderAtLeastOnce(t *testing.T) {
	for name, newcomer := range map[string]bool{"one who knew it comes first": false, "one who knew nothing comes first": true} {
		t.Run(name, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) { playOwed(w, newcomer) })
		})
	}
}

func playOwed(w *redisworld.World, newcomer bool) {
	a, b, c := w.Replica("a"), w.Replica("b"), w.Replica("c")
	before := registers(a, "x", lock.Before{})
	known := lock.Before{Born: before.Born, Tick: w.Tick(-9000), Again: true, Owed: pasts(w.Tick(-3000), w.Tick(-2000))}
	w.Must(w.Admin.FlushAll(w.Context()).Err())
	w.Pass(20 * time.Millisecond)
	if newcomer {
		registers(c, "x", lock.Before{Again: true})
	}
	first := w.Heard()
	got := registers(a, "x", known)
	first()
	for _, r := range []*redisworld.Replica{b, a} {
		again := registers(r, "x", known)
		if again.Born != got.Born || again.Tick != got.Tick {
			w.Errorf("%s: %+v, want %+v", r.Name, again, got)
		}
	}
	if !got.Tick.Equal(w.Tick(-2000)) || !got.Since.Equal(got.Tick) {
		w.Errorf("the newest claimed tick is %s, and what came after %s can be claimed, want %s", got.Tick, got.Since, w.Tick(-2000))
	}
	w.DueTicks(-3000, -2000)
	wantGaps(w, w.Field("gaps"), w.Tick(-9000), w.Tick(-3000))
	for _, d := range w.Dues() {
		l, _ := b.Wins(b.ClaimOf(d))
		b.Finishes(l, 0)
	}
	registers(b, "x", known)
	w.DueTicks()
}

// TestAClaimThatFindsNoLedgerWinsItsTickUnderAtLeastOnce, also if a replica that knew the old ledger has asked before
// the tick came due, and is heard after the claim: it owes nothing.
func TestAClaimThatFindsNoLedgerWinsItsTickUnderAtLeastOnce(t *testing.T) {
	for name, passedOver := range map[string]bool{"the tick before was fired": false, "the tick before was missed": true} {
		t.Run(name, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				a, b := w.Replica("a"), w.Replica("b")
				before := registers(a, "x", lock.Before{})
				w.Must(w.Admin.FlushAll(w.Context()).Err())
				w.Pass(20 * time.Millisecond)
				known, gaps := w.Tick(-8000), []time.Time{}
				c := b.Claim(-1000)
				if passedOver {
					known, gaps = w.Tick(-15000), []time.Time{w.Tick(-15000), w.Tick(-8000 + 1)}
					c.Before = w.Tick(-8000)
				}
				c.Again, c.Known, c.Fingerprint = true, known, "x"
				l, _ := b.Wins(c)
				registers(a, "x", lock.Before{Born: before.Born, Tick: known, Again: true})
				wantGaps(w, w.Field("gaps"), gaps...)
				b.Finishes(l, 0)
				w.DueTicks()
			})
		})
	}
}

// TestRunThatIsCutShortAfterALossIsRunAgainOnce: its replica goes on, and is the only one who knows of it.
func TestRunThatIsCutShortAfterALossIsRunAgainOnce(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		c := a.Claim(1)
		c.Again, c.Retries = true, 2
		l, _ := a.Wins(c)
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		w.Pass(10 * time.Millisecond)
		registers(b, "", lock.Before{Again: true})
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Errorf("verified: %v", err)
		}
		a.Proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if got, err := l.Requeue(w.Context(), lock.Ending{}); err != nil || got.Verdict != lock.None {
			w.Fatalf("requeue: %s, %v", got.Verdict, err)
		}
		ds := w.Dues()
		if len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) || ds[0].Kind != "takeover" || ds[0].Attempt != 4 {
			w.Fatalf("due: %+v", ds)
		}
		again, _ := b.Wins(b.ClaimOf(ds[0]))
		b.Finishes(again, 0)
		if _, err := l.Requeue(w.Context(), lock.Ending{}); err != nil {
			w.Error(err)
		}
		w.DueTicks()
	})
}

// TestRequeueThatIsRepeatedAddsNothing is for a Redis that has lost nothing.
func TestRequeueThatIsRepeatedAddsNothing(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		for n, again := range []bool{false, true} {
			c := a.Claim(n + 1)
			c.Again = again
			l, _ := a.Wins(c)
			_, err := l.Requeue(w.Context(), lock.Ending{})
			w.Must(err)
			for _, d := range w.Dues() {
				run, _ := b.Wins(b.ClaimOf(d))
				b.Finishes(run, 0)
			}
			if got, err := l.Requeue(w.Context(), lock.Ending{}); got.Verdict != lock.None || err != nil {
				w.Errorf("requeued again: %s, %v", got.Verdict, err)
			}
			if members := w.Admin.ZRange(w.Context(), dueSet, 0, -1).Val(); len(members) != 0 {
				w.Errorf("due: %q", members)
			}
		}
	})
}

func TestJobThatLeftAndIsBackHasMissedNothing(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		registers(a, "x", lock.Before{})
		w.Must(w.Admin.HSet(w.Context(), ledger, "tick", w.Start.Add(-time.Hour).UnixMilli()).Err())
		l, _ := a.Wins(a.ClaimUnder(lock.Queue, 1))
		a.Loses(a.ClaimUnder(lock.Queue, 2), lock.Queued)
		gone := registers(a, lock.NoTicks, lock.Before{})
		if !gone.Back.IsZero() || !gone.Tick.Equal(w.Tick(2)) {
			w.Errorf("it has left: %+v", gone)
		}
		a.Finishes(l, 0)
		w.Pass(20 * time.Millisecond)
		at := w.Now()
		back := registers(a, "x", lock.Before{})
		if late := back.Back.Sub(at); late < -time.Millisecond || late > w.TTL || !back.Tick.Equal(back.Back) || !back.Since.Equal(back.Back) {
			w.Errorf("it is back: %+v, at %s", back, at)
		}
		if again := registers(a, "x", lock.Before{}); again.Back != back.Back || again.Tick != back.Tick {
			w.Errorf("and again: %+v, want %+v", again, back)
		}
		between := a.Claim(0)
		between.Tick = at.Add(-10 * time.Millisecond).Truncate(time.Millisecond)
		between.Before = between.Tick.Add(-time.Millisecond)
		a.Loses(between, lock.Fired)
		if ds := w.Dues(); len(ds) != 1 || !ds[0].Tick.Before(back.Back) { // by which it is told from others
			w.Errorf("due: %+v", ds)
		}
		w.Pass(10 * time.Millisecond)
		next := a.Claim(0)
		next.Tick = w.Now().Truncate(time.Millisecond)
		if _, won := a.Wins(next); won.Gaps != "" {
			w.Errorf("it has missed %q", won.Gaps)
		}
	})
}

// TestEveryTimerOfManyWhoseClaimsWereNeverAnsweredIsDueAgain cuts a replica off that has claimed forty, for so long
// that they are taken over.
func TestEveryTimerOfManyWhoseClaimsWereNeverAnsweredIsDueAgain(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		const many = 40
		for n := range many {
			b.Sets(fmt.Sprint("t", n), w.Tick(0), "source", true)
		}
		for range 10 * many { // a busy machine asks again before all have been asked for
			a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangReply)
		}
		done := make(chan error)
		seen, err := b.Service.Look(w.Context(), many)
		w.Must(err)
		for _, d := range seen.Due {
			go func() {
				l, got, err := a.AsksFor(time.Minute, a.ClaimOf(d)) // a busy machine takes long to have all taken over
				if l != nil || got.Code != lock.Gone {
					err = fmt.Errorf("%+v: %v, %+v, %w", d, l, got, err)
				}
				done <- err
			}()
		}
		for w.Runs() < many {
			w.Pass(10 * time.Millisecond)
		}
		a.CutOff()
		b.Reaps(many)
		a.Proxy.Heal()
		w.Must(a.Proxy.Refuse(false))
		for range many {
			if err := <-done; err != nil {
				w.Error(err)
			}
		}
		if n := len(w.Dues()); n != many {
			w.Fatalf("%d timers are due again, want %d", n, many)
		}
		for _, d := range w.Dues() {
			if b.Source(service.TimerID(d.Job)) != "source" {
				w.Errorf("%s is due without its source", d.Job)
			}
			l, _ := b.Wins(b.ClaimOf(d))
			b.Finishes(l, 0)
		}
		if left := len(w.Dues()) + w.Runs(); left != 0 {
			w.Errorf("%d are left", left)
		}
	})
}

// TestWhatSomebodyAskedForStaysThatHoweverOftenItIsRunAgain follows a manual run through a shutdown and three deaths.
func TestWhatSomebodyAskedForStaysThatHoweverOftenItIsRunAgain(t *testing.T) {
	for kind, then := range map[string]string{"manual": "manual", "backfill": "backfill", "schedule": "takeover"} {
		t.Run(kind, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				w.Born()
				a := w.Replica("a")
				c := a.Claim(1)
				c.Kind, c.Again, c.Retries, c.Attempt = kind, true, 5, 1
				l, _ := a.Wins(c)
				_, err := l.Requeue(w.Context(), lock.Ending{})
				w.Must(err)
				for deaths := range 4 {
					ds := w.Dues()
					if len(ds) != 1 || ds[0].Kind != then || ds[0].Attempt != 7+6*deaths || ds[0].Deaths != deaths || ds[0].Rounds != 0 ||
						ds[0].Refused != nil {
						w.Fatalf("after %d deaths: %+v", deaths, ds)
					}
					c = a.ClaimOf(ds[0])
					c.Again, c.Retries, c.Rounds, c.Refused = true, 5, 2, []string{"b"}
					a.Wins(c)
					a.Reaps(1)
				}
				w.DueTicks()
			})
		})
	}
}

func TestCopyOfAClaimThatIsNotWorthARunAnyMoreHasNoEffect(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		worth := a.Timeout / 2
		c := a.Claim(1)
		c.Until = w.Now().Add(worth)
		began := time.Now()
		if l, _, err := a.AsksFor(worth, c); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if took := time.Since(began); w.Mini != nil && took >= w.TTL-lock.Margin {
			w.Errorf("it waited for %s, as for a copy that can have an effect", took)
		}
		deliverStale(w, f)
	})
}

// TestFrozenRedisClaimsNothingThatIsNotWorthARunAnyMore has a tick asked for in a stall of Redis.
func TestFrozenRedisClaimsNothingThatIsNotWorthARunAnyMore(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.SlowReplica("a", 300*time.Millisecond), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		c := a.Claim(1)
		c.Until = w.Now().Add(time.Second)
		w.Server.Freeze()
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, func() { // the thaw is later, however late this is
			cancel()
			time.AfterFunc(time.Second, w.Server.Thaw)
		})
		if l, got, err := a.Store.Acquire(ctx, c); l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %+v, %v", l, got, err)
		}
		if w.Runs() != 0 || w.Owner() != "" || w.Number("tick") >= w.Tick(1).UnixMilli() {
			w.Errorf("%s", w.Dump())
		}
		w.DueTicks()
		b.Wins(b.Claim(1)) // who comes late all the same finds nothing in its way
	})
}

func TestTickIsRefusedAndItsRunEndsWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) { // miniredis has no limit
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		w.Must(w.Admin.ConfigSet(w.Context(), "maxmemory", "1").Err())
		before := w.Dump()
		for _, n := range []int{2, 3} {
			if got := b.Loses(b.Claim(n), lock.Overlap); got.Holder != "a" {
				w.Errorf("%+v", got)
			}
		}
		if after := w.Dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		a.Finishes(l, time.Second)
		if w.Runs() != 0 || w.Field("open") != "" {
			w.Errorf("%s", w.Dump())
		}
	}, "--maxmemory-policy", "noeviction")
}

func TestWhatWasAskedForByHandIsDueAtOnceWhateverBecomesOfRedisClock(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // only miniredis' clock can be set
		w.Born()
		a := w.Replica("a")
		w.Mini.SetTime(w.Start.Add(time.Hour))
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		w.Mini.SetTime(w.Start)
		again, err := a.Service.Trigger(w.Context(), job, uuid.NewString()) // whose tick is later than the other's
		w.Must(err)
		seen, err := a.Service.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 2 || !redisworld.Same(seen.Due[0], d) || !redisworld.Same(seen.Due[1], again) || seen.Due[0].Age != 0 {
			w.Fatalf("due: %+v, %v", seen, err)
		}
		w.Pass(time.Second)
		a.Wins(a.ClaimOf(d))
	})
}

func TestWhatWasEnqueuedByAClockThatWasAheadIsDueWhenItIsSetRight(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // only miniredis' clock can be set
		w.Born()
		a := w.Replica("a")
		w.Mini.SetTime(w.Start.Add(time.Hour))
		l, _ := a.Wins(a.Claim(1))
		if _, err := l.Handover(w.Context(), time.Second, lock.Ending{}); err != nil {
			w.Fatal(err)
		}
		if n, err := a.Service.Backfill(w.Context(), job, []time.Time{w.Tick(2)}, uuid.NewString(), false); n != 1 || err != nil {
			w.Fatalf("%d, %v", n, err)
		}
		w.Mini.SetTime(w.Start)
		seen, err := a.Service.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 0 && len(seen.Due) != 2 {
			w.Errorf("%+v, %v", seen, err)
		}
		w.Pass(3 * time.Second) // a look may have come by the clock as it was
		seen, err = a.Service.Look(w.Context(), 10)
		if err != nil || len(seen.Due) == 0 {
			w.Fatalf("due: %+v, %v", seen, err)
		}
		for range 2 {
			seen, err = a.Service.Look(w.Context(), 10)
			if err != nil || len(seen.Due) == 0 {
				w.Fatalf("due: %+v, %v", seen, err)
			}
			run, _ := a.Wins(a.ClaimOf(seen.Due[0]))
			a.Finishes(run, 0)
		}
	})
}

// TestALossAmidARolloutKeepsWhatWasMissed: a has reloaded a table with the same newest ticks ("y"), b has not yet
// ("x").
func TestALossAmidARolloutKeepsWhatWasMissed(t *testing.T) {
	for _, c := range []struct {
		name  string
		order []string
	}{{"the new one first", []string{"a", "b"}}, {"the old one first", []string{"b", "a"}}, {"none has reloaded", []string{"b", "b"}}} {
		t.Run(c.name, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				r := map[string]*redisworld.Replica{"a": w.Replica("a"), "b": w.Replica("b")}
				before := registers(r["a"], "x", lock.Before{})
				w.Must(w.Admin.FlushAll(w.Context()).Err())
				w.Pass(20 * time.Millisecond)
				var since time.Time
				for i, name := range c.order {
					known := lock.Before{Born: before.Born, Tick: before.Tick, As: "x"}
					got := registers(r[name], map[string]string{"a": "y", "b": "x"}[name], known)
					if i == 0 {
						since = got.Since
					} else if !got.Since.Equal(since) {
						w.Errorf("the ticks begin anew at %s, had begun at %s", got.Since, since)
					}
				}
				wantGaps(w, w.Field("gaps"), before.Tick, since.Add(time.Millisecond))
			})
		})
	}
}

// TestALossAmidARolloutToAtLeastOnceKeepsClaims: a has reloaded, makes the ledger, and has not heard of the newest
// claim. c has not reloaded, and must not make that claim again, whoever of the others is first to tell of the loss.
func TestALossAmidARolloutToAtLeastOnceKeepsClaims(t *testing.T) {
	for name, claimed := range map[string]int{"on its tick": -1000, "ahead of its tick": 400} {
		for _, made := range []string{"by one that knew the job", "by a newcomer", "by a claim"} {
			t.Run(name+", "+made, func(t *testing.T) {
				redisworld.OnEvery(t, func(w *redisworld.World) {
					a, b, c := w.Replica("a"), w.Replica("b"), w.Replica("c")
					before := registers(a, "x", lock.Before{})
					w.Must(w.Admin.FlushAll(w.Context()).Err())
					w.Pass(20 * time.Millisecond)
					knows := func(claimed time.Time, again bool) lock.Before {
						return lock.Before{Born: before.Born, Tick: claimed, Claimed: claimed, Again: again, As: "x"}
					}
					switch made {
					case "by one that knew the job":
						registers(a, "x", knows(w.Tick(-8000), true))
						registers(c, "x", knows(w.Tick(-8000), false))
						registers(b, "x", knows(w.Tick(claimed), false))
					case "by a newcomer":
						registers(a, "x", lock.Before{Again: true})
						registers(b, "x", knows(w.Tick(claimed), false))
						registers(c, "x", knows(w.Tick(-8000), false))
					case "by a claim":
						registers(a, "x", lock.Before{Again: true, Tick: w.Tick(-8000)})
						registers(b, "x", knows(w.Tick(claimed), false))
						registers(c, "x", knows(w.Tick(-8000), false))
					}
					c.Loses(c.Claim(claimed), lock.Fired)
				})
			})
		}
	}
}
