package service_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/sidecar/service"
)

func TestStandingsAreWhatTheLedgersSay(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born("other")
		a := w.Replica("a")
		read := func() map[string]service.Ledger {
			w.Helper()
			all, err := a.Service.Standings(w.Context(), []string{"stranger", job, "other"})
			w.Must(err)
			if len(all) != 3 {
				w.Fatalf("%d standings", len(all))
			}
			return all
		}
		at := time.UnixMilli(1_700_000_000_123).UTC()
		fields := []any{"lastSuccess", at.UnixMilli(), "lastFailure", at.UnixMilli() + 1, "ended", fmt.Sprint("9 7 ", at.UnixMilli()+2)}
		want := service.Ledger{LastSuccess: at, LastFailure: at.Add(time.Millisecond), FailingSince: at.Add(2 * time.Millisecond), Streak: 7}
		for i, fate := range service.Fates {
			fields = append(fields, "fate:"+fate, i+1)
			want.Counts[i] = int64(i + 1)
		}
		before := read()
		if before[job].Since.IsZero() || !reflect.DeepEqual(before[job], service.Ledger{Since: before[job].Since}) {
			t.Errorf("at first: %+v", before[job])
		}
		w.Must(w.Admin.HSet(w.Context(), ledger, fields...).Err())
		all := read()
		want.Since = before[job].Since
		if !reflect.DeepEqual(all[job], want) {
			t.Errorf("the job: %+v, want %+v", all[job], want)
		}
		if !reflect.DeepEqual(all["stranger"], service.Ledger{}) || !reflect.DeepEqual(all["other"], service.Ledger{Since: all["other"].Since}) {
			t.Errorf("the others: %+v", all)
		}

		w.Must(w.Admin.HSet(w.Context(), ledger, "ended", "9 0 7").Err())
		if st := read()[job]; st.Streak != 0 || !st.FailingSince.IsZero() {
			t.Errorf("when the streak is over: %+v", st)
		}

		until := w.Now().Add(time.Minute).Truncate(time.Millisecond)
		w.Must(a.Service.Pause(w.Context(), job, "incident", until))
		if st := read()[job]; !st.IsPaused() || !st.PausedTo.IsZero() {
			t.Errorf("while it is paused: %+v", st)
		}
		_, err := a.Service.Resume(w.Context(), job)
		w.Must(err)
		if st := read()[job]; st.IsPaused() || st.PausedTo.IsZero() || st.PausedTo.After(w.Now()) {
			t.Errorf("when it is resumed: %+v", st)
		}
		past := w.Now().Add(-time.Minute).Truncate(time.Millisecond)
		w.Must(w.Admin.HSet(w.Context(), ledger, "pausedAll", fmt.Sprintf("%d %d ", past.UnixMilli(), past.UnixMilli()-1), "pausedTo", 0).Err())
		if st := read()[job]; st.IsPaused() || !st.PausedTo.Equal(past) {
			t.Errorf("when a pause has ended by itself: %+v", st)
		}
	})
}

func TestStandingsOfAllTimersSayHowManyWaitAndHowLate(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		count := func(timers int64, late time.Duration) {
			w.Helper()
			w.Must(a.Service.Sync(w.Context()))
			all, err := a.Service.Standings(w.Context(), []string{job, service.TimerJobs})
			w.Must(err)
			l := all[service.TimerJobs]
			if l.Timers != timers || l.Late < late || l.Late > late+time.Minute || late == 0 && l.Late > 0 || all[job].Timers > 0 {
				w.Errorf("%d timers, %s late; want %d, %s", l.Timers, l.Late, timers, late)
			}
		}
		count(0, 0)
		a.Sets("ahead", w.Now().Add(time.Hour), "", true)
		count(1, 0)
		ago := w.Now().Add(-30 * time.Minute).Truncate(time.Second)
		a.SetsSeries("x", ago, "", ago, true)
		count(2, 30*time.Minute)
		a.Springs(w.Now().Add(2*time.Hour), service.SprungDue) // from now on it waits for that, and the time that has come for a replica
		count(2, 30*time.Minute)
		a.Sets("late", ago.Add(-time.Hour), "", true)
		count(3, 90*time.Minute)
		for _, d := range w.Dues() {
			if d.Kind == "timer" && !d.Tick.After(ago) {
				a.Wins(a.ClaimOf(d))
			}
		}
		count(2, 0)
	})
}
