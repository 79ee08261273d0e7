package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
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
		w.Must(w.Admin.Do(w.Context(), "xadd", history, "*", "run", "<xml>").Err())
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
		if history, err := a.Service.History(w.Context(), job, 10); len(history) != 0 || err != nil {
			w.Errorf("%+v, %v", history, err)
		}
	})
}

// The fields are those that scripts of this and of other versions write.
func TestALedgerIsReadFieldByField(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born("other")
		a := w.Replica("a")
		others := a.Claim(1)
		others.Job = "other"
		a.Wins(others) // of which the reader has not asked
		for range 2 {
			_, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
			w.Must(err)
		}
		first, _ := a.Wins(a.ClaimUnder(lock.Allow, 1))
		w.Pass(time.Second)
		second, _ := a.Wins(a.ClaimUnder(lock.Allow, 2))
		w.Must(first.Verify(w.Context())) // its lease ends last now
		ms := func(at time.Time) int64 { return at.UnixMilli() }
		resumed := w.Now().Add(-time.Hour).Truncate(time.Millisecond)
		w.Must(w.Admin.HSet(w.Context(), ledger, "open", fmt.Sprintf(" %d~<1: %d~+2:", ms(w.Tick(3)), ms(w.Tick(4))), "gaps", "10-20 20-22:paused ",
			"ended", "9 -5 7", "paused", fmt.Sprint(ms(resumed)-1000, " 1 one"), "pausedAll", fmt.Sprint(ms(resumed)-2000, " 1 all"),
			"pausedTo", ms(resumed), "done", `{"tick":5,"outcome":"overlapped"}`).Err())
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:job:gone", "ended", "9 1 7").Err()) // of a ledger that has expired
		states, err := a.Service.States(w.Context(), []string{job, "gone"})
		w.Must(err)
		l := states[job]
		if len(states) != 1 {
			w.Errorf("a job without a ledger is known: %+v", states)
		}
		if len(l.Running) != 2 || l.Running[0].Run != first.Run() || l.Running[1].Run != second.Run() {
			w.Errorf("the runs: %+v, want them by their beginning", l.Running)
		}
		if len(l.Behind) != 2 || l.Behind[0] != (service.Behind{Tick: w.Tick(3).UTC()}) || l.Behind[1] != (service.Behind{Tick: w.Tick(4).UTC(), Waits: true}) {
			w.Errorf("behind them: %+v", l.Behind)
		}
		if n := len(l.Waiting); n != 3 || l.Waiting[1].Kind != "manual" || !l.Waiting[2].Tick.Equal(w.Tick(4)) || l.Waiting[2].Attempt != 1 {
			w.Errorf("waiting: %+v", l.Waiting)
		}
		if len(l.Gaps) != 2 || l.Gaps[0].Fate != lock.Missed || l.Gaps[1].Fate != lock.PausedTick {
			w.Errorf("gaps: %+v", l.Gaps)
		}
		if l.Streak != 0 || !l.FailingSince.IsZero() || l.IsPaused() || !l.PausedTo.Equal(resumed) {
			w.Errorf("streak %d since %s, paused %t until %s", l.Streak, l.FailingSince, l.IsPaused(), l.PausedTo)
		}
		if l.Last == nil || l.Last.Job != job || l.Last.Outcome != "overlapped" {
			w.Errorf("last: %+v", l.Last)
		}
	})
}

func TestAPauseHoldsUntilItsEndAlone(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		s := w.Replica("a").Service
		until := w.Now().Add(time.Minute).Truncate(time.Millisecond)
		w.Must(w.Admin.HSet(w.Context(), ledger, "pausedAll", fmt.Sprint(until.UnixMilli(), " 1 incident")).Err())
		for passed, held := range map[time.Duration]bool{-time.Millisecond: true, 0: false} {
			w.Mini.SetTime(until.Add(passed))
			for name, read := range map[string]func(context.Context, []string) (map[string]service.Ledger, error){"states": s.States, "standings": s.Standings} {
				all, err := read(w.Context(), []string{job})
				if l := all[job]; err != nil || l.Paused != nil || l.IsPaused() != held || l.PausedTo.Equal(until) == held {
					w.Errorf("%s, %s after its end: paused %t until %s, %v", name, passed, l.IsPaused(), l.PausedTo, err)
				}
			}
		}
	})
}

// A field too many would be one of another name.
func TestAnAnswerOfAnotherLengthIsAnError(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		s := w.Replica("a").Service
		w.Must(s.Beat(w.Context(), service.Replica{Name: "a"}))
		for _, length := range []int{0, 1, 40} {
			w.Mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if strings.ToUpper(cmd) != "HMGET" {
					return false
				}
				c.WriteLen(length)
				for range length {
					c.WriteBulk("7")
				}
				return true
			})
			_, ofJobs := s.Standings(w.Context(), []string{job})
			_, ofReplicas := s.Replicas(w.Context())
			for what, err := range map[string]error{"standings": ofJobs, "replicas": ofReplicas} {
				if (err == nil) != (length == 1 && what == "replicas") {
					w.Errorf("%s, %d fields: %v", what, length, err)
				}
			}
		}
	})
}
