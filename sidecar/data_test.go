package sidecar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/service"
)

// withBody is a table with a job that has a body of its own.
func withBody(keys string) string {
	return "\njobs:\n  - {name: rare, schedule: '11 0 * * *', http: {url: 'http://127.0.0.1/', body: of the table}" + keys + "}\n"
}

const takesData = ", trigger: {data: true}, guarantee: at-least-once, timeout: 1h, lock: {ttl: 6s}"

// brings triggers the job with data, and returns the tick and the id of the request.
func (w *world) brings(data string) (tick time.Time, id string) {
	w.t.Helper()
	id = uuid.NewString()
	w.operator(func(s *service.Store) {
		d, err := s.TriggerWith(w.t.Context(), "rare", id, []byte(data))
		w.must(err)
		tick = d.Tick
	})
	return tick, id
}

// dataKeys are the keys in which Redis keeps data.
func (w *world) dataKeys() (keys []string) {
	for _, k := range w.redis.Keys() {
		if strings.Contains(k, ":data:") {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestARunByHandGetsItsDataWhereverItIsRun(t *testing.T) {
	const data = `{"customer": "canary-7341"}`
	for _, how := range []string{"shutdown", "death", "handover"} {
		t.Run(how, func(t *testing.T) {
			simulate(t, "shutdownGrace: 2s\n"+withBody(takesData), func(w *world) {
				for range 2 {
					w.replica(10 * time.Second)
				}
				w.at(30 * time.Second)
				if how == "handover" {
					refuses := w.replicas[0]
					refuses.mu.Lock()
					refuses.work = nil
					refuses.mu.Unlock()
				}
				tick, _ := w.brings(data)
				w.at(33 * time.Second)
				switch first := w.holder("rare", tick.Sub(w.origin())); how {
				case "shutdown":
					first.stop()
				case "death":
					first.crash()
				}
				if n := len(w.dataKeys()); n != 1 {
					t.Errorf("while it runs there are %d keys with data", n)
				}
				w.at(time.Minute)
				runs, want := w.started("rare")[tick], 2
				if how == "handover" {
					want = 1
				}
				if len(runs) != want {
					t.Fatalf("started as %+v\n%s", runs, w.log())
				}
				for _, s := range runs {
					if s.run.Data != data || s.run.Kind != kindManual || s.run.Key != "" {
						t.Errorf("started as %+v with the data %q", s.run, s.run.Data)
					}
				}
				for _, s := range w.started("rare")[w.origin()] {
					if s.run.Data != "" {
						t.Errorf("a run of the schedule has the data %q", s.run.Data)
					}
				}
				if keys := w.dataKeys(); len(keys) > 0 {
					t.Errorf("after the end there are %q", keys)
				}
				var entries []service.Entry
				w.operator(func(s *service.Store) {
					var err error
					entries, err = s.History(w.t.Context(), "rare", 10)
					w.must(err)
				})
				if len(entries) == 0 || entries[0].Data != len(data) || entries[0].Outcome != "succeeded" {
					t.Errorf("the history has %+v", entries)
				}
				for _, text := range []string{w.log(), w.redis.Dump()} {
					if strings.Contains(text, "canary") {
						t.Errorf("the data are told:\n%s", text)
					}
				}
			})
		})
	}
}

// A reload may come between the trigger and its run, and not reach all replicas at once.
func TestAReplicaWhoseTableTakesNoDataLeavesTheRunToOthers(t *testing.T) {
	simulate(t, rare(""), func(w *world) {
		w.replica(time.Second)
		w.at(10 * time.Second)
		tick, _ := w.brings("{}")
		w.at(20 * time.Second)
		if s := w.started("rare")[tick]; len(s) != 0 {
			t.Fatalf("started as %+v", s)
		}
		w.reload(rare(", trigger: {data: true}"))
		w.replica(time.Second)
		w.at(2 * time.Minute)
		if s := w.started("rare")[tick]; len(s) != 1 || s[0].replica != w.replicas[1].name || string(s[0].run.Data) != "{}" {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

func TestARunNeverBeginsWithoutItsData(t *testing.T) {
	simulate(t, withBody(takesData), func(w *world) {
		for range 2 {
			w.replica(40 * time.Second)
		}
		w.at(10 * time.Second) // the job runs
		tick, id := w.brings("{}")
		w.operator(func(s *service.Store) {
			w.must(s.ForgetData(w.t.Context(), id))
			if _, err := s.Data(w.t.Context(), id); !errors.Is(err, service.ErrNoData) {
				t.Fatal(err)
			}
		})
		w.at(2 * time.Minute)
		if s := w.started("rare")[tick]; len(s) != 0 {
			t.Errorf("started as %+v", s)
		}
		entries, err := w.replicas[0].store.History(w.t.Context(), "rare", 10)
		if w.must(err); len(entries) != 2 || entries[0].Outcome != "not_started" || entries[0].Data != service.UnknownData ||
			!strings.Contains(entries[0].Detail, "gone") {
			t.Errorf("the history has %+v\n%s", entries, w.log())
		}
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("due is %q", m)
		}
	})
}
