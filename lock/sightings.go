package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// Watchers that are restarted every few seconds never see a lease unchanged for a whole ttl. So they tell each other,
// in a hash beside the set of runs, for how long they have seen a lease as it is. All of these times are of the
// watchers' own clocks. One that begins with what another one told knows that the lease has been the same for at least
// that long: it was the same at the beginning of the other's observation, and it is the same now.

// overdue is how much later than a third of its ttl a lease must be renewed before watchers tell of it. Redis' clock
// says how late it is, since a new watcher cannot; it decides nothing else.
const overdue = 2 * time.Second

// seenFor is how long Redis keeps what watchers told last.
const seenFor = time.Hour

// Learn reads what other watchers have told about runs that a Look saw. Call it before Unchanged. It asks Redis only
// until it has had an answer: of a run that comes later, this watcher sees as much as any other.
func (w *Watcher) Learn(ctx context.Context, runs []Running) error {
	if w.learned {
		return nil
	}
	if len(runs) > 0 {
		args := []any{"hmget", w.store.redis.Keys.Seen}
		for _, r := range runs {
			args = append(args, r.Run)
		}
		reply, err := w.store.redis.Do(ctx, args...)
		if err != nil {
			return fmt.Errorf("reading what other watchers have seen: %w", err)
		}
		told, _ := reply.([]any)
		if len(told) != len(runs) {
			return fmt.Errorf("reading what other watchers have seen: %w", rds.Unexpected(reply))
		}
		now := w.store.redis.Boottime()
		for i, r := range runs {
			text, _ := told[i].(string)
			w.learn(r, text, now)
		}
	}
	w.learned = true
	return nil
}

// learn takes over what another watcher told of a run: a lease end, and the milliseconds for which it was the same. The
// lease may have been renewed since the Look. Then the takeover finds another lease end.
func (w *Watcher) learn(r Running, text string, now time.Duration) {
	leaseEnd, ms, _ := strings.Cut(text, " ")
	end, err := strconv.ParseInt(leaseEnd, 10, 64)
	length, err2 := strconv.ParseUint(ms, 10, 32)
	if err != nil || err2 != nil {
		return
	}
	w.told[r.Run] = end
	s := sighting{leaseEnd: end, since: now - time.Duration(length)*time.Millisecond}
	if own, ok := w.seen[r.Run]; end == r.leaseEnd && (!ok || own.leaseEnd != end || s.since < own.since) {
		w.seen[r.Run] = s
	}
}

// Tell tells other watchers for how long this one has seen leases unchanged that are overdue, and takes back what does
// not hold any more. It gets the runs that Unchanged got. As long as all leases are renewed in time, it asks nothing of
// Redis.
func (w *Watcher) Tell(ctx context.Context, runs []Running, ttl func(job string) time.Duration) error {
	redis := w.store.redis
	now, ok := redis.Now()
	if !ok {
		return nil
	}
	news, kept := []any{"hset", redis.Keys.Seen}, make(map[string]int64, len(w.told))
	for _, r := range runs {
		length := ttl(r.Job)
		if seen := w.unchangedFor(r); seen > 0 && now.Sub(r.Renewed(length)) > length/3+overdue {
			news = append(news, r.Run, fmt.Sprintf("%d %d", r.leaseEnd, seen.Milliseconds()))
			kept[r.Run] = r.leaseEnd
		} else if w.told[r.Run] == r.leaseEnd {
			kept[r.Run] = r.leaseEnd
		}
	}
	old := []any{"hdel", redis.Keys.Seen}
	for run := range w.told {
		if _, ok := kept[run]; !ok {
			old = append(old, run)
		}
	}
	w.told = kept
	for _, command := range [][]any{old, news, {"pexpire", redis.Keys.Seen, seenFor.Milliseconds()}} {
		if len(command) == 2 || command[0] == "pexpire" && len(news) == 2 {
			continue
		}
		if _, err := redis.Do(ctx, command...); err != nil {
			return fmt.Errorf("telling other watchers what was seen: %w", err)
		}
	}
	return nil
}
