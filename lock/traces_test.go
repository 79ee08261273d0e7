package lock_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

var update = flag.Bool("update", false, "write the traces of the protocol anew")

const tracesDir = "testdata/traces"

// Each trace is a file for people: docs/protocol.md links to it.
func TestTheTracesOfTheProtocol(t *testing.T) {
	for name, c := range traces {
		t.Run(name, func(t *testing.T) {
			redisworld.InBubble(t, func(w *redisworld.World) { // where each call takes no time, and all times are the same again
				got := played(w, c.about, c.play)
				file := filepath.Join(tracesDir, name+".txt")
				if *update {
					w.Must(os.MkdirAll(tracesDir, 0o755))
					w.Must(os.WriteFile(file, []byte(got), 0o644))
				}
				want, err := os.ReadFile(file)
				w.Must(err)
				if got != string(want) {
					w.Errorf("%s differs from this; -update writes it anew\n%s", file, got)
				}
			})
		})
	}
	files, err := filepath.Glob(tracesDir + "/*.txt")
	if err != nil || len(files) != len(traces) {
		t.Errorf("%d traces stand in files, %v; there are %d", len(files), err, len(traces))
	}
}

// every is the distance of the job's ticks.
const every = 10 * time.Second

// traces are the cases. The first tick of the job is ten seconds after it became known.
var traces = map[string]struct {
	about string
	play  func(s *stage)
}{
	"claim": {"One of two replicas gets each tick, however late the other one asks.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a, b)
		s.at(1)
		l, _ := a.Wins(s.claim(a, 1))
		s.Pass(5 * time.Second)
		s.Must(l.Verify(s.Context()))
		s.Pass(time.Second)
		a.Finishes(l, 5*time.Second)
		s.says("The run is over, and its lock lasts for a safety delay. The clock of b is a second behind: the tick stays claimed.")
		s.Pass(time.Second)
		b.Loses(s.claim(b, 1), lock.Fired)
		s.at(2)
		s.says("The lock that lingers costs no tick. The release of the run before comes late, and leaves the lock alone.")
		b.Wins(s.claim(b, 2))
		s.Must(l.Release(0)(s.Context()))
	}},
	"overlap": {"Forbid: a tick that comes due while a run lives is refused. The end of the run decides its fate.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.at(1)
		l, _ := a.Wins(s.claim(a, 1))
		s.at(2)
		b.Loses(s.claim(b, 2), lock.Overlap)
		s.says("Only the first asker writes the tick behind the run.")
		a.Loses(s.claim(a, 2), lock.Overlap)
		s.Pass(3 * time.Second)
		s.says("The run has ended in order, so it lived when the tick came due.")
		a.Finishes(l, 0)
		b.Loses(s.claim(b, 2), lock.Fired)
		s.at(3)
		l, _ = a.Wins(s.claim(a, 3))
		s.at(4)
		b.Loses(s.claim(b, 4), lock.Overlap)
		s.says("The run of a never started: what it refused was no overlap, and is set free.")
		_, err := l.GiveUp(s.Context(), s.ending(l, "not_started"))
		s.Must(err)
		b.Finishes(s.wins(b), 0)
	}},
	"handover": {"A replica that cannot start a job gives its tick to another one.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.at(1)
		l, _ := a.Wins(s.claim(a, 1))
		s.says("a cannot connect to the app: nothing was sent. The due member names the replicas that could not start the tick.")
		_, err := l.Handover(s.Context(), 0, s.ending(l, service.HandedOver))
		s.Must(err)
		c := b.ClaimOf(b.Sees())
		l, _ = b.Wins(c)
		s.says("Another claim of the same member, or of its tick, comes too late.")
		a.Loses(s.again(a, c), lock.Gone)
		a.Loses(s.claim(a, 1), lock.Fired)
		b.Finishes(l, 0)
	}},
	"takeover": {"A replica dies during its run. A watcher has seen its lease unchanged for a whole ttl, and ends the run.", func(s *stage) {
		a, b, c := s.replica("a"), s.replica("b"), s.replica("c")
		s.born(a)
		s.at(1)
		l, _ := a.Wins(s.claim(a, 1))
		s.at(2)
		s.says("a stands still. It is not known yet whether its run lives.")
		b.Loses(s.claim(b, 2), lock.Overlap)
		s.says("Under at-most-once the tick of a is interrupted. The memo lets a say later that it never started.",
			"The lease was last renewed before 0:20, so the tick of 0:20 was no overlap, and is set free.")
		b.Reaps(1)
		b.Finishes(s.wins(b), 0)
		s.says("a goes on.")
		s.mustEnd(l)
		_, err := l.Finish(s.Context(), 0, s.ending(l, "succeeded"))
		s.Must(err)
		s.at(4)
		again := s.claim(a, 4)
		again.Again = true
		l, _ = a.Wins(again)
		s.Pass(5 * time.Second)
		s.Must(l.Verify(s.Context()))
		s.says("a dies. b and c watch. Under at-least-once the tick is due again, as the next attempt, once.")
		watchB, watchC := b.NewWatcher(), c.NewWatcher()
		watchC.Unchanged(c.Looks(), s.ttl)
		seen := b.Unchanged(watchB, s.TTL)
		s.reaps(watchB, seen)
		s.reaps(watchC, seen)
		s.Pass(time.Second)
		again = b.ClaimOf(b.Sees())
		again.Again = true
		l, _ = b.Wins(again)
		b.Finishes(l, 0)
	}},
	"lost-reply": {"A missing answer means neither held nor free. The replica asks again with the same UUID.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.at(1)
		s.says("The request is lost, then the reply to the second copy.")
		a.Proxy.On(s.Script("acquire.lua"), 1, lossy.LoseRequest)
		a.Proxy.On(s.Script("acquire.lua"), 1, lossy.LoseReply)
		l, _ := a.Wins(s.claim(a, 1))
		s.says("The reply to the end of the run is lost.")
		a.Proxy.On(s.Script("settle.lua"), 1, lossy.LoseReply)
		_, err := l.Finish(s.Context(), 0, s.ending(l, "succeeded"))
		s.Must(err)
		s.at(2)
		s.says("The replies are lost until a gives up. It gives back what a copy may have claimed, and b runs the tick.")
		ctx, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
		defer cancel()
		a.Proxy.On(s.Script("acquire.lua"), 1, lossy.LoseReply)
		a.Proxy.On(s.Script("acquire.lua"), 1, lossy.LoseReply)
		if l, _, err := a.Acquire(ctx, s.claim(a, 2)); l != nil || err == nil {
			s.Fatalf("%v, %v; want no answer", l, err)
		}
		b.Finishes(s.wins(b), 0)
	}},
	"empty-redis": {"Redis loses all its data during a run. The new ledger settles all ticks up to a second after its birth.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		known, err := a.Register(s.Context(), job, fingerprint)
		s.Must(err)
		s.at(1)
		l, _ := a.Wins(s.claim(a, 1))
		s.at(2)
		s.says("All data are lost, at the very moment of a tick. A replica that knows nothing asks first.")
		s.Mini.FlushAll()
		s.before = map[string]string{}
		c := s.claim(b, 2)
		c.Fingerprint = fingerprint
		b.Loses(c, lock.Fired)
		s.says("The run of a may no longer go on.")
		s.mustEnd(l)
		_, err = l.Finish(s.Context(), 0, s.ending(l, "lost_lock"))
		s.Must(err)
		s.says("a knew the old ledger, and says how far its ticks were claimed: the rest are missed, and counted once.")
		_, err = a.RegisterAgain(s.Context(), job, fingerprint, lock.Before{Born: known.Born, Tick: s.tick(1), Claimed: s.tick(1), As: fingerprint})
		s.Must(err)
		s.at(3)
		_, answer := b.Wins(s.claim(b, 3))
		s.books(b, answer, lock.Missed)
		s.books(a, answer, lock.Missed)
	}},
	"pause": {"An operator pauses a job and resumes it. The ticks of the pause are settled, and no tick before is fired late.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.Must(b.Service.Pause(s.Context(), job, "deploying", time.Time{}))
		s.at(1)
		a.Loses(s.claim(a, 1), lock.Paused)
		s.Pass(5 * time.Second)
		if ok, err := b.Service.Resume(s.Context(), job); !ok || err != nil {
			s.Fatalf("resume: %t, %v", ok, err)
		}
		s.says("A replica that asks late is refused.")
		b.Loses(s.claim(b, 1), lock.Fired)
		s.at(2)
		_, answer := a.Wins(s.claim(a, 2))
		s.books(a, answer, lock.PausedTick)
	}},
	"queue": {"Queue: one tick waits for the end of the run, and the next is an overlap for good.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.at(1)
		l, _ := a.Wins(s.under(lock.Queue, a, 1))
		s.at(2)
		b.Loses(s.under(lock.Queue, b, 2), lock.Queued)
		a.Loses(s.under(lock.Queue, a, 2), lock.Waits)
		s.Must(l.Verify(s.Context()))
		s.at(3)
		b.Loses(s.under(lock.Queue, b, 3), lock.Overlap)
		s.Pass(3 * time.Second)
		s.says("The end of the run sets the waiting tick free.")
		a.Finishes(l, 0)
		c := b.ClaimOf(b.Sees())
		c.Policy = lock.Queue
		b.Wins(c)
	}},
	"replace": {"Replace: the newest tick waits, and the run is told to end. It keeps its lock until it has.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		s.born(a)
		s.at(1)
		l, _ := a.Wins(s.under(lock.Replace, a, 1))
		s.at(2)
		b.Loses(s.under(lock.Replace, b, 2), lock.Queued)
		s.says("A nudge has a ask at once. Its job takes long to end.")
		s.mustEnd(l)
		s.Pass(5 * time.Second)
		s.mustEnd(l)
		s.at(3)
		s.says("The newer tick displaces the one that waits, which is missed.")
		b.Loses(s.under(lock.Replace, b, 3), lock.Queued)
		s.Pass(time.Second)
		_, err := l.Finish(s.Context(), 0, s.ending(l, "replaced"))
		s.Must(err)
		c := b.ClaimOf(b.Sees())
		c.Policy = lock.Replace
		b.Wins(c)
	}},
	"timer": {"An app sets a timer. From its due member on, it is a run like any other.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		_, err := a.Register(s.Context(), rds.TimerJobs, "")
		s.Must(err)
		s.says("It is set, then moved before it comes due.")
		a.Sets("invoice", s.tick(2), "mail", true)
		a.Sets("invoice", s.tick(1), "mail", false)
		s.at(1)
		c := a.ClaimOf(a.Sees())
		l, _ := a.Wins(c)
		b.Loses(s.again(b, c), lock.Gone)
		s.says("It can be neither set nor deleted any more.")
		b.ComesTooLate("invoice")
		a.Finishes(l, 0)
		s.says("For a day its id is refused.")
		b.ComesTooLate("invoice")
	}},
	"schedule": {"An app sets a timer with a schedule. Each time of it becomes a timer of its own.", func(s *stage) {
		a, b := s.replica("a"), s.replica("b")
		_, err := a.Register(s.Context(), rds.TimerJobs, "")
		s.Must(err)
		a.SetsSeries("report", s.tick(1), "daily", s.tick(1), true)
		s.at(1)
		s.says("Both replicas have read it. One moves it on, and the other one does nothing.")
		read := a.Springs(s.tick(2), service.SprungDue)
		b.SpringsAs(read, service.SprungGone)
		l, _ := b.Wins(b.ClaimOf(b.Sees()))
		s.at(2)
		s.says("The time before is not over: this one is passed over.")
		a.Springs(s.tick(3), service.SprungOverlapped)
		b.Finishes(l, 0)
		s.at(3)
		a.Springs(s.tick(4), service.SprungDue)
		s.at(4)
		s.says("No replica has claimed the time before: the new one takes its place.")
		a.SpringsSeries(s.tick(5), service.SprungReplaced)
		s.says("It is deleted, and its time that no replica has claimed with it.")
		deleted, err := a.Service.DeleteTimer(s.Context(), "report")
		if !deleted || err != nil {
			s.Errorf("deleted: %t, %v", deleted, err)
		}
	}},
}

