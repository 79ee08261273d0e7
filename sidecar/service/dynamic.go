package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

const (
	// MaxJobs bounds how many dynamic jobs a service may have.
	MaxJobs = 1000
	// MaxJobSources bounds what their sources have together, in bytes, as a table's size is bounded: every replica
	// keeps them in memory, and reads all of them after each change.
	MaxJobSources = 1 << 20
)

// SetJob keeps a job that all replicas can read, and nudges them (see Listen). The name is one word without an @ or a
// colon. The source is opaque here and has MaxSource bytes at most. created tells that there was no job of that name.
// With the same source nothing changes.
//
// If a reply is lost, SetJob asks again until ctx ends. The error wraps ErrTooMany (of MaxJobs or MaxJobSources) or
// ErrNoAnswer. After ErrNoAnswer the job may be set or not, and no copy of this request will set it later.
func (s *Store) SetJob(ctx context.Context, name string, source []byte) (created bool, err error) {
	if err = jobName(name); err == nil && len(source) > MaxSource {
		err = errTooLarge
	}
	_, n, err := s.changeJob(ctx, "set", name, err, source, MaxJobs, MaxJobSources)
	return n == 1, err
}

// DeleteJob deletes a job; false if there is none of that name. Redis keeps its ledger for a week. If the
// job is set again, it fires no tick twice. The errors are those of SetJob.
func (s *Store) DeleteJob(ctx context.Context, name string) (bool, error) {
	code, _, err := s.changeJob(ctx, "delete", name, jobName(name))
	return code == "DELETED", err
}

// revision is the field of the dynamic jobs that counts their changes. No job has such a name.
const revision = "@revision"

// changeJob sets or deletes a job. bad is why it may not; nil = it may.
func (s *Store) changeJob(ctx context.Context, verb, name string, bad error,
	more ...any) (code string, n int64, err error) {
	copied := func(request string, _ int, until int64) ([]string, []any) {
		what := map[string]string{"set": "apply", "delete": "rm"}[verb]
		k := s.redis.Keys
		args := append([]any{verb, name, until, k.Events}, more...)
		return []string{k.Jobs, k.Memo(request), k.Acts}, append(args, s.act(actText{What: what, Job: name}))
	}
	return s.change(ctx, dynamicScript, verb, fmt.Sprintf("job %q", name), bad, copied)
}

// DynamicJobs returns the sources of all jobs that are kept, by name, with their revision. While Look returns the same
// revision, the jobs are the same. The revision grows with each change. It is 0 if there never was a job or Redis lost
// its data. More than a service may have are ErrTooMany, and rev is theirs.
func (s *Store) DynamicJobs(ctx context.Context) (rev int64, sources map[string][]byte, err error) {
	fields, err := s.hash(ctx, s.redis.Keys.Jobs, MaxJobs, MaxJobSources)
	if err != nil {
		return rds.Number(fields[revision]), nil, fmt.Errorf("reading the dynamic jobs: %w", err)
	}
	sources = make(map[string][]byte, len(fields))
	for name, source := range fields {
		if !strings.HasPrefix(name, "@") {
			sources[name] = []byte(source)
		}
	}
	return rds.Number(fields[revision]), sources, nil
}

// hash reads a hash as a whole. If it has more fields or bytes than a service may have, it returns ErrTooMany with
// them: another client wrote them, and what they would be parsed to could fill the memory.
func (s *Store) hash(ctx context.Context, key string, most, bytes int) (map[string]string, error) {
	fields, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (map[string]string, error) {
		return rdb.HGetAll(ctx, key).Result()
	})
	if err != nil {
		return nil, err // what came before a bound was met is no part of an answer
	}
	n, size := 0, 0
	for name, value := range fields {
		if name != revision {
			n, size = n+1, size+len(value)
		}
	}
	if n > most || size > bytes {
		err = fmt.Errorf("%w: %d of %d bytes, and a service may have %d of %d bytes", ErrTooMany, n, size, most, bytes)
	}
	return fields, err
}

// jobName refuses names that could be those of the other fields of the hash, or of timers.
func jobName(name string) error {
	if strings.ContainsAny(name, "@:") {
		return fmt.Errorf("name %q has a : or an @", name)
	}
	return rds.OneWord("name", name)
}
