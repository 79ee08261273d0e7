package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestStatesShowWhatRunsWaitsAndWasPaused(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born("other", "idle")
		a, b := w.Replica("a"), w.Replica("b")
		jobs := []string{job, "other", "idle", "stranger"}
		read := func() map[string]service.Ledger {
			w.Helper()
			states, err := b.Service.States(w.Context(), jobs)
			w.Must(err)
			return states
		}
		if states := read(); len(states) != 3 || states[job].Last != nil || states[job].By != "" || states[job].Paused != nil {
			w.Fatalf("at first: %+v", states)
		}

		claimed := w.Now()
		c := a.Claim(1)
		c.Attempt, c.Kind = 2, "takeover"
		l, _ := a.Wins(c)
		other := a.Claim(1)
		other.Job = "other"
		a.Wins(other)
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		state := read()[job]
		if len(state.Running) != 1 || len(state.Waiting) != 1 || !redisworld.Same(state.Waiting[0], d) || !state.Tick.Equal(w.Tick(1)) ||
			state.By != "a" || state.Token != l.Token {
			w.Fatalf("while it runs: %+v", state)
		}
		r := state.Running[0]
		if r.Run != l.Run() || !r.Tick.Equal(w.Tick(1)) || r.Replica != "a" || r.Attempt != 2 || r.Kind != "takeover" || r.Token != l.Token {
			w.Errorf("the run: %+v", r)
		}
		if late := r.Since.Sub(claimed); late < -time.Millisecond || late > 2*time.Second || r.LeaseEnd.Sub(r.Since) != w.TTL {
			w.Errorf("it was claimed at %s, and runs since %s until %s", claimed, r.Since, r.LeaseEnd)
		}

		queued := b.Claim(2)
		queued.Policy = lock.Queue
		b.Loses(queued, lock.Queued)
		until := w.Now().Add(time.Hour).Truncate(time.Millisecond)
		w.Must(b.Service.Pause(w.Context(), job, "database migration", until))
		state = read()[job]
		if n := len(state.Waiting); n != 2 || !state.Waiting[1].Tick.Equal(w.Tick(2)) {
			w.Errorf("waiting: %+v", state.Waiting)
		}
		if p := state.Paused; p == nil || !p.Until.Equal(until) || p.Reason != "database migration" || p.At.Before(claimed.Truncate(time.Millisecond)) {
			w.Errorf("paused: %+v", p)
		}

		e := w.Entry(l, "failed")
		e.Failed, e.Ended, e.Took, e.Detail = true, w.Now().Truncate(time.Millisecond).UTC(), 3*time.Second, "exit code 1"
		if got, err := l.Finish(w.Context(), 0, e.Ending()); got.Verdict != lock.OK || err != nil {
			w.Fatalf("finish: %s, %v", got.Verdict, err)
		}
		e.Tick = e.Tick.UTC()
		states := read()
		if last := states[job].Last; len(states[job].Running) != 0 || last == nil || *last != e || last.Run != l.Run() {
			w.Errorf("after its end: %+v", states[job])
		}
		if len(states["other"].Running) != 1 || len(states["idle"].Running) != 0 || len(states["idle"].Waiting) != 0 {
			w.Errorf("the other jobs: %+v", states)
		}
	})
}