// fingerprint is that of the job's schedule.
const fingerprint = "every-10s"

// stage is a World whose calls of scripts are written down.
type stage struct {
	*redisworld.World
	out     strings.Builder
	scripts map[string]string // names by hash
	uuids   map[string]string // names of what is new in each play
	before  map[string]string // what Redis keeps
}

// played is the trace of a play.
func played(w *redisworld.World, about string, play func(*stage)) string {
	s := &stage{World: w, scripts: map[string]string{}, uuids: map[string]string{}}
	for _, dir := range []string{".", "../sidecar/service"} {
		files, err := filepath.Glob(dir + "/*.lua")
		s.Must(err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			s.Must(err)
			source := rds.NewScript(string(text), rds.Unconfirmed).Source
			sum, err := s.Admin.ScriptLoad(s.Context(), source).Result()
			s.Must(err)
			s.scripts[sum] = strings.TrimSuffix(filepath.Base(file), ".lua")
		}
	}
	fmt.Fprintf(&s.out, "# %s\n"+
		"#\n"+
		"# Each line: time, replica, script, question → answer. Below it: what changed in Redis, except history and records.\n"+
		"# @ is a score: in running the end of the lease, in due the time before which no replica claims the member.\n"+
		"# The job's ticks come every ten seconds. The ttl is fifteen.\n\n", about)
	play(s)
	return s.out.String()
}

