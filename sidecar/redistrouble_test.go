package sidecar

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// count counts the lines of a replica's log that have all the words.
func (r *replica) count(words ...string) int {
	n := 0
line:
	for l := range strings.Lines(r.logs.String()) {
		for _, w := range words {
			if !strings.Contains(l, w) {
				continue line
			}
		}
		n++
	}
	return n
}

func TestARedisThatRefusesIsToldInItsOwnWordsAtOnceAndEachMinute(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.redis.RequireAuth("hunter2")
		began := time.Now()
		r := w.replica(time.Second)
		time.Sleep(time.Until(began.Add(3*time.Minute + 30*time.Second)))
		n := r.count("level=ERROR", `msg="Redis asks for a password"`, "redis=redis:6379", `err="NOAUTH `, "hint=", "redis.passwordFile")
		if n != 4 {
			t.Errorf("it was told %d times in three minutes and a half, want 4\n%s", n, r.logs)
		}
		if r.count("does not answer") != 0 || r.count("taking ticks") != 0 || r.count(`msg="waiting for Redis"`) != 1 {
			t.Errorf("a Redis that asks for a password does answer, and no tick is taken:\n%s", r.logs)
		}
		w.redis.RequireAuth("")
		time.Sleep(2 * time.Second)
		if r.count(`msg="Redis answers"`) != 1 || r.count(`msg="taking ticks"`, "replica=r1", "jobs=1") != 1 {
			t.Errorf("it answers now:\n%s", r.logs)
		}
		time.Sleep(10 * time.Minute)
		if r.count(`msg="waiting for Redis"`) != 1 || r.count(`msg="taking ticks"`) != 1 || r.count("Redis asks") != 4 {
			t.Errorf("it goes on:\n%s", r.logs)
		}
		r.disconnect(true)
		time.Sleep(90 * time.Second)
		if n := r.count(`msg="Redis does not answer"`); n != 2 {
			t.Errorf("that it has gone was told %d times in 90 s, want 2\n%s", n, r.logs)
		}
		w.redis.RequireAuth("hunter2") // another trouble is told without waiting for the minute
		r.disconnect(false)
		time.Sleep(5 * time.Second)
		if n := r.count("Redis asks for a password"); n != 5 {
			t.Errorf("another trouble was told %d times\n%s", n-4, r.logs)
		}
		w.redis.RequireAuth("")
		time.Sleep(5 * time.Second)
	})
}

// TestARedisThatAnswersAndTakesNoJobsIsToldInItsOwnWords: Redis answers reads, but no tick can be claimed.
func TestARedisThatAnswersAndTakesNoJobsIsToldInItsOwnWords(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		var refuses atomic.Bool
		refuses.Store(true)
		c, err := w.redis.Dial() // makes the server
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		w.redis.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
			if refuses.Load() && strings.HasPrefix(strings.ToUpper(command), "EVAL") {
				p.WriteError("READONLY You can't write against a read only replica.")
				return true
			}
			return false
		})
		began := time.Now()
		r := w.replica(time.Second)
		time.Sleep(time.Until(began.Add(3*time.Minute + 30*time.Second)))
		if n := r.count("level=ERROR", `msg="Redis is a replica, which takes no claims"`, "job=", "redis=redis:6379",
			`err="READONLY `, "hint="); n != 4 {
			t.Errorf("it was told %d times in three minutes and a half, want 4\n%s", n, r.logs)
		}
		if r.count("taking ticks") != 0 || r.count(`msg="waiting for Redis"`) != 1 || r.count("not known to Redis") != 0 {
			t.Errorf("no tick is taken:\n%s", r.logs)
		}
		refuses.Store(false)
		time.Sleep(2 * time.Second)
		if r.count(`msg="Redis takes the jobs"`) != 1 || r.count(`msg="taking ticks"`, "replica=r1", "jobs=1") != 1 {
			t.Errorf("it takes them now:\n%s", r.logs)
		}
		time.Sleep(2 * time.Minute)
		if r.count(`msg="Redis takes the jobs"`) != 1 || r.count("Redis is a replica") != 4 || r.count("msg=finished") != 2 {
			t.Errorf("it goes on:\n%s", r.logs)
		}
	})
}

// Versions before the first release had one history for all jobs.
func TestTheKeysOfAVersionBeforeTheFirstAreNotTaken(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		if _, err := w.redis.XAdd("solotick:{test}:runs", "*", []string{"run", "{}"}); err != nil {
			t.Fatal(err)
		}
		r := w.replica(time.Second)
		w.at(90 * time.Second)
		if r.count("level=ERROR", `msg="Redis holds keys of a version before 0.1.0"`, "solotick:{test}:runs", "hint=") == 0 ||
			r.count("taking ticks")+len(w.started("minute")) != 0 {
			t.Errorf("beside old keys:\n%s", r.logs)
		}
		w.redis.Del("solotick:{test}:runs")
		w.at(150 * time.Second)
		if r.count("taking ticks") != 1 || len(w.started("minute")) != 1 {
			t.Errorf("when they are gone:\n%s", r.logs)
		}
	})
}

// TestARedisThatAnswersAndRefusesWritesIsOfNoUse: it takes the looks, and none of what a tick needs.
func TestARedisThatAnswersAndRefusesWritesIsOfNoUse(t *testing.T) {
	for refusal, says := range map[string]string{
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.": "refuses writes, since it could not save its data",
		"OOM command not allowed when used memory > 'maxmemory'.":                                          "refuses writes, since its memory is full",
		"NOREPLICAS Not enough good replicas to write.":                                                    "refuses writes, since too few replicas have its data",
		"READONLY You can't write against a read only replica.":                                            "is a replica, which takes no claims",
		"NOPERM this user has no permissions to run the 'hset' command":                                    "forbids its user a command or a key",
	} {
		simulate(t, minutely, func(w *world) {
			r := w.replica(time.Second)
			w.at(-30 * time.Second)
			var refuses atomic.Bool
			refuses.Store(true)
			w.redis.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
				if c := strings.ToUpper(command); refuses.Load() && (strings.HasPrefix(c, "EVAL") || c == "HSET" || c == "HDEL") {
					p.WriteError(refusal)
					return true
				}
				return false
			})
			w.at(-20 * time.Second)
			if r.value("redis_up") != 0 || r.count("level=ERROR", `msg="Redis `+says+`"`) != 1 || r.RedisTrouble() == nil {
				t.Errorf("%s: redis_up is %v, and it is told so: %s", refusal, r.value("redis_up"), r.logs)
			}
			w.at(45 * time.Second)
			if r.count(`msg="Redis `+says+`"`) != 2 || r.count("Redis answers")+r.count("Redis takes the jobs") != 0 {
				t.Errorf("%s: a minute later it is told so: %s", refusal, r.logs)
			}
			refuses.Store(false)
			w.at(55 * time.Second)
			if r.value("redis_up") != 1 || r.count("Redis answers") != 1 || r.RedisTrouble() != nil {
				t.Errorf("%s: redis_up is %v afterwards: %s", refusal, r.value("redis_up"), r.logs)
			}
			if n := len(w.started("minute")[w.origin()]); n != 1 {
				t.Errorf("%s: the tick of that time was started %d times", refusal, n)
			}
		})
	}
}
