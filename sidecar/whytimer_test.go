package sidecar

import (
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// saysOf demands what a timer is told to be; at 0 how it stands, else what became of that time.
func (w *world) saysOf(id string, at time.Duration, fate, want string) {
	w.t.Helper()
	w.operator(func(s *service.Store) {
		table := parse(w.t, noJobs)
		op := &service.Operator{Store: s, Table: func() *config.Table { return table }}
		j, err := op.FindAny(w.t.Context(), "timer:"+id)
		w.must(err)
		var tick time.Time
		if at != 0 {
			tick = w.origin().Add(at)
		}
		got, err := view.Explain(w.t.Context(), s, table, j, tick)
		w.must(err)
		if got.Text != want || got.Fate != fate || got.Job != "timer:"+id {
			w.t.Errorf("at %s timer %s is told as %s: %s\nwant %s: %s", time.Since(w.origin()), id, got.Fate, got.Text, fate, want)
		}
	})
}

func TestATimerTellsWhatBecameOfItsTimes(t *testing.T) {
	const unknown = " UTC is not known: the timer was set later, or changed, or does not wait any more, and the history has nothing of it."
	simulate(t, noJobs, func(w *world) {
		r := w.replica(25 * time.Second)
		w.at(5 * time.Second)
		w.repeat("a", tenSeconds, "")
		w.setTimer("b", 12345*time.Millisecond, "")
		w.setTimer("c", time.Hour, "")
		w.at(6 * time.Second)
		w.saysOf("b", 12345*time.Millisecond, "future", "00:11:12 UTC has not come yet: it is due in 6.3 s.")
		w.at(47 * time.Second) // runs of 25 s began at 10 s and 40 s
		w.saysOf("a", 0, "stands", "The run of 00:11:40 UTC is going on on r1 since 00:11:40 UTC. The last tick, 00:11:10 UTC, was fired by r1, and succeeded after 25.0 s. The next tick is 00:11:50 UTC, in 3.0 s.")
		w.saysOf("a", 5*time.Second, "no_tick", `00:11:05 UTC is no tick of "*/10 * * * * *": the next is 00:11:10 UTC.`)
		w.saysOf("a", -10*time.Second, "unknown", "00:10:50"+unknown)
		w.saysOf("a", 10*time.Second, "succeeded", "00:11:10 UTC was fired by r1, and succeeded after 25.0 s.")
		w.saysOf("a", 20*time.Second, "overlapped", "00:11:20 UTC was skipped: a run of the job was still going on, or another tick was waiting for its end.")
		w.saysOf("a", 30*time.Second, "overlapped", "00:11:30 UTC was skipped: the run of 00:11:10 UTC on r1 was still going on.") // which the history does not have
		w.saysOf("a", 40*time.Second, "running", "00:11:40 UTC is running on r1 since 00:11:40 UTC.")
		w.saysOf("a", 50*time.Second, "future", "00:11:50 UTC has not come yet: it is due in 3.0 s.")
		w.saysOf("b", 12345*time.Millisecond, "succeeded", "00:11:12 UTC was fired by r1, and succeeded after 25.0 s.")
		w.saysOf("b", 12*time.Second, "succeeded", "00:11:12 UTC was fired by r1, and succeeded after 25.0 s.") // as people write it
		w.saysOf("b", 13*time.Second, "unknown", "00:11:13"+unknown)
		w.saysOf("b", 0, "stands", "The last tick, 00:11:12 UTC, was fired by r1, and succeeded after 25.0 s. There is no further tick.")
		w.saysOf("c", 0, "stands", "The next tick is 01:11:00 UTC, in 59m13s.")
		w.saysOf("c", time.Minute, "unknown", "00:12:00"+unknown)
		w.saysOf("never", 0, "stands", "No timer of this id waits, and the history has nothing of it.")
		w.saysOf("never", time.Hour, "unknown", "01:11:00"+unknown)
		w.saysOf("a@10", 0, "stands", "No timer of this id waits, and the history has nothing of it.")

		w.at(51 * time.Second)
		w.saysOf("a", 50*time.Second, "overlapped", "00:11:50 UTC was skipped: a run of the job was still going on, or another tick was waiting for its end.")
		r.disconnect(true)
		w.at(4 * time.Minute) // nobody is there
		w.saysOf("a", 200*time.Second, "overlapped", "00:14:20 UTC was skipped: the run of 00:11:40 UTC on r1 was still going on.")
		w.remove("a")
		w.operator(func(s *service.Store) {
			_, err := s.SetTimer(w.t.Context(), "d", w.origin().Add(3*time.Minute), []byte(`{"at": "2000-01-01T00:14:00Z", "http": {"url": "http://127.0.0.1/"}}`))
			w.must(err)
		})
		w.saysOf("d", 3*time.Minute, "unclaimed", "00:14:00 UTC has come due, and no replica has claimed it. No replica is running: nothing fires until one starts.")
		w.saysOf("d", 0, "stands", "The tick 00:14:00 UTC has come due, and no replica has claimed it. No replica is running: nothing fires until one starts. There is no further tick.")
	})
}

func TestATimeOfATimerThatNoReplicaHasClaimedSaysSo(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(time.Second)
		w.at(13 * time.Second)
		w.repeat("a", tenSeconds, "")
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), service.TimerJobs, "incident", time.Time{})) })
		w.at(33 * time.Second) // the replica has made 20 s due, and cannot claim it
		const paused = " UTC has come due, and no replica has claimed it. The job is paused since 00:11:13 UTC: incident. It fires again after solotick resume timer:a."
		w.saysOf("a", 30*time.Second, "unclaimed", "00:11:30"+paused)
		w.saysOf("a", 20*time.Second, "unclaimed", "00:11:20"+paused)
	})
}
