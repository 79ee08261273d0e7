package nemesis

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// calmMix has more jobs, by every kind of schedule that has a tick within minutes.
var calmMix = append(slices.Clone(allMix), []job{
	{name: "each-second-5ms", schedule: "* * * * * *", every: time.Second, take: 5 * time.Millisecond},
	{name: "each-second-20ms", schedule: "*/1 * * * * ?", every: time.Second, take: 20 * time.Millisecond},
	{name: "each-second-100ms", every: time.Second, take: 100 * time.Millisecond},
	{name: "each-second-300ms", schedule: "* * * * * *", every: time.Second, take: 300 * time.Millisecond,
		more: "lock: {safetyDelay: 0s}"},
	{name: "each-second-700ms", schedule: "* * * * * *", every: time.Second, take: 700 * time.Millisecond,
		more: "lock: {safetyDelay: 5s}"},
	{name: "each-second-900ms", schedule: "* * * * * *", every: time.Second, take: 900 * time.Millisecond},
	{name: "each-second-1400ms", schedule: "* * * * * *", every: time.Second, take: 1400 * time.Millisecond},
	{name: "each-second-3s", schedule: "* * * * * *", every: time.Second, take: 3 * time.Second, ttl: 2 * time.Second},
	{name: "each-second-beside", schedule: "* * * * * *", every: time.Second, take: 2500 * time.Millisecond,
		allow: true},
	{name: "each-2s-5ms", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 5 * time.Millisecond},
	{name: "each-2s-500ms", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 500 * time.Millisecond},
	{name: "each-2s-1500ms", every: 2 * time.Second, take: 1500 * time.Millisecond},
	{name: "each-2s-2500ms", schedule: "1-59/2 * * * * *", every: 2 * time.Second, offset: time.Second,
		take: 2500 * time.Millisecond},
	{name: "each-2s-beside", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 3 * time.Second, allow: true},
	{name: "each-3s-5ms", every: 3 * time.Second, take: 5 * time.Millisecond},
	{name: "each-5s-5ms", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond},
	{name: "each-5s-3s", schedule: "2-59/5 * * * * *", every: 5 * time.Second, offset: 2 * time.Second,
		take: 3 * time.Second},
	{name: "each-5s-exec", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond, exec: true},
	{name: "each-5s-jitter", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond,
		more: "jitter: 3s"},
	{name: "each-7s-1s", every: 7 * time.Second, take: time.Second},
	{name: "each-10s-exec", schedule: "*/10 * * * * *", every: 10 * time.Second, take: 2 * time.Second, exec: true},
	{name: "each-minute-5ms", schedule: "* * * * *", every: time.Minute, take: 5 * time.Millisecond},
	{name: "each-minute-3s", schedule: "* * * * *", every: time.Minute, take: 3 * time.Second,
		more: "timeZone: Asia/Kathmandu"},
	{name: "each-minute-half", schedule: "30 * * * * *", every: time.Minute, offset: 30 * time.Second,
		take: 500 * time.Millisecond},
	{name: "each-minute-late", schedule: "59 * * * * *", every: time.Minute, offset: 59 * time.Second,
		take: 3 * time.Second},
}...)

// leaveAlone strikes nothing, and then compares what the replicas count with what the app got.
func (w *world) leaveAlone(until time.Time) {
	time.Sleep(time.Until(until))
	for range 8 {
		// Little begins between two ticks. A run that does may have been counted on one side alone.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1600 * time.Millisecond)))
		seen, counted := w.app.Seen(), map[fires]int{}
		for _, r := range w.replicas {
			samples, err := r.process.Metrics()
			w.check(err)
			for _, s := range samples {
				if s.Name == "solotick_fires_total" {
					counted[fires{r.name, s.Labels["job"]}] += int(s.Value)
				}
			}
		}
		if time.Sleep(hair); w.app.Count() > len(seen) {
			continue
		}
		for _, wrong := range miscounted(counted, seen) {
			w.t.Error(wrong)
		}
		return
	}
	w.t.Error("reading the counters: in 8 s there was no moment at which nothing began")
}

// fires are those of one job by one replica.
type fires struct{ replica, job string }

// miscounted lists where a replica's count of fires is not what the app got from it. The attempts of a run are one
// fire.
func miscounted(counted map[fires]int, seen []rig.Request) (wrong []string) {
	got := map[fires]int{}
	for _, r := range join(seen, nil, time.Now()) {
		f := fires{r.replica, r.job}
		got[f]++
		counted[f] += 0
	}
	for f, n := range counted {
		if n != got[f] {
			wrong = append(wrong, fmt.Sprintf("%s counts %d fires of %s, the app got %d", f.replica, n, f.job, got[f]))
		}
	}
	return wrong
}

// callArg makes this program the process of an exec job.
const callArg = "call"

// call asks the app, and tells it what the process was told.
func call(url string) error {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SOLOTICK_") {
			req.Header.Set(strings.ReplaceAll(name, "_", "-"), value)
		}
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("calling the app: %s", answer.Status)
	}
	return nil
}
