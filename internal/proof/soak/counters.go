package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

// counters are what one replica says of itself, by job.
type counters struct{ fires, wakes map[string]int }

func read(r *rig.Replica) (counters, error) {
	samples, err := r.Metrics()
	c := counters{fires: map[string]int{}, wakes: map[string]int{}}
	for _, s := range samples {
		switch job := s.Labels["job"]; s.Name {
		case "solotick_fires_total":
			c.fires[job] += int(s.Value)
			c.wakes[job] += int(s.Value)
		case "solotick_skips_total":
			c.wakes[job] += int(s.Value)
		}
	}
	return c, err
}

// reading is one look at all replicas, at a moment when nothing began.
type reading struct {
	at   time.Time
	of   []counters
	seen []rig.Request
}

// look reads all replicas between two ticks, so that none is on its way from a counter to the app. It tries for some
// seconds to find such a moment.
func look(app *rig.App, replicas []*rig.Replica) (reading, error) {
	for range 8 {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1600 * time.Millisecond)))
		l := reading{at: time.Now(), seen: app.Seen()}
		for _, r := range replicas {
			c, err := read(r)
			if err != nil {
				return l, err
			}
			l.of = append(l.of, c)
		}
		if app.Count() == len(l.seen) {
			return l, nil
		}
	}
	return reading{}, fmt.Errorf("reading the counters: in 8 s there was no moment at which nothing began")
}

// miscounted lists where a replica's count of fires is not what the app got from it.
func miscounted(l reading, jobs []job, replicas []*rig.Replica) []string {
	var wrong []string
	for i, r := range replicas {
		got := map[string]int{}
		for _, s := range l.seen {
			if s.Replica == r.Name {
				got[s.Job]++
			}
		}
		for _, j := range jobs {
			if n := l.of[i].fires[j.name]; n != got[j.name] {
				wrong = append(wrong, fmt.Sprintf("%s counts %d fires of %s, the app got %d", r.Name, n, j.name, got[j.name]))
			}
		}
	}
	return wrong
}

// uncounted compares each replica's wakes between two readings with the ticks that its clock saw in between. The wakes
// under way at either reading make up to slack of a difference. It returns the differences beyond that, the worst first.
// clockOff is by how much each replica's ticks come early.
func uncounted(a, b reading, jobs []job, replicas []*rig.Replica, clockOff []time.Duration, slack func(job) int) []string {
	type difference struct {
		text string
		n    int
	}
	var all []difference
	for i, r := range replicas {
		for _, j := range jobs {
			ticks := len(j.ticks(a.at.Add(clockOff[i]), b.at.Add(clockOff[i])))
			wakes := b.of[i].wakes[j.name] - a.of[i].wakes[j.name]
			if n := max(wakes-ticks, ticks-wakes); n > slack(j) {
				all = append(all, difference{fmt.Sprintf("%s counts %d wakes of %s over %d ticks", r.Name, wakes, j.name, ticks), n})
			}
		}
	}
	slices.SortFunc(all, func(x, y difference) int { return y.n - x.n })
	var texts []string
	for _, d := range all {
		texts = append(texts, d.text)
	}
	return texts
}
