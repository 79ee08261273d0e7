//go:build !race

// Replays are run without the race detector (see the Makefile), like the mutants: one goroutine asks, and Redis
// answers.

package lock

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/model"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/results"
)

var (
	replays    = flag.Uint64("replays", 2000, "traces of the model to replay")
	replayFrom = flag.Uint64("replay.from", 0, "seed of the first trace")
)

// replayWorld is a world in which everything may happen that is modelled. It is much larger than those that are
// searched.
func replayWorld(seed uint64) model.Scenario {
	rng := rand.New(rand.NewPCG(seed, 1))
	policy := func() model.Policy { return model.Policy(rng.IntN(4)) }
	c := model.Scenario{Name: fmt.Sprint("replay ", seed), Replicas: 2 + rng.IntN(2), Ticks: 3 + rng.IntN(2), Policy: policy(), Healthy: -1,
		AtLeastOnce: rng.IntN(2) == 0, MissedAll: rng.IntN(3) == 0, Tolerance: rng.IntN(3) == 0, Skew: rng.IntN(3) == 0,
		OneSlot: rng.IntN(4) == 0, Drops: rng.IntN(4) == 0, Begin: uint8(rng.IntN(2)), RedisFault: model.RedisFault(rng.IntN(3))}
	switch rng.IntN(4) {
	case 0:
		c.Rollout, c.By = true, [3]model.Policy{policy(), policy(), policy()}
	case 1:
		c.Reload, c.After = uint8(2+rng.IntN(2)), policy()
	}
	for f := range c.Faults {
		c.Faults[f] = uint8(rng.IntN(3))
	}
	c.Faults[model.Extension] = 3
	for _, f := range []model.Fault{model.CancelAsked, model.RerunAsked} { // one request, whose memo Redis keeps
		c.Faults[f] = min(c.Faults[f], 1)
	}
	if rng.IntN(8) == 0 { // its apps ask for the ticks, and nothing is run late or again
		c.Asked, c.AtLeastOnce, c.MissedAll, c.Rollout, c.Reload = true, false, false, false, 0
		c.Policy %= 2 // Forbid or Allow
		c.Faults[model.Refusal], c.Faults[model.RerunAsked], c.Faults[model.AppGone] = 0, 0, 2
		c.Faults[model.Stall] = 2 // a run that is taken over before it is given up
	}
	c.Faults[model.Freeze] = 0 // the clock waits for a healthy replica alone, and none is
	switch c.RedisFault {
	case model.Failover:
		c.Faults[model.LateReap] = 0 // that it brings back a lease end which a watcher has seen is not modelled
	case model.Flush:
		c.AtLeastOnce = false // what it owes after a loss of data is not modelled
	case model.ClockJump:
		c.Tolerance = false // a step over a lease would pass the tick that is near
	}
	return c
}

// replayAll replays the traces of some worlds, until one shows that the model and the scripts differ.
func replayAll(t *testing.T, rdb redis.UniversalClient, s walkScripts, with model.Mend, from, n uint64) (met map[string]int, seed uint64, trace []string, err error) {
	t.Helper()
	load(t, rdb, s)
	met = map[string]int{}
	for seed = from; seed < from+n && err == nil; seed++ {
		trace, err = replayTrace(rdb, s, replayWorld(seed), with, seed, met)
	}
	return met, seed - 1, trace, err
}

