package sidecar

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const atNight = "jobs:\n  - {name: nightly, schedule: '0 3 * * *', exec: {command: [x]}}"

// A hosted Redis takes its price by the command, and most services have nothing to do for most of the day. The replica
// looks at moments at which it beats, too: that a look goes on must not make it read the other heartbeats.
func TestAReplicaAtRestSendsHalfACommandASecond(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		w.replica(0)
		w.at(time.Minute)
		reads := &atomic.Int32{}
		w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
			if strings.EqualFold(command, "HGETALL") && args[0] == "solotick:{test}:replicas" {
				reads.Add(1)
			}
			return false
		})
		before := w.redis.CommandCount()
		w.at(time.Minute + time.Hour)
		if n := w.redis.CommandCount() - before; n > 1800 || n < 120 || reads.Load() > 62 {
			t.Errorf("%d commands in an hour, %d of them read the heartbeats", n, reads.Load())
		}
	})
}

// Each run makes the others look whether it still lives, and changes nothing of what is due.
func TestRunsThatBeginDoNotMakeReplicasReadWhatIsDue(t *testing.T) {
	simulate(t, herdTable(1, "* * * * * *"), func(w *world) {
		for range 3 {
			w.replica(time.Millisecond)
		}
		w.at(time.Minute)
		reads := &atomic.Int32{}
		w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
			if strings.EqualFold(command, "ZRANGE") && strings.Contains(args[0], ":due") {
				reads.Add(1)
			}
			return false
		})
		w.at(2 * time.Minute)
		if n := reads.Load(); n > 3*3*3 { // for each replica, three each half a minute
			t.Errorf("%d commands in a minute read what is due", n)
		}
	})
}

// A user may be allowed to subscribe, and not to publish. Then no look leaves out what is due: a tick that one replica
// has handed on is fired by another within its deadline.
func TestWhatIsHandedOnIsFoundWithoutMessages(t *testing.T) {
	table := herdTable(1, "* * * * * *") +
		"  - {name: minute, schedule: '* * * * *', startingDeadline: 10s, exec: {command: [x]}}\n"
	simulate(t, table, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.replica(time.Millisecond)
		w.at(0)
		w.redis.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
			if command != "PUBLISH" {
				return false
			}
			p.WriteError("NOPERM no permissions to access one of the channels used as arguments")
			return true
		})
		w.at(20*time.Minute + 50*time.Second)
		w.once("minute", time.Minute, 20*time.Minute, 5*time.Second)
	})
}

// fails has Redis refuse the next so many of some commands.
func (w *world) fails(times int32, which func(command string, args []string) bool) (left *atomic.Int32) {
	left = &atomic.Int32{}
	left.Store(times)
	w.redis.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
		if left.Load() <= 0 || !which(strings.ToUpper(command), args) {
			return false
		}
		left.Add(-1)
		p.WriteError("ERR not now")
		return true
	})
	return left
}

func TestAReplicaDoesNotRestBeforeRedisHasHeardWhichJobsLeft(t *testing.T) {
	simulate(t, atNight+"\n  - {name: gone, schedule: '0 4 * * *', exec: {command: [x]}}", func(w *world) {
		r := w.replica(0)
		w.at(0)
		left := w.fails(2, func(command string, args []string) bool {
			return strings.HasPrefix(command, "EVAL") && strings.Contains(strings.Join(args, " "), "job:gone")
		})
		w.swap(r, atNight)
		w.at(5 * time.Second)
		if left.Load() != 0 || r.looker.registrar.owes() {
			t.Errorf("five seconds later, %d requests are yet to fail; it owes one: %t", left.Load(), r.looker.registrar.owes())
		}
	})
}

// Whatever kept the answer away may have kept messages away, too.
func TestAReplicaAtRestThatCannotReadHeartbeatsDoubtsItsSubscription(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		r := w.replica(0)
		w.at(time.Minute)
		left := w.fails(1, func(command string, args []string) bool {
			return command == "HGETALL" && args[0] == "solotick:{test}:replicas"
		})
		for left.Load() > 0 && time.Since(w.origin()) < 5*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if r.store.Listens() {
			t.Error("it relies on its subscription")
		}
		time.Sleep(10 * time.Second)
		if !r.store.Listens() {
			t.Error("ten seconds later it still does not")
		}
	})
}

