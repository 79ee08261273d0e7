package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/solotick/solotick/internal/rds"
)

// CheckServer says what is wrong with the Redis that answers at this moment, in words for a log. It looks at its role,
// its behaviour when its memory is full, its version, its snapshots, and whether it has the replicas that
// Options.WaitReplicas asks for. None of these faults keeps a Store from working, and each of them can cost locks or
// claims. CheckServer does not judge what the server leaves out of its INFO, as a proxy or the embedded store does.
//
// A Redis can change under a client that only reconnects, so callers should ask again at each reconnect. If Redis does
// not answer or forbids INFO, the error says nothing about its fitness.
func (s *Store) CheckServer(ctx context.Context) ([]string, error) {
	info, err := s.info(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking Redis what it is: %w", err)
	}
	return unfit(info, s.redis.WaitReplicas()), nil
}

// info reads the lines `name:value` of an INFO.
func (s *Store) info(ctx context.Context) (map[string]string, error) {
	reply, err := s.redis.Do(ctx, "info")
	if err != nil {
		return nil, err
	}
	text, ok := reply.(string)
	if !ok {
		return nil, rds.Unexpected(reply)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// oldest is the first Redis version with all that the package needs. Valkey calls itself a Redis 7.2.4.
const oldest = "6.2"

func unfit(info map[string]string, replicas int) []string {
	var problems []string
	found := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if role, ok := info["role"]; ok && role != "master" {
		found("its role is %s, and only a master takes claims: name that, or its Sentinels", role)
	}
	if policy, ok := info["maxmemory_policy"]; ok && policy != "noeviction" {
		found("its maxmemory-policy is %s and can evict locks and claims: set it to noeviction", policy)
	}
	if version, ok := info["redis_version"]; ok && older(version, oldest) {
		found("its version is %s: at least %s is needed", version, oldest)
	}
	if n, err := strconv.Atoi(info["connected_slaves"]); err == nil && n < replicas {
		found("it has %d of the %d replicas that must confirm a claim: nothing is fired", n, replicas)
	}
	if snapshotsAlone(info) {
		found("it keeps snapshots without a log of changes, so %s: set appendonly to yes", forgetsClaims)
	}
	return problems
}

const forgetsClaims = "after a restart it has forgotten the claims since the last snapshot, " +
	"and their ticks can be fired twice"

// snapshotsAlone reports whether Redis has written a snapshot, or began with one, and keeps no log of changes. Redis
// tells of snapshots since 7.0.
func snapshotsAlone(info map[string]string) bool {
	return info["aof_enabled"] == "0" && rds.Number(info["rdb_saves"])+rds.Number(info["rdb_last_load_keys_loaded"]) > 0
}

// older compares the first two numbers of versions. A version that is not written in numbers is not older.
func older(version, than string) bool {
	var have, want [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &have[0], &have[1]); n != 2 {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d", &want[0], &want[1]) // a constant
	return have[0] < want[0] || have[0] == want[0] && have[1] < want[1]
}
