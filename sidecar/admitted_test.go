package sidecar

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// The store is written to as whoever has Redis can: the API would have refused all of this.

func TestATimerReachesOnlyUnixSocketsOfTheTable(t *testing.T) {
	const calls = "\njobs: [{name: own, schedule: '@yearly', http: {url: 'http://unix:/run/docker.sock:/own'}}]"
	simulate(t, noJobs, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(0)
		timer, err := config.ParseTimer("made", []byte(`{"schedule": "* * * * * *", "http": {"url": "http://unix:/run/docker.sock:/containers/create"}}`), time.Now())
		w.must(err)
		_, _, err = r.store.SetSeries(w.t.Context(), timer.ID, timer.At, timer.Source)
		w.must(err)
		w.at(5*time.Second + 500*time.Millisecond)
		if n := w.startedSince("timer:made", 0); n != 0 {
			t.Errorf("it was sent %d times to a socket that the table does not call", n)
		}
		if n := r.value("runs_total", "@timers", "not_started"); n < 4 {
			t.Errorf("%v of its runs are counted as not started, want one a second", n)
		}
		entries, err := r.store.History(w.t.Context(), "timer:made", 1)
		w.must(err)
		if len(entries) != 1 || !strings.Contains(entries[0].Detail, "not sent: ") || strings.Contains(entries[0].Detail, "docker") {
			t.Errorf("the history has %+v", entries)
		}
		w.swap(r, calls)
		w.at(10*time.Second + 500*time.Millisecond)
		if n := w.startedSince("timer:made", 5*time.Second); n < 4 {
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

func TestTheLedgerOfAJobThatHasLeftExpiresWithinDays(t *testing.T) {
	for _, guarantee := range []string{"at-most-once", "every-replica"} {
		made := "\njobs: [{name: made, schedule: '* * * * * *', guarantee: " + guarantee + ", http: {url: 'http://127.0.0.1/'}}]"
		simulate(t, made, func(w *world) {
			replicas := []*replica{w.replica(time.Millisecond), w.replica(time.Millisecond)}
			w.at(5 * time.Second)
			keys := w.redis.Keys()
			key := keys[slices.IndexFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":job:made") })]
			if kept := w.redis.TTL(key); guarantee == "at-most-once" && kept < 80*24*time.Hour {
				t.Errorf("%s: the ledger of a job that is there is kept for %s", guarantee, kept)
			}
			for _, r := range replicas {
				w.swap(r, noJobs)
			}
			w.at(15 * time.Second)
			if kept := w.redis.TTL(key); kept <= 0 || kept > 7*24*time.Hour {
				t.Errorf("%s: the ledger of the job that left is kept for %s, want a week", guarantee, kept)
			}
		})
	}
}