func TestStatesTellHowTheTicksOfTheScheduleFare(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		read := func() service.Ledger {
			w.Helper()
			states, err := a.Service.States(w.Context(), []string{job})
			w.Must(err)
			return states[job]
		}
		ends := func(c lock.Claim, outcome string) *service.Entry {
			w.Helper()
			l, _ := a.Wins(c)
			e := w.Entry(l, outcome)
			e.Kind, e.Failed, e.Tick = c.Kind, outcome == "failed", e.Tick.UTC()
			if got, err := l.Finish(w.Context(), 0, e.Ending()); got.Verdict != lock.OK || err != nil {
				w.Fatalf("finish: %s, %v", got.Verdict, err)
			}
			return &e
		}
		if s := read(); s.Scheduled != nil || s.Missed != nil || s.MissedToday != 0 || s.Streak != 0 || s.Since.IsZero() {
			w.Errorf("at first: %+v", s)
		}
		began := w.Now().Add(-2 * time.Second)
		bad := ends(a.Claim(1), "failed")
		if s := read(); s.Streak != 1 || s.FailingSince.Before(began) || s.LastFailure.Before(began) || !s.LastSuccess.IsZero() || *s.Scheduled != *bad {
			w.Errorf("it failed: %+v", s)
		}
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		manual := a.Claim(2)
		manual.Tick, manual.Kind, manual.Member = d.Tick, "manual", d.Member()
		by := ends(manual, "succeeded")
		if s := read(); s.Streak != 1 || *s.Scheduled != *bad || *s.Last != *by {
			w.Errorf("a run by hand succeeded: %+v", s)
		}
		good := ends(a.Claim(3), "succeeded")
		if s := read(); s.Streak != 0 || !s.FailingSince.IsZero() || s.LastSuccess.Before(began) || *s.Scheduled != *good {
			w.Errorf("it succeeded: %+v", s)
		}

		w.Must(w.Admin.HSet(w.Context(), ledger, "gaps", "10-20 ").Err())
		gone := service.Entry{Job: job, Tick: w.Tick(2).UTC(), First: w.Tick(1).UTC(), Count: 2, Outcome: lock.Missed, Detail: "why"}
		if ours, err := a.Service.Locks.Book(w.Context(), job, "10-20 ", []lock.Booking{gone.Booking()}); !ours || err != nil {
			w.Fatalf("booking: %t, %v", ours, err)
		}
		if s := read(); s.MissedToday != 2 || s.Missed == nil || *s.Missed != gone {
			w.Errorf("two were missed: %+v", s)
		}
		day := w.Now().UnixMilli()/86_400_000 - 1
		w.Must(w.Admin.HSet(w.Context(), ledger, "missedToday", fmt.Sprintf("%d 2", day)).Err())
		if s := read(); s.MissedToday != 0 || s.Missed == nil {
			w.Errorf("two were missed yesterday: %+v", s)
		}
	})
}

func TestAPauseThatIsOverIsNotShownAsOne(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		until := w.Now().Add(time.Minute).Truncate(time.Millisecond)
		w.Must(a.Service.Pause(w.Context(), job, "", until))
		w.Pass(time.Minute)
		states, err := a.Service.States(w.Context(), []string{job})
		if s := states[job]; err != nil || s.Paused != nil || !s.PausedTo.Equal(until) {
			w.Errorf("%+v, %v", s, err)
		}
	})
}

func TestAPauseIsShownInPrintableLines(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		w.Must(w.Admin.HSet(w.Context(), ledger, "paused", "0 1 mov\x1b[2Jing\nan\x1b[31mna\r\nb").Err())
		states, err := w.Replica("a").Service.States(w.Context(), []string{job})
		if p := states[job].Paused; err != nil || p == nil || p.Reason != "mov [2Jing" || p.By != "an [31mna b" {
			w.Errorf("%+v, %v", p, err)
		}
	})
}

func TestWhatAnotherVersionWroteDoesNotHideTheRest(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		w.Must(w.Admin.Do(w.Context(), "zadd", dueSet, 1, "unheard of").Err())
		w.Must(w.Admin.Do(w.Context(), "zadd", running, 1, "run "+job).Err())
		w.Must(w.Admin.HSet(w.Context(), ledger, "r:run", "new ways", "done", "<xml>", "paused", "for ever").Err())
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:replicas", "b", "<xml>").Err())
		w.Must(w.Admin.Do(w.Context(), "xadd", "solotick:{svc}:runs", "*", "run", "<xml>").Err())
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		states, err := a.Service.States(w.Context(), []string{job})
		if s := states[job]; err != nil || len(s.Waiting) != 1 || !redisworld.Same(s.Waiting[0], d) || len(s.Running) != 0 || s.Last != nil ||
			s.Paused == nil {
			w.Errorf("%+v, %v", states, err)
		}
		if replicas, err := a.Service.Replicas(w.Context()); len(replicas) != 0 || err != nil {
			w.Errorf("%+v, %v", replicas, err)
		}
		if history, err := a.Service.History(w.Context(), "", 10); len(history) != 0 || err != nil {
			w.Errorf("%+v, %v", history, err)
		}
	})
}
