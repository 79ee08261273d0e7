package view

import (
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func TestSilentReplicasAreNoDrift(t *testing.T) {
	l := &Look{Now: noon, Replicas: []lock.Replica{{Name: "a", Table: "one", Seen: noon}, {Name: "b", Table: "two", Seen: noon.Add(-lock.Silent)}}}
	if !l.Drift() {
		t.Error("two tables are no drift")
	}
	l.Replicas[1].Seen = noon.Add(-lock.Silent - time.Millisecond)
	if l.Drift() {
		t.Error("the one with the other table is silent")
	}
}

func TestTheNextTickIsOneThatNothingHoldsBack(t *testing.T) {
	hourly, err := schedule.Parse("0 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	for _, c := range []struct {
		why     string
		suspend bool
		paused  *lock.Pause
		want    time.Time
	}{
		{"nothing", false, nil, at(1)},
		{"suspended", true, nil, time.Time{}},
		{"paused without an end", false, &lock.Pause{}, time.Time{}},
		{"paused up to the very tick", false, &lock.Pause{Until: at(2)}, at(2)},
		{"paused beyond it", false, &lock.Pause{Until: at(2).Add(time.Millisecond)}, at(3)},
		{"both", true, &lock.Pause{Until: at(2)}, time.Time{}},
	} {
		l := &Look{Now: noon, States: map[string]lock.JobState{"job": {Paused: c.paused}}}
		if got := l.Next(config.Job{Name: "job", Schedule: hourly, Suspend: c.suspend}); !got.Equal(c.want) {
			t.Errorf("%s: next is %s, want %s", c.why, got, c.want)
		}
	}
}

func TestSkipsAreTheNewestFirst(t *testing.T) {
	skip := func(at time.Time) map[string]lock.Skip { return map[string]lock.Skip{"job": {At: at}} }
	l := &Look{Replicas: []lock.Replica{{Name: "a", Skips: skip(noon)}, {Name: "b", Skips: skip(noon.Add(1))}, {Name: "c", Skips: skip(noon)}, {Name: "d"}}}
	var names []string
	for _, k := range l.Skips("job") {
		names = append(names, k.Replica)
	}
	if want := []string{"b", "a", "c"}; !slices.Equal(names, want) {
		t.Errorf("skips of %v, want %v", names, want)
	}
}
