package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
)

// told plays a world in which all replicas send their messages to one receiver, and gives these messages.
func told(t *testing.T, keys string, play func(w *world, add func(...func(*replica)) *replica)) []string {
	t.Helper()
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Event, Tick, First, Outcome, Replica string
			Failures, Count                      int
			Seconds                              float64
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		said := m.Event + " " + m.Outcome
		if m.Count > 0 {
			said += fmt.Sprint(m.First[14:19], " to ", m.Tick[14:19], " ", m.Count)
		} else if m.Seconds > 0 {
			said += fmt.Sprint(m.Tick[14:19], " ", 10*math.Ceil(m.Seconds/10)) // the replicas notice Redis within seconds
		} else {
			said += fmt.Sprint(" ", m.Failures)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, said)
	}))
	defer server.Close()
	pings := notify.New(nil, "test") // what it has to send waits until it may run, outside the bubble, where there is a network
	table := "jobs:\n  - {name: minute, schedule: '* * * * *', exec: {command: [x]}, " + keys +
		", notify: {change: {url: '" + server.URL + "', late: 50s, long: 20s"
	simulate(t, table+"}}}\n", func(w *world) {
		play(w, func(change ...func(*replica)) *replica {
			return w.replica(time.Second, append(change, func(r *replica) { r.pings = pings })...)
		})
	})
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := pings.Run(ctx); err != nil {
		t.Error(err)
	}
	return got
}

// fails has the jobs of a replica fail after a second, until some tick.
func fails(until time.Duration) func(*replica) {
	return func(r *replica) {
		r.work = func(_ context.Context, run execute.Run) execute.Result {
			time.Sleep(time.Second)
			if run.Tick.Before(r.world.origin().Add(until)) {
				return execute.Result{Status: execute.Failed, Err: errors.New("exit code 1"), Code: 1}
			}
			return execute.Result{Status: execute.Succeeded}
		}
	}
}

func wantTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestEachChangeIsToldOnceByThreeReplicas(t *testing.T) {
	long(t)
	for _, lost := range []bool{false, true} {
		got := told(t, "timeout: 40s", func(w *world, add func(...func(*replica)) *replica) {
			for range 3 {
				add(fails(5 * time.Minute))
			}
			for n := range 7 {
				if !lost {
					break
				}
				// Each settlement is carried out, and its answer does not come back.
				w.at(time.Duration(n)*time.Minute + 500*time.Millisecond)
				for _, r := range w.replicas {
					r.deaf.Store(true)
				}
				w.at(time.Duration(n)*time.Minute + 2*time.Second)
				for _, r := range w.replicas {
					r.deaf.Store(false)
				}
			}
			w.at(6*time.Minute + 30*time.Second)
			for _, r := range w.replicas {
				r.disconnect(true)
			}
			w.at(9*time.Minute + 55*time.Second)
			for _, r := range w.replicas {
				r.disconnect(false)
			}
			w.at(11 * time.Minute)
			if n := len(w.settled("minute")); n < 8 {
				t.Errorf("%d runs", n)
			}
		})
		if len(got) == 4 {
			slices.Sort(got[2:]) // the claim of the late tick and the counting of those before it are one instant
		}
		wantTold(t, got, "failed failed 1", "recovered succeeded 5", "late 20:00 60", "missed 18:00 to 19:00 2")
	}
}

func TestATakeoverIsToldOnce(t *testing.T) {
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		got := told(t, "guarantee: "+guarantee, func(w *world, add func(...func(*replica)) *replica) {
			first := add(func(r *replica) {
				r.work = func(ctx context.Context, _ execute.Run) execute.Result {
					<-ctx.Done()
					return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
				}
			})
			w.at(time.Second)
			for range 2 {
				add()
			}
			first.disconnect(true)
			w.at(40 * time.Second)
			first.disconnect(false)
			first.stop()
			w.at(70 * time.Second)
		})
		if guarantee == "at-most-once" {
			wantTold(t, got, "failed interrupted 1", "recovered succeeded 1")
		} else { // it was run again, and has succeeded
			wantTold(t, got)
		}
	}
}

// The run in the place of one that was cut short is not late: the tick was begun in time.
func TestARunThatIsRepeatedIsNotToldAsLate(t *testing.T) {
	ran := 0
	got := told(t, "guarantee: at-least-once, timeout: 10m, missed: skip", func(w *world, add func(...func(*replica)) *replica) {
		first := add(func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				<-ctx.Done()
				return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
			}
		})
		w.at(time.Second)
		first.disconnect(true)
		w.at(100 * time.Second) // the tick after it waits, and is late
		add()
		w.at(170 * time.Second)
		ran = len(w.started("minute")[w.origin()])
		first.disconnect(false)
		first.stop()
		w.at(175 * time.Second)
	})
	late := func(said string) bool { return strings.HasPrefix(said, "late ") && strings.Contains(said, "11:00 ") }
	if ran != 2 || slices.ContainsFunc(got, late) {
		t.Errorf("the tick was begun %d times, and told are %q", ran, got)
	}
}

func TestARunThatTakesTooLongIsToldOfWhileItLasts(t *testing.T) {
	got := told(t, "timeout: 30s, retry: {limit: 1, backoff: 1s}", func(w *world, add func(...func(*replica)) *replica) {
		for range 3 {
			add(func(r *replica) {
				r.work = func(ctx context.Context, run execute.Run) execute.Result {
					beat.Sleep(ctx, 12*time.Second) // twice, with its second attempt
					if run.Tick.Equal(r.world.origin()) {
						return execute.Result{Status: execute.Failed, Err: errors.New("exit code 1"), Code: 1}
					}
					return execute.Result{Status: execute.Succeeded}
				}
			})
		}
		w.at(80 * time.Second)
	})
	wantTold(t, got, "long 11:00 20", "failed failed 1", "recovered succeeded 1")
}

func TestNothingIsToldOfAJobOfEveryReplica(t *testing.T) {
	long(t)
	got := told(t, "guarantee: every-replica", func(w *world, add func(...func(*replica)) *replica) {
		for range 3 {
			add(func(r *replica) {
				r.work = func(ctx context.Context, _ execute.Run) execute.Result {
					beat.Sleep(ctx, 25*time.Second)
					return execute.Result{Status: execute.Failed, Err: errors.New("exit code 1"), Code: 1}
				}
			})
		}
		w.at(4 * time.Minute)
	})
	wantTold(t, got)
}
