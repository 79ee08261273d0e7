package sidecar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// These tests look at a job that runs on every replica, and operate it.

const everywhere = "\njobs:\n  - {name: minute, schedule: '* * * * *', guarantee: every-replica, exec: {command: [x]}}\n"

// beat is what a replica last said of itself.
func (w *world) beat(name string) service.Replica {
	w.t.Helper()
	var found service.Replica
	w.operator(func(s *service.Store) {
		all, err := s.Replicas(w.t.Context())
		w.must(err)
		for _, r := range all {
			if r.Name == name {
				found = r
			}
		}
	})
	return found
}

// The replicas wake a moment ahead of the tick.
func TestATickOfEveryReplicaIsNotPausedByAPauseThatIsOverByThen(t *testing.T) {
	simulate(t, everywhere, func(w *world) {
		w.replica(time.Second)
		w.replica(time.Second)
		w.at(30 * time.Second)
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "minute", "incident", time.Time{})) })
		w.at(2*time.Minute - ahead/2)
		w.operator(func(s *service.Store) {
			_, err := s.Resume(w.t.Context(), "minute")
			w.must(err)
		})
		w.at(2*time.Minute + time.Second)
		starts := func(at time.Duration) int { return len(w.started("minute")[w.origin().Add(at)]) }
		if before, n := starts(time.Minute), starts(2*time.Minute); before != 0 || n != 2 {
			t.Errorf("started %d times in the pause, and %d times after it\n%s", before, n, w.log())
		}
	})
}

func TestHowAJobFaredOnEachReplicaIsTold(t *testing.T) {
	simulate(t, everywhere, func(w *world) {
		w.replica(time.Second, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Err: errors.New("exit code 3"), Output: strings.Repeat("why ", 200), Code: 3}
			}
		})
		w.replica(time.Second)
		w.replica(time.Second, refuses)
		w.at(10 * time.Second)
		for name, want := range map[string]string{"r1": "failed", "r2": "succeeded", "r3": "not_started"} {
			e, ok := w.beat(name).Ran["minute"]
			if !ok || e.Outcome != want || e.Failed != (want != "succeeded") || !e.Tick.Equal(w.origin()) ||
				e.Replica != name || e.Run == "" || len(e.Detail) > maxResult {
				t.Errorf("%s says of its run %+v, want %s", name, e, want)
			}
		}
		w.swap(w.replicas[0], minutely) // where it has a ledger, which tells
		w.at(20 * time.Second)
		if ran := w.beat("r1").Ran; len(ran) != 0 {
			t.Errorf("after it has become a job that is claimed, r1 says %+v", ran)
		}
		w.at(70 * time.Second)
		w.swap(w.replicas[1], "\njobs: []")
		w.at(80 * time.Second)
		if ran := w.beat("r2").Ran; len(ran) != 0 {
			t.Errorf("after it has left the table, r2 says %+v", ran)
		}
	})
}

func TestAPauseHoldsAJobBackOnEveryReplica(t *testing.T) {
	long(t)
	simulate(t, everywhere, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		at := func(minute int, want int) {
			t.Helper()
			if n := len(w.started("minute")[w.origin().Add(time.Duration(minute)*time.Minute)]); n != want {
				t.Errorf("the tick of minute %d was started %d times, want %d\n%s", minute, n, want, w.log())
			}
		}
		operate := func(f func(s *service.Store) error) { w.operator(func(s *service.Store) { w.must(f(s)) }) }
		w.at(30 * time.Second)
		at(0, 3)
		operate(func(s *service.Store) error { return s.Pause(w.t.Context(), "minute", "incident", time.Time{}) })
		w.at(90 * time.Second)
		at(1, 0)
		w.expect(3, "skips_total", "paused")
		for _, r := range w.replicas { // which go by what they heard last
			r.disconnect(true)
		}
		w.swap(w.replicas[0], "maxRunning: 9"+strings.Replace(everywhere, "[x]", "[y]", 1)) // the job is another one now
		w.at(150 * time.Second)
		at(2, 0)
		for _, r := range w.replicas {
			r.disconnect(false)
		}
		w.at(165 * time.Second)
		operate(func(s *service.Store) error { _, err := s.Resume(w.t.Context(), "minute"); return err })
		w.at(210 * time.Second)
		at(3, 3)
		operate(func(s *service.Store) error {
			return s.Pause(w.t.Context(), "minute", "incident", w.origin().Add(5*time.Minute))
		})
		w.at(270 * time.Second)
		at(4, 0)
		w.at(330 * time.Second)
		at(5, 3) // the end of the pause, which is none of it
		w.expect(0, "missed_total")
	})
}

// For a claimed job, Redis refuses the tick. A job with every-replica makes no claim, so the replica itself must look,
// also after a long wait.
func TestATickThatWaitsForTheAppIsHeldBackByAPauseThatBeginsMeanwhile(t *testing.T) {
	simulate(t, "ready: {tcp: '127.0.0.1:1'}"+everywhere, func(w *world) {
		app := &fakeApp{}
		w.replica(time.Second, func(r *replica) { r.app = app })
		w.at(20 * time.Second)
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "minute", "incident", time.Time{})) })
		w.at(25 * time.Second)
		app.ready.Store(true)
		w.at(40 * time.Second)
		if n := len(w.started("minute")); n != 0 {
			t.Errorf("a paused job was started for %d ticks\n%s", n, w.log())
		}
		w.expect(1, "skips_total", "paused")
	})
}

