package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// scanned is about how many keys Redis looks at for one step of a scan. Other clients wait for that long.
const scanned = 1000

// eachKeys calls what for the keys of the service, some at a time. In a Cluster it scans the master of their slot, and
// no other server. It sees every key that is there all the time, and can see one of them several times.
func (s *Store) eachKeys(ctx context.Context, what func(keys []any) error) error {
	prefix := s.redis.Keys.Prefix
	for cursor := "0"; ; {
		reply, err := s.redis.Do(ctx, "scan", cursor, "match", prefix+"*", "count", scanned)
		if err != nil {
			return err
		}
		parts, ok := reply.([]any)
		if !ok || len(parts) != 2 {
			return rds.Unexpected(reply)
		}
		found, isList := parts[1].([]any)
		next, isText := parts[0].(string)
		if !isList || !isText {
			return rds.Unexpected(reply)
		}
		var own []any
		for _, k := range found {
			// The match is a pattern; what is removed must really begin so.
			if key, ok := k.(string); ok && strings.HasPrefix(key, prefix) {
				own = append(own, key)
			}
		}
		if len(own) > 0 {
			if err := what(own); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "0" {
			return nil
		}
	}
}

// CountKeys returns how many keys the service has in Redis.
func (s *Store) CountKeys(ctx context.Context) (int, error) {
	seen := map[any]bool{}
	err := s.eachKeys(ctx, func(keys []any) error {
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
	err := s.eachKeys(ctx, func(keys []any) error {
		reply, err := s.redis.Do(ctx, append([]any{"unlink"}, keys...)...)
		if err != nil {
			return err
		}
		n, err := rds.Integer(reply)
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
		return 0, RefusalOf(err)
	}
	return n, nil
}

// Purge removes all keys of the service, after Purgeable. It returns how many it has removed, and how many are there
// afterwards, because a replica has written them meanwhile.
func (o *Operator) Purge(ctx context.Context) (removed, left int, err error) {
	if removed, err = o.Store.Purge(ctx); err == nil {
		left, err = o.Store.CountKeys(ctx)
	}
	if err != nil {
		return removed, left, RefusalOf(err)
	}
	return removed, left, nil
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