// No connection breaks, and no look is due before the one ahead of the tick.
func TestALossOfAllDataAtRestCostsNoTick(t *testing.T) {
	simulate(t, "jobs:\n  - {name: rare, schedule: '*/7 * * * *', exec: {command: [x]}}", func(w *world) {
		for range 2 {
			w.replica(0)
		}
		const tick = 3 * time.Minute // at 00:14
		w.at(tick - 29*time.Second)
		w.redis.FlushAll()
		w.at(tick + 2*time.Second)
		if s := w.started("rare")[w.origin().Add(tick)]; len(s) != 1 {
			t.Errorf("started %+v\n%s", s, w.log())
		}
	})
}

// The network was away for a while, and perhaps cut the subscription, too.
func TestAReplicaWhoseClaimHadNoAnswerDoubtsItsSubscription(t *testing.T) {
	simulate(t, "jobs:\n  - {name: rare, schedule: '*/7 * * * *', exec: {command: [x]}}", func(w *world) {
		r := w.replica(0)
		w.at(30*time.Minute + 22*time.Second)
		w.redis.Publish("solotick:{test}:events", "due") // or a pong comes at the moment of the claim
		w.at(30*time.Minute + 30*time.Second)
		if !r.store.Listens() {
			t.Error("it does not rely on its subscription at rest")
		}
		var asked atomic.Bool
		w.redis.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
			if !strings.EqualFold(command, "EVALSHA") || !strings.Contains(strings.Join(args, " "), ":lock:rare") || asked.Swap(true) {
				return false
			}
			p.Close()
			return true
		})
		doubts := false // until it has asked again, and hears of its own claim
		for time.Since(w.origin()) < 31*time.Minute+2*time.Second {
			time.Sleep(time.Millisecond)
			doubts = doubts || asked.Load() && !r.store.Listens()
		}
		if !doubts {
			t.Error("it relies on its subscription")
		}
		w.at(31*time.Minute + 10*time.Second)
		if !r.store.Listens() || len(w.started("rare")[w.origin().Add(31*time.Minute)]) != 1 {
			t.Errorf("ten seconds later it does not, or has not fired the tick: %v", w.started("rare"))
		}
	})
}

func TestTheOthersAreMetOnceThoughRedisRefusesHeartbeats(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		w.replica(0)
		w.at(0)
		left := w.fails(20, func(command string, args []string) bool {
			return command == "HSET" && args[0] == "solotick:{test}:replicas" && args[1] == "r2"
		})
		second := w.replica(0)
		w.at(time.Minute)
		if n := second.count("joined the other replicas"); n != 1 || left.Load() != 0 {
			t.Errorf("it says %d times whom it has joined; %d heartbeats are yet to be refused\n%s", n, left.Load(), second.logs)
		}
	})
}

func TestARequestForAJobThatRedisLostAtRestHasItRegistered(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		w.replica(0)
		w.at(75 * time.Second)
		w.redis.FlushAll()
		w.operator(func(s *service.Store) {
			asks := func() (string, error) {
				d, err := s.Trigger(w.t.Context(), "nightly", uuid.NewString())
				return d.Job, err
			}
			if job, err := asks(); err == nil {
				t.Fatalf("Redis has lost it, and the answer is %q", job)
			}
			w.at(77 * time.Second)
			if _, err := asks(); err != nil {
				t.Errorf("two seconds later: %v", err)
			}
		})
	})
}

func TestAReplicaLooksFourTimesASecondWhileRedisIsAway(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		w.replica(0)
		w.at(time.Minute)
		const many = 10_000
		left := w.fails(many, func(command string, _ []string) bool { return command == "TIME" })
		w.at(80 * time.Second)
		before := left.Load()
		w.at(90 * time.Second)
		if n := before - left.Load(); n < 38 || n > 44 {
			t.Errorf("%d looks in ten seconds, want about 40", n)
		}
	})
}

// A replica at rest is told of no timer that comes due in more than 31 seconds: it looks before that by itself. The
// times of its looks follow from the last message.
func TestATimerOfHalfAMinuteComesInTimeAtRest(t *testing.T) {
	for _, told := range []time.Duration{62500, 63900, 64900, 66100} {
		simulate(t, noJobs, func(w *world) {
			w.replica(0)
			told := told * time.Millisecond
			w.at(told)
			w.redis.Publish("solotick:{test}:events", "due")
			w.at(told + 100*time.Millisecond)
			for i := 31; i < 37; i++ {
				w.setTimer(fmt.Sprint("t", i), told+time.Duration(i)*time.Second+110*time.Millisecond, "")
			}
			w.at(2 * time.Minute)
			for i := 31; i < 37; i++ {
				at := told + time.Duration(i)*time.Second + 110*time.Millisecond
				if s := w.started(fmt.Sprint("timer:t", i)); len(s) != 1 || s[w.origin().Add(at)][0].at.Sub(w.origin().Add(at)) > time.Second/10 {
					t.Errorf("told at %s: timer t%d, due at %s, was started as %+v", told, i, at, s)
				}
			}
		})
	}
}

