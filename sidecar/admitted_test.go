package sidecar

import (
	"strings"
	"testing"
	"time"
)

// The store is written to as whoever has Redis can: the API would have refused all of this.

func TestAJobOfTheAPIReachesOnlyUnixSocketsOfTheTable(t *testing.T) {
	const made = `{"schedule": "* * * * * *", "guarantee": "every-replica", "http": {"url": "http://unix:/run/%s.sock:/containers/create"}}`
	const calls = "\njobs: [{name: own, schedule: '@yearly', http: {url: 'http://unix:/run/docker.sock:/own'}}]"
	simulate(t, noJobs, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(0)
		w.setJob("made", strings.Replace(made, "%s", "docker", 1))
		w.at(5*time.Second + 500*time.Millisecond)
		if n := w.startedSince("made", 0); n != 0 {
			t.Errorf("it was sent %d times to a socket that the table does not call", n)
		}
		if n := r.value("runs_total", "made", "not_started"); n < 4 {
			t.Errorf("%v of its runs are counted as not started, want one a second", n)
		}
		entries, err := r.store.History(w.t.Context(), "made", 1)
		w.must(err)
		if len(entries) != 1 || !strings.Contains(entries[0].Detail, "not sent: ") || strings.Contains(entries[0].Detail, "docker") {
			t.Errorf("the history has %+v", entries)
		}
		w.swap(r, calls)
		w.at(10*time.Second + 500*time.Millisecond)
		if n := w.startedSince("made", 5*time.Second); n < 4 {
			t.Errorf("it was sent %d times once the table calls the socket, want one a second", n)
		}
	})
}

func TestATimerReachesNeitherAForeignSocketNorTheAdminAddress(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(time.Millisecond)
		w.at(0)
		for id, url := range map[string]string{
			"socket": "http://unix:/run/docker.sock:/", "admin": "http://127.0.0.1:9748/v1/drain", "app": "http://127.0.0.1:8080/",
		} {
			source := `{"at": "` + w.origin().Add(time.Second).Format(time.RFC3339Nano) + `", "http": {"url": "` + url + `"}}`
			_, err := w.replicas[0].store.SetTimer(w.t.Context(), id, w.origin().Add(time.Second), []byte(source))
			w.must(err)
		}
		w.at(time.Minute)
		for id, want := range map[string]int{"timer:socket": 0, "timer:admin": 0, "timer:app": 1} {
			if n := w.startedSince(id, 0); n != want {
				t.Errorf("%s was sent %d times, want %d", id, n, want)
			}
		}
		if left, err := w.replicas[0].store.Timers(w.t.Context(), 10); len(left) > 0 || err != nil {
			t.Errorf("left %v, %v", left, err)
		}
	})
}
