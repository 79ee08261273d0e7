package service

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// checkGroup refuses a group of which no timer can be.
func checkGroup(group string) error {
	if config.IsTimerID(group) {
		return nil
	}
	return refuse(Invalid, "%q is no group: the ids of its timers begin with it and a dot", group).hint("as user-4711")
}

// eachOfGroup calls what for the due members of the timers of a group and of their times, some at a time. A member that
// is there all the time comes at least once, and can come again.
//
// A timer with a schedule that moves on during the scan may do so to where the scan has been. So those whose times come
// within a minute, longer than a scan takes, are seen before it.
func (s *Store) eachOfGroup(ctx context.Context, group string, what func([]lock.Due) error) error {
	prefix := TimerJob(group + ".")
	ofOthers := func(d lock.Due) bool { return !strings.HasPrefix(d.Job, prefix) }
	now, err := s.redis.Time(ctx)
	if err == nil {
		err = s.eachByTime(ctx, func(members []lock.Due) (more bool, err error) {
			more = len(members) > 0 && members[len(members)-1].Tick.Before(now.Add(time.Minute))
			return more, what(slices.DeleteFunc(members, ofOthers))
		})
	}
	if err != nil {
		return err
	}
	return s.eachStep(ctx, func(ctx context.Context, rdb redis.UniversalClient, cursor uint64) *redis.ScanCmd {
		return rdb.ZScan(ctx, s.redis.Keys.DueTimers, cursor, "* "+prefix+"*", scanned)
	}, func(found []string) error { // each member with its score behind it, which is no member
		return what(slices.DeleteFunc(dueTimers(found), ofOthers))
	})
}

// GroupTimers is Timers for those of a group, whose ids begin with its name and a dot. It reads all due members.
func (s *Store) GroupTimers(ctx context.Context, group string, limit int) (found []TimerState, err error) {
	err = s.eachOfGroup(ctx, group, func(members []lock.Due) (err error) {
		if limit > 0 && len(found) == limit { // later ones are not needed
			members = slices.DeleteFunc(members, func(d lock.Due) bool { return d.Tick.After(found[limit-1].At) })
		}
		found, err = s.addWaiting(ctx, found, members, math.MaxInt)
		sort.Slice(found, func(i, j int) bool {
			return cmp.Or(found[i].At.Compare(found[j].At), cmp.Compare(found[i].ID, found[j].ID)) < 0
		})
		found = found[:min(len(found), max(limit, 0))]
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the timers of a group: %w", err)
	}
	return found, nil
}

// DeleteTimers takes back the timers of a group that wait, side by side, and returns how many, also with an error: then
// others may wait. One that is set meanwhile may stay.
func (o *Operator) DeleteTimers(ctx context.Context, group string) (deleted int, err error) {
	if err := checkGroup(group); err != nil {
		return 0, err
	}
	err = o.Store.eachOfGroup(ctx, group, func(members []lock.Due) error {
		n, err := o.deleteAll(ctx, members)
		deleted += n
		return err
	})
	switch {
	case err == nil:
	case deleted > 0, ctx.Err() != nil:
		err = refuse(Unanswered, "%d timers of group %q are deleted, and others may wait: %v", deleted, group, err).
			hint("ask again: it goes on")
	default:
		err = RefusalOf(err)
	}
	return deleted, err
}

// deleteAll deletes the timers with these due members, or what is left of them: a time of a schedule that has ended.
func (o *Operator) deleteAll(ctx context.Context, members []lock.Due) (deleted int, err error) {
	ids := map[string]string{} // of each timer, and of its time that is due
	for _, d := range members {
		if id := TimerID(SeriesJob(d.Job)); ids[id] == "" || rds.IsOccurrence(d.Job) {
			ids[id] = TimerID(d.Job)
		}
	}
	var all sync.WaitGroup
	var one sync.Mutex
	for id, due := range ids {
		all.Go(func() {
			ok, bad := ask(ctx, o, func(ctx context.Context) (bool, error) {
				ok, err := o.Store.DeleteTimer(ctx, id)
				if err == nil && !ok && due != id {
					ok, err = o.Store.DeleteTimer(ctx, due)
				}
				return ok, err
			})
			one.Lock()
			defer one.Unlock()
			if err = cmp.Or(err, bad); ok {
				deleted++
			}
		})
	}
	all.Wait()
	return deleted, err
}