// A replica at rest looks within a second at a run whose lease was not told: from then on it knows of renewals. It looks for
// that run alone, as protocol.md says: all replicas do at the same moment.
func TestARunThatBeginsEndsTheRestOfTheOthers(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		for range 3 {
			w.replica(0)
		}
		w.at(time.Minute)
		runs, dues := &atomic.Int32{}, &atomic.Int32{}
		w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
			switch {
			case !strings.EqualFold(command, "ZRANGE"):
			case strings.Contains(args[0], ":due"):
				dues.Add(1)
			case strings.Contains(args[0], ":running"):
				runs.Add(1)
			}
			return false
		})
		for _, at := range []time.Duration{62600 * time.Millisecond, 65 * time.Second, 69 * time.Second} {
			w.at(at)
			runs.Store(0)
			dues.Store(0)
			w.redis.Publish("solotick:{test}:events", "run x")
			w.at(at + time.Second)
			if runs.Load() != 3 || dues.Load() != 0 {
				t.Errorf("a second after a run began %s after the minute, they had read the runs %d times, what is due %d times",
					at, runs.Load(), dues.Load())
			}
		}
	})
}

// countLooks counts from now on how often what runs is read.
func (w *world) countLooks() *atomic.Int32 {
	looks := &atomic.Int32{}
	w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
		if strings.EqualFold(command, "ZRANGE") && strings.Contains(args[0], ":running") {
			looks.Add(1)
		}
		return false
	})
	return looks
}

// Where run after run begins, a look at each would be most of what Redis is asked.
func TestRunsOfEachSecondAreLookedAtOnceInThreeSeconds(t *testing.T) {
	simulate(t, herdTable(1, "* * * * * *"), func(w *world) {
		for range 3 {
			w.replica(0)
		}
		w.at(time.Minute)
		looks := w.countLooks()
		w.at(2 * time.Minute)
		if n := looks.Load(); n < 3*20 || n > 3*27 {
			t.Errorf("three replicas looked %d times in a minute, want 60 to 80 times", n)
		}
		if s := w.started("j0"); len(s) < 100 {
			t.Errorf("only %d ticks were started", len(s))
		}
	})
}

// A replica at rest counts the lease of a run from the claim, if it heard of that, or else from its next look.
func TestARunIsTakenOverInTimeThoughItsClaimIsNotTheLastThatIsHeardOf(t *testing.T) {
	table := "jobs:\n  - {name: x, schedule: '0 3 * * *', concurrencyPolicy: Allow, exec: {command: [x]}}\n" +
		"  - {name: y, schedule: '0 3 * * *', exec: {command: [y]}}\n"
	const begin = 93*time.Second + 300*time.Millisecond
	for _, c := range []struct {
		then        string
		later, late time.Duration // after the claim, after the end of the lease
	}{
		{"nothing", 0, 300 * time.Millisecond}, {"something comes due", time.Second, 300 * time.Millisecond},
		{"another tick", 1500 * time.Millisecond, 300 * time.Millisecond},
		{"a run of what was due", 100 * time.Millisecond, 3 * time.Second}, {"a renewal", time.Second, 3 * time.Second},
	} {
		simulate(t, table, func(w *world) {
			w.replica(0)
			w.at(begin)
			w.operator(func(s *service.Store) {
				dies := func(c lock.Claim) *lock.Lease {
					c.Run, c.Replica, c.TTL, c.Attempt = lock.NewRun(""), "dead", 15*time.Second, 1
					l, a, err := s.Locks.Acquire(w.t.Context(), c)
					if l == nil {
						w.t.Fatal(c.Job, a, err)
					}
					return l
				}
				watched := dies(lock.Claim{Job: "x", Tick: w.origin().Add(begin), Policy: lock.Allow, Kind: "schedule"})
				died := time.Now()
				w.at(begin + c.later)
				switch c.then {
				case "something comes due":
					w.redis.Publish("solotick:{test}:events", "due")
				case "another tick":
					dies(lock.Claim{Job: "x", Tick: time.Now(), Policy: lock.Allow, Kind: "schedule"})
				case "a run of what was due":
					d := lock.Due{Tick: w.origin(), Job: "y", Kind: "backfill", Attempt: 1, Nonce: "n"}
					_, err := w.redis.ZAdd("solotick:{test}:due", float64(time.Now().UnixMilli()), d.Member())
					w.must(err)
					watched = dies(lock.Claim{Job: "y", Tick: d.Tick, Policy: lock.Forbid, Kind: d.Kind, Member: d.Member()})
					died = time.Now()
				case "a renewal":
					w.must(watched.Verify(w.t.Context()))
					died = time.Now()
				}
				for strings.Contains(strings.Join(w.running(), " "), watched.Run()) {
					time.Sleep(50 * time.Millisecond)
				}
				if took := time.Since(died); took < 15*time.Second || took > 15*time.Second+c.late {
					t.Errorf("then %s: taken over after %s, want a lease of 15s and at most %s", c.then, took, c.late)
				}
			})
		})
	}
}