func TestReplaysOfTheModelMeetTheSameAnswers(t *testing.T) {
	run := results.Of(t, fmt.Sprintf("go test ./lock -run %s -replay.from=%d -replays=%d", t.Name(), *replayFrom, *replays))
	met, seed, trace, err := replayAll(t, replayClient(t), realScripts(), model.AllMends, *replayFrom, *replays)
	if err != nil {
		t.Fatalf("%v\n%+v\n  %s\nagain: go test ./lock -run '%s' -replay.from=%d -replays=1", err, replayWorld(seed),
			strings.Join(trace, "\n  "), t.Name(), seed)
	}
	steps := 0
	for _, what := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%7d %s", met[what], what)
		steps += met[what]
	}
	run.Add(int(*replays), "traces")
	run.Add(steps, "steps")
	run.Details = met
	if *replays < 2000 {
		return
	}
	for _, what := range []string{
		"acquire EARLY", "acquire FIRED", "acquire FREE", "acquire GONE", "acquire HELD", "acquire LOCKED", "acquire LOST",
		"acquire OVERLAP", "acquire QUEUED", "acquire STALE", "acquire WON", "extend LOST", "extend OK", "extend REPLACED",
		"finish LOST", "finish OK", "requeue LOST", "requeue OK", "handover LOST", "handover OK", "give up LOST", "give up OK", "abandon LOST", "abandon OK",
		"reap OK", "reap MOVED", "watch", "drop OK", "extend CANCELLED", "cancel OK", "ask OK", "expire", "steal", "replicate", "fail over", "lose data", "step clock",
	} {
		if met[what] == 0 {
			t.Errorf("never %q: these replays show nothing of it", what)
		}
	}
}

// A model without one of its mends is another protocol, and so are scripts without one of their thoughts. Replays have
// to show it: else they tie nothing.
func TestReplaysShowAMutantOfTheModel(t *testing.T) {
	rdb := replayClient(t)
	// Without these a replica asks otherwise, or believes otherwise, and Redis answers what it did before.
	const ofReplicas = model.DueBypass | model.Look | model.Place | model.Sightings | model.Alone
	for mend := model.Mend(1); mend < model.AllMends; mend <<= 1 {
		if mend&ofReplicas != 0 {
			continue
		}
		_, seed, _, err := replayAll(t, rdb, realScripts(), model.AllMends&^mend, 0, 2000)
		if err == nil {
			t.Errorf("the model without %s: no replay shows it", mend)
		}
		t.Logf("the model without %s: trace %d: %.200q", mend, seed, fmt.Sprint(err))
	}
}

// shownMutants are some of the scripts' mutants. Replays show most of those that are about what the model has.
var shownMutants = []string{
	"acquire: asked again, another answer",
	"acquire: asked again, the thief's lock is taken",
	"acquire: a late copy has an effect",
	"acquire: the newest refused tick is not known",
	"acquire: a lingering lock is in the way",
	"acquire: what is due leaves room in the queue",
	"acquire: a list does not find room in the queue",
	"acquire: refused ticks were missed",
	"extend: a replaced run is told that it is cancelled",
	"extend: no compare",
	"settle: a late finish leaves the re-run due",
	"settle: late evidence is not believed",
	"settle: an overlap of a run that began later is counted",
	"settle: a tick is set free beside a run",
	"settle: a replaced run is run again",
	"settle: a cancelled run is run again",
	"settle: a cancelled run is handed on",
	"settle: a cancelled claim is given back",
	"settle: a cancelled run leaves evidence",
	"extend: a cancelled run is not told",
	"extend: a cancelled run loses its lease",
	"settle: a lease that moved is reaped",
	"settle: an overlap with a run that never was is counted",
	"settle: another run is settled",
	"cancel: what is over is cancelled",
	"ask: a request is not remembered",
	"acquire: a backfill fills the queue",
	"register: ticks claimed early are open",
}

func TestReplaysShowAMutantOfAScript(t *testing.T) {
	rdb := replayClient(t)
	for _, name := range shownMutants {
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.script+": "+m.what == name })
		if i < 0 {
			t.Errorf("%s: there is no such mutant", name)
			continue
		}
		broken := realScripts()
		target := broken.named(mutants[i].script)
		*target = rds.NewScript(strings.Replace((*target).Source, mutants[i].text, mutants[i].instead, 1), rds.Unconfirmed)
		_, seed, _, err := replayAll(t, rdb, broken, model.AllMends, 0, 2000)
		if err == nil {
			t.Errorf("%s: no replay shows it", name)
		}
		t.Logf("%s: trace %d: %.200q", name, seed, fmt.Sprint(err))
	}
}
