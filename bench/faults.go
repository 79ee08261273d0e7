package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// fault is one thing that goes wrong while replicas are at work.
type fault struct {
	key, name, about string
	skews            []time.Duration
	redis            []string      // arguments of the server
	copied           bool          // Redis has a replica, and the contender's replicas reach it through a proxy
	length           time.Duration // in which ticks count
	jobs             func(*rig.App) []job
	strike           func(*trial) error
	without          map[string]string // contenders that are not run, and why
	// doubled, lost and early are how many of each Solotick may have; nil is no judgement. They bind the apps that ask
	// it, too. Where something strikes, these may lose any number: a tick for which no app can ask is not run later.
	doubled, lost, early *int
}

func atMost(n int) *int { return &n }

// Faults run in groups: what is in one group runs at the same time, each contender with its own Redis. Where
// milliseconds decide, a fault is alone.
var faultGroups = [][]fault{
	{{key: "calm", name: "none", about: "nothing goes wrong", length: 16 * time.Second,
		doubled: atMost(0), lost: atMost(0), early: atMost(0)}},
	{{key: "skew50", name: "clocks 50 ms apart", about: "the replicas' clocks are off by 0, +50 ms and −50 ms",
		length: 16 * time.Second, skews: []time.Duration{0, 50 * time.Millisecond, -50 * time.Millisecond},
		doubled: atMost(0), lost: atMost(0), early: atMost(0)}},
	{
		{key: "skew2500", name: "clocks 2.5 s apart", about: "the replicas' clocks are off by 0, +2.5 s and −2.5 s",
			length: 16 * time.Second, skews: []time.Duration{0, 2500 * time.Millisecond, -2500 * time.Millisecond},
			doubled: atMost(0), lost: atMost(0), early: atMost(0)},
		{key: "sigkill", name: "SIGKILL of the holder",
			about:  "each 6 s, the replica that runs the long job is killed, and started again after half a second",
			length: 30 * time.Second, strike: killHolders(6 * time.Second), doubled: atMost(0), early: atMost(0)},
		{key: "sigstop", name: "SIGSTOP for 20 s",
			about:  "the replica that runs the long job is stopped for longer than its lease (15 s), then goes on",
			length: 30 * time.Second, strike: stopHolder, doubled: atMost(0), early: atMost(0)},
		{key: "stall", name: "Redis stalled", about: "Redis is stopped for 3 s, twice", length: 24 * time.Second,
			strike: stallRedis, doubled: atMost(0), early: atMost(0)},
	},
	{
		{key: "crash", name: "Redis killed",
			about:  "Redis, with an append-only file and everysec, is killed and is back after a second, twice",
			length: 24 * time.Second, redis: []string{"--appendonly", "yes", "--appendfsync", "everysec"},
			strike: crashRedis, doubled: atMost(0), early: atMost(0)},
		{key: "empty", name: "Redis emptied", about: "FLUSHALL while the long job runs, twice",
			length: 24 * time.Second, strike: emptyRedis, doubled: atMost(0), early: atMost(0)},
		{key: "failover", name: "failover",
			about:  "the master is killed; a replica that is up to date takes its place after a second",
			length: 20 * time.Second, copied: true, redis: []string{"--repl-diskless-sync-delay", "0"},
			strike: failover(0), doubled: atMost(0), early: atMost(0)},
		{key: "behind", name: "failover to a replica that is behind",
			about:  "the same, and the replica lacks the last 1.5 s of the master; waitReplicas is 0",
			length: 20 * time.Second, copied: true, redis: []string{"--repl-diskless-sync-delay", "0"},
			strike: failover(1500 * time.Millisecond)},
		{key: "restarts", name: "holder killed each 3 s",
			about: "one job each second, of half a second; its replica is killed in it each 3 s, " +
				"and started again after half a second",
			length: 60 * time.Second, jobs: secondly, strike: killHolders(3 * time.Second),
			doubled: atMost(0), lost: atMost(6), early: atMost(0),
			without: map[string]string{"held": "a lock held for a second loses every other tick of this job",
				"setnx": "a delay of a second loses every other tick of this job"}},
	},
}

const (
	shortJobs = 8
	shortTake = 20 * time.Millisecond
	longTake  = 6 * time.Second
	longJob   = "long"
	settled   = 6 * time.Second // for processes to start
	tail      = 5 * time.Second // in which late requests still count
)

// mixed are short jobs every two seconds, whose ticks are counted, and a long one every four seconds, which runs for
// six: it is there to be at work when a fault strikes, and to overlap with itself. A tick that it skips is not lost.
func mixed(app *rig.App) []job {
	jobs := []job{{Name: longJob, Every: 4, URL: app.URL(longJob, longTake), Missed: "all"}}
	for i := range shortJobs {
		name := fmt.Sprintf("job-%d", i)
		jobs = append(jobs, job{Name: name, Every: 2, URL: app.URL(name, shortTake), Missed: "all"})
	}
	return jobs
}

func secondly(app *rig.App) []job {
	return []job{{Name: "job-0", Every: 1, URL: app.URL("job-0", 500*time.Millisecond)}}
}

// faults runs all contenders under all faults. Schedulers that people keep come after the others, one fault at a time:
// they have many processes, and cron starts more at each tick.
func (b *bench) faults() (part, error) {
	var p part
	for _, side := range []struct {
		of     []contender
		atOnce int // faults
	}{{contenders, len(allFaults())}, {kept, 1}} {
		lacks := map[string]string{}
		for _, c := range side.of {
			if c.missing != nil {
				lacks[c.key] = c.missing(b)
			}
		}
		for _, group := range faultGroups {
			if len(b.only) > 0 {
				group = slices.DeleteFunc(slices.Clone(group), func(f fault) bool {
					return !slices.Contains(b.only, f.key)
				})
			}
			for some := range slices.Chunk(group, side.atOnce) {
				outcomes, err := b.strikeAll(some, side.of, lacks)
				if err != nil {
					return p, err
				}
				p.Faults = append(p.Faults, outcomes...)
			}
		}
	}
	return p, nil
}