func TestTwoProcessesOfOneNameAreNoticed(t *testing.T) {
	const said = `level=WARN msg="another process has the same name`
	for range 5 { // they beat at the same moments, and which of them writes last is left to chance
		simulate(t, minutely, func(w *world) {
			named := func(process string) func(*replica) {
				return func(r *replica) { r.name, r.process = "app", process }
			}
			before := w.replica(0, named("one"))
			w.at(-time.Minute)
			before.crash()
			w.at(-58 * time.Second) // its heartbeat is still there
			first := w.replica(0, named("two"))
			w.at(-30 * time.Second)
			if w.beat("app").Twin || strings.Contains(first.logs.String(), said) {
				t.Errorf("the one that was here before is taken for another one:\n%s", first.logs)
			}
			second := w.replica(0, named("three"))
			w.at(-time.Second) // at rest they read what the others say once a minute, and before each tick
			for _, r := range []*replica{first, second} {
				if n := strings.Count(r.logs.String(), said); n != 1 {
					t.Errorf("%s says it %d times:\n%s", r.process, n, r.logs)
				}
			}
			if !w.beat("app").Twin {
				t.Error("the heartbeat does not say it")
			}
			second.stop()
			<-second.done
			w.at(80 * time.Second)
			r := w.beat("app")
			if r.Twin || r.Process != "two" {
				t.Errorf("when there is one again, its heartbeat says %+v", r)
			}
			if at := r.Seen.Sub(r.Seen.Truncate(time.Second)); at < 450*time.Millisecond || at > 600*time.Millisecond {
				t.Errorf("and it comes %s after a second, off the beat", at)
			}
		})
	}
}

// Each reads before it writes, and so the one that always writes last would always find its own heartbeat.
func TestTwoProcessesOfOneNameThatBeatAtTheSameMomentsAreBothNoticed(t *testing.T) {
	for _, last := range []string{"one", "two"} {
		simulate(t, minutely, func(w *world) {
			w.at(-time.Minute)
			w.operator(func(s *service.Store) { w.must(s.Sync(w.t.Context())) }) // the server begins with the first client
			w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
				if command == "HSET" && strings.Contains(strings.Join(args, " "), `"process":"`+last+`"`) {
					time.Sleep(time.Microsecond)
				}
				return false
			})
			both := []*replica{w.replica(0, func(r *replica) { r.name, r.process = "app", "one" }),
				w.replica(0, func(r *replica) { r.name, r.process = "app", "two" })}
			w.at(-30 * time.Second)
			for _, r := range both {
				if !strings.Contains(r.logs.String(), `level=WARN msg="another process has the same name`) {
					t.Errorf("%s writes last, and %s has not noticed the other:\n%s", last, r.process, r.logs)
				}
			}
			w.at(-10 * time.Second)
			for range 10 {
				if time.Sleep(time.Second); !w.beat("app").Twin {
					t.Error("the heartbeat does not say it")
				}
			}
		})
	}
}

func TestThatAnotherReplicaFiredATickIsSaidAtDebug(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(time.Second)
		w.replica(time.Second)
		w.at(10 * time.Second)
		if log := w.log(); !strings.Contains(log, "level=DEBUG msg=skipped job=minute") || strings.Contains(log, "level=INFO msg=skipped") {
			t.Errorf("the log is\n%s", log)
		}
		w.expect(1, "skips_total", "fired_elsewhere")
	})
}

func TestAJobOnEveryReplicaBeginsByTheTableInForce(t *testing.T) {
	table := func(path string) string {
		return "\njobs:\n  - {name: minute, guarantee: every-replica, schedule: '* * * * *', http: {url: 'http://127.0.0.1/" + path + "'}}"
	}
	simulate(t, table("old"), func(w *world) {
		r := w.replica(0)
		w.at(30 * time.Second)
		wk, _ := r.job("minute").take(w.origin().Add(time.Minute))
		if why := r.firer.passGate(&wk); why.reason != "" {
			t.Fatalf("it may not contend: %s", why.reason)
		}
		w.swap(r, table("new"))
		if h, why := r.firer.claimer.acquire(&wk); h != nil || why.reason != "" {
			t.Errorf("it begins by %s, or is refused (%s): want it to go back to the gate", wk.spec.HTTP.URL, why.reason)
		}
		wk.close(true)
		wk.releaseSlot(r.slots)
	})
}

// TestReplicasOfAnotherEnvironmentAreWarnedOfOnAllSides: who has the service's name and the address of Redis takes its
// ticks.
func TestReplicasOfAnotherEnvironmentAreWarnedOfOnAllSides(t *testing.T) {
	const said = `level=WARN msg="replicas of another environment share this service`
	simulate(t, minutely, func(w *world) {
		production := func(r *replica) { r.environment = "production" }
		w.replica(0, production)
		w.at(-50 * time.Second)
		w.replica(0, production)
		w.at(-30 * time.Second)
		for _, r := range w.replicas {
			if strings.Contains(r.logs.String(), said) {
				t.Errorf("%s warns of its own:\n%s", r.name, r.logs)
			}
		}
		laptop := w.replica(0)
		w.at(-time.Second)
		for _, r := range w.replicas {
			if n := strings.Count(r.logs.String(), said); n != 1 {
				t.Errorf("%s warns %d times:\n%s", r.name, n, r.logs)
			}
		}
		for _, want := range []string{`environment=production others="r3 (\"\")"`, `environment="" others="r1 (\"production\"), r2 (\"production\")"`,
			`msg="joined the other replicas of the service" replicas="r1, r2"`} {
			if !strings.Contains(w.log(), want) {
				t.Errorf("no replica says %s:\n%s", want, w.log())
			}
		}
		laptop.stop()
		<-laptop.done
		w.at(70 * time.Second)
		w.replica(0) // it comes again
		w.at(130 * time.Second)
		if n := strings.Count(w.replicas[0].logs.String(), said); n != 2 {
			t.Errorf("r1 warns %d times:\n%s", n, w.replicas[0].logs)
		}
	})
}