// says explains what comes next.
func (s *stage) says(lines ...string) {
	fmt.Fprintf(&s.out, "\n# %s\n", strings.Join(lines, "\n# "))
}

func (s *stage) replica(name string) *redisworld.Replica {
	r := s.Replica(name)
	r.Client.AddHook(scribe{s, name})
	s.Must(r.Sync(s.Context()))
	return r
}

// born makes the job known to Redis through each of the replicas.
func (s *stage) born(by ...*redisworld.Replica) {
	for _, r := range by {
		_, err := r.Register(s.Context(), job, fingerprint)
		s.Must(err)
	}
}

func (s *stage) tick(n int) time.Time { return s.Start.Add(time.Duration(n) * every) }

// at lets time pass until a tick.
func (s *stage) at(n int) { s.Pass(s.tick(n).Sub(s.Now())) }

func (s *stage) claim(r *redisworld.Replica, n int) lock.Claim {
	return lock.Claim{Job: job, Tick: s.tick(n), TTL: s.TTL, Replica: r.Name, Period: every}
}

func (s *stage) under(p lock.Policy, r *redisworld.Replica, n int) lock.Claim {
	c := s.claim(r, n)
	c.Policy = p
	return c
}

// again is another run of a due member.
func (s *stage) again(r *redisworld.Replica, c lock.Claim) lock.Claim {
	c.Run, c.Replica = "", r.Name
	return c
}

// wins claims the only due member.
func (s *stage) wins(r *redisworld.Replica) *lock.Lease {
	l, _ := r.Wins(r.ClaimOf(r.Sees()))
	return l
}

func (s *stage) ending(l *lock.Lease, outcome string) lock.Ending {
	e := s.Entry(l, outcome)
	return e.Ending()
}

// mustEnd extends a lease, and demands that its run has to end.
func (s *stage) mustEnd(l *lock.Lease) {
	if err := l.Verify(s.Context()); err == nil {
		s.Error("the run may go on")
	}
}

func (s *stage) ttl(string) time.Duration { return s.TTL }

func (s *stage) reaps(watch *lock.Watcher, runs []lock.Running) {
	for _, run := range runs {
		_, _, err := watch.Reap(s.Context(), run, func(lock.Record) lock.Ending { return lock.Ending{Entry: `{"outcome":"interrupted"}`} })
		s.Must(err)
	}
}

// books counts one tick of the gaps of an answer.
func (s *stage) books(r *redisworld.Replica, a lock.Answer, fate string) {
	_, err := r.Book(s.Context(), job, a.Gaps, []lock.Booking{{Fate: fate, Ticks: 1, Entry: "{}"}})
	s.Must(err)
}
