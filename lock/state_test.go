package lock_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
)

func TestStatesShowWhatRunsWaitsAndWasPaused(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born("other", "idle")
		a, b := w.replica("a"), w.replica("b")
		jobs := []string{job, "other", "idle", "stranger"}
		read := func() map[string]lock.JobState {
			w.Helper()
			states, err := b.States(w.Context(), jobs)
			w.must(err)
			return states
		}
		if states := read(); len(states) != 3 || states[job].Last != nil || states[job].By != "" || states[job].Paused != nil {
			w.Fatalf("at first: %+v", states)
		}

		claimed := w.now()
		c := a.claim(1)
		c.Attempt, c.Kind = 2, "takeover"
		l, _ := a.wins(c)
		other := a.claim(1)
		other.Job = "other"
		a.wins(other)
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		state := read()[job]
		if len(state.Running) != 1 || len(state.Waiting) != 1 || !same(state.Waiting[0], d) || !state.Tick.Equal(w.tick(1)) ||
			state.By != "a" || state.Token != l.Token {
			w.Fatalf("while it runs: %+v", state)
		}
		r := state.Running[0]
		if r.Run != l.Run() || !r.Tick.Equal(w.tick(1)) || r.Replica != "a" || r.Attempt != 2 || r.Kind != "takeover" || r.Token != l.Token {
			w.Errorf("the run: %+v", r)
		}
		if late := r.Since.Sub(claimed); late < -time.Millisecond || late > 2*time.Second || r.LeaseEnd.Sub(r.Since) != w.ttl {
			w.Errorf("it was claimed at %s, and runs since %s until %s", claimed, r.Since, r.LeaseEnd)
		}

		queued := b.claim(2)
		queued.Policy = lock.Queue
		b.loses(queued, lock.Queued)
		until := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.must(b.Pause(w.Context(), job, "database migration", until))
		state = read()[job]
		if n := len(state.Waiting); n != 2 || !state.Waiting[1].Tick.Equal(w.tick(2)) {
			w.Errorf("waiting: %+v", state.Waiting)
		}
		if p := state.Paused; p == nil || !p.Until.Equal(until) || p.Reason != "database migration" || p.At.Before(claimed.Truncate(time.Millisecond)) {
			w.Errorf("paused: %+v", p)
		}

		e := &lock.Entry{Attempt: 2, Outcome: "failed", Failed: true, Ended: w.now().Truncate(time.Millisecond).UTC(), Took: 3 * time.Second, Detail: "exit code 1"}
		if got, err := l.Finish(w.Context(), 0, e); got != lock.OK || err != nil {
			w.Fatalf("finish: %s, %v", got, err)
		}
		e.Tick = e.Tick.UTC()
		states := read()
		if last := states[job].Last; len(states[job].Running) != 0 || last == nil || *last != *e || last.Run != l.Run() {
			w.Errorf("after its end: %+v", states[job])
		}
		if len(states["other"].Running) != 1 || len(states["idle"].Running) != 0 || len(states["idle"].Waiting) != 0 {
			w.Errorf("the other jobs: %+v", states)
		}
	})
}

func TestAPauseThatIsOverIsNotShownAsOne(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		until := w.now().Add(time.Minute).Truncate(time.Millisecond)
		w.must(a.Pause(w.Context(), job, "", until))
		w.pass(time.Minute)
		states, err := a.States(w.Context(), []string{job})
		if s := states[job]; err != nil || s.Paused != nil || !s.PausedTo.Equal(until) {
			w.Errorf("%+v, %v", s, err)
		}
	})
}

func TestWhatAnotherVersionWroteDoesNotHideTheRest(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		w.must(w.admin.Do(w.Context(), "zadd", dueSet, 1, "unheard of").Err())
		w.must(w.admin.Do(w.Context(), "zadd", running, 1, "run "+job).Err())
		w.must(w.admin.HSet(w.Context(), ledger, "r:run", "new ways", "done", "<xml>", "paused", "for ever").Err())
		w.must(w.admin.HSet(w.Context(), "solotick:{svc}:replicas", "b", "<xml>").Err())
		w.must(w.admin.Do(w.Context(), "xadd", "solotick:{svc}:runs", "*", "run", "<xml>").Err())
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		states, err := a.States(w.Context(), []string{job})
		if s := states[job]; err != nil || len(s.Waiting) != 1 || !same(s.Waiting[0], d) || len(s.Running) != 0 || s.Last != nil ||
			s.Paused == nil {
			w.Errorf("%+v, %v", states, err)
		}
		if replicas, err := a.Replicas(w.Context()); len(replicas) != 0 || err != nil {
			w.Errorf("%+v, %v", replicas, err)
		}
		if history, err := a.History(w.Context(), "", 10); len(history) != 0 || err != nil {
			w.Errorf("%+v, %v", history, err)
		}
	})
}
