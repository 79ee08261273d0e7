package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// scanned is about how many keys Redis looks at for one step of a scan. Other clients wait for that long.
const scanned = 1000

// eachKeys calls what for the service's keys with a prefix, some at a time. In a Cluster it scans the master of their
// slot, and no other server. It sees every key that is there all the time, and can see one of them several times.
func (s *Store) eachKeys(ctx context.Context, prefix string, what func(keys []string) error) error {
	return s.eachStep(ctx, func(ctx context.Context, rdb redis.UniversalClient, cursor uint64) *redis.ScanCmd {
		return rdb.Scan(ctx, cursor, prefix+"*", scanned)
	}, func(keys []string) error {
		// The match is a pattern; what is removed must really begin so.
		keys = slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
		if len(keys) == 0 {
			return nil
		}
		return what(keys)
	})
}

// eachStep calls what for each part of the answer to a scan.
func (s *Store) eachStep(ctx context.Context, step func(context.Context, redis.UniversalClient, uint64) *redis.ScanCmd,
	what func(found []string) error) error {
	for cursor := uint64(0); ; {
		found, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (page []string, err error) {
			page, cursor, err = step(ctx, rdb, cursor).Result()
			return page, err
		})
		if err == nil {
			err = what(found)
		}
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// CountKeys returns how many keys the service has in Redis.
func (s *Store) CountKeys(ctx context.Context) (int, error) {
	seen := map[string]bool{}
	err := s.eachKeys(ctx, s.redis.Keys.Prefix, func(keys []string) error {
		for _, k := range keys {
			seen[k] = true
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("counting the keys of the service: %w", err)
	}
	return len(seen), nil
}

// Purge removes all keys of the service from Redis, and returns how many it has removed. If it fails, some of them may
// be gone. A key that is written meanwhile may stay.
func (s *Store) Purge(ctx context.Context) (int, error) {
	removed := 0
	err := s.eachKeys(ctx, s.redis.Keys.Prefix, func(keys []string) error {
		n, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (int64, error) {
			return rdb.Unlink(ctx, keys...).Result()
		})
		removed += int(n)
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("removing the keys of the service: %w", err)
	}
	return removed, nil
}

// Purgeable returns how many keys of the service Purge would remove. Unless forced, it refuses while a replica of the
// service lives: the replica would lose its locks and claims in the middle of its runs.
func (o *Operator) Purgeable(ctx context.Context, force bool) (int, error) {
	// Even if nothing depends on it, this request names a key: in a Cluster, a server that has lost the slot refuses
	// it, and a scan there would find nothing.
	replicas, err := o.Store.Heartbeats(ctx)
	if err != nil {
		return 0, RefusalOf(err)
	}
	now, err := o.Now()
	if err != nil {
		return 0, err
	}
	if names := alive(replicas, now); len(names) > 0 && !force {
		return 0, refuse(Alive, "a purge would take the locks and claims of live replicas of the service: %s",
			strings.Join(names, ", ")).of(names[0])
	}
	n, err := o.Store.CountKeys(ctx)
	if err != nil {
		err = RefusalOf(err)
	}
	return n, err
}

// Purge removes all keys of the service, after Purgeable. It returns how many it has removed, and how many are there
// afterwards, because a replica has written them meanwhile.
func (o *Operator) Purge(ctx context.Context) (removed, left int, err error) {
	if removed, err = o.Store.Purge(ctx); err == nil {
		left, err = o.Store.CountKeys(ctx)
	}
	if err != nil {
		err = RefusalOf(err)
	}
	return removed, left, err
}

// alive returns the names of the replicas whose heartbeat is new.
func alive(replicas []Replica, now time.Time) (names []string) {
	for _, r := range replicas {
		if now.Sub(r.Seen) <= HeartbeatTimeout {
			names = append(names, r.Name)
		}
	}
	return names
}