// A replica looks ahead of a tick whether Redis has lost its data. A claim that it hears of, in the ledger that it
// knows, shows the same.
func TestAHeardClaimInTheKnownLedgerSparesALook(t *testing.T) {
	for name, c := range map[string]struct {
		born, at time.Duration // the ledger's, from what is known; when it is heard, from now
		want     int32
	}{
		"known": {0, 0, 0}, "another ledger": {time.Millisecond, 0, 5}, "before the clock was set back": {0, time.Hour, 5},
	} {
		simulate(t, herdTable(1, "* * * * * *"), func(w *world) {
			r := w.replica(0)
			w.at(30 * time.Second)
			w.must(r.store.Pause(w.t.Context(), "j0", "", time.Time{})) // so that there is no claim
			w.at(time.Minute)
			looks, j := w.countLooks(), r.jobs()["j0"]
			r.looker.sights.Store(true) // so that none sees a run
			for i := range 100 {
				w.at(time.Minute + time.Duration(i)*100*time.Millisecond)
				a := lock.Answer{Code: lock.Fired, Born: j.bornAt().Add(c.born), Holder: "another"}
				r.looker.hear(lock.Heard{Running: lock.Running{Job: "j0"}, Tick: w.origin(), Answer: a})
				if c.at > 0 {
					r.looker.proved.Store(r.clock.Now().Add(c.at).UnixNano())
				}
			}
			if n := looks.Load(); n != c.want {
				t.Errorf("%s: %d looks in ten seconds, want %d", name, n, c.want)
			}
		})
	}
}

// While a table is rolled out, an operator asks which replica has which.
func TestAReplicaAtRestTellsOfAReloadAtOnce(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		r := w.replica(0)
		w.at(63 * time.Second)
		w.swap(r, atNight+"\n  - {name: more, schedule: '0 4 * * *', exec: {command: [x]}}")
		w.at(63*time.Second + 100*time.Millisecond)
		if told := w.beat(r.name).Table; told != r.Table().Hash {
			t.Errorf("it tells of the table %s, and has %s", told, r.Table().Hash)
		}
		w.at(68 * time.Second)
		_ = r.Reload(nil, errors.New("broken"))
		w.at(68*time.Second + 100*time.Millisecond)
		if told := w.beat(r.name).Reload; told != "broken" {
			t.Errorf("a reload was refused, and it tells %q", told)
		}
	})
}

func TestWhereMessagesAreRefusedAReplicaLooksOnceASecond(t *testing.T) {
	simulate(t, atNight, func(w *world) {
		w.operator(func(s *service.Store) { w.must(s.Sync(w.t.Context())) }) // the server begins with the first client
		looks := &atomic.Int32{}
		w.redis.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
			switch {
			case strings.EqualFold(command, "SUBSCRIBE"):
				p.WriteError("NOPERM no permissions to access one of the channels used as arguments")
				return true
			case strings.EqualFold(command, "ZRANGE") && strings.Contains(args[0], ":running"):
				looks.Add(1)
			}
			return false
		})
		w.replica(0)
		w.at(0)
		before := looks.Load()
		w.at(time.Minute)
		if n := looks.Load() - before; n < 59 || n > 62 {
			t.Errorf("it has looked %d times in a minute", n)
		}
	})
}

// A subscription that breaks may be the first sign that Redis is away.
func TestASubscriptionThatBreaksEndsTheRest(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(0)
		w.at(62600 * time.Millisecond)
		r.disconnect(true)
		w.at(64 * time.Second)
		if r.value("redis_up") != 0 {
			t.Error("a second and a half later it takes Redis for reachable")
		}
	})
}
