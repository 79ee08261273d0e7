package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/solotick/solotick/internal/rds"
)

const (
	// MaxJobs bounds how many dynamic jobs a service may have.
	MaxJobs = 1000
	// MaxJobSources bounds what their sources have together, in bytes: with every change each replica reads all of them, in
	// one round trip, for which half a second is a long time.
	MaxJobSources = 4 << 20
)

// SetJob keeps a job for all replicas to read, and nudges them (see Listen). The name is one word without an @; the
// source is opaque here and has MaxSource bytes at most. created tells that there was none of that name; with the same
// source nothing changes.
//
// A lost reply is asked for again until ctx ends. The error wraps ErrTooMany (of MaxJobs, or MaxJobSources), or ErrNoAnswer, after which the job may be set
// or not, and will not be by a copy of this request.
func (s *Store) SetJob(ctx context.Context, name string, source []byte) (created bool, err error) {
	err = jobName(name)
	if err == nil && len(source) > MaxSource {
		err = errTooLarge
	}
	var n int64
	if err == nil {
		_, n, err = s.changeJob(ctx, "set", name, source, MaxJobs, MaxJobSources)
	}
	if err != nil {
		return false, fmt.Errorf("setting job %q: %w", name, err)
	}
	return n == 1, nil
}

// DeleteJob takes a job away; false when there is none of that name. Its ledger is kept for as long as any: set again, it
// fires no tick twice. Errors are those of SetJob.
func (s *Store) DeleteJob(ctx context.Context, name string) (bool, error) {
	err := jobName(name)
	code := ""
	if err == nil {
		code, _, err = s.changeJob(ctx, "delete", name)
	}
	if err != nil {
		return false, fmt.Errorf("deleting job %q: %w", name, err)
	}
	return code == "DELETED", nil
}

// revision is the field of the dynamic jobs that counts their changes. No job has such a name.
const revision = "@revision"

func (s *Store) changeJob(ctx context.Context, verb, name string, more ...any) (code string, n int64, err error) {
	return s.change(ctx, dynamicScript, func(request string, _ int, until int64) ([]string, []any) {
		return []string{s.redis.Keys.Jobs, s.redis.Keys.Memo(request)}, append([]any{verb, name, until, s.redis.Keys.Events}, more...)
	})
}

// DynamicJobs are the sources of all jobs that are kept, by name, with their revision: while a Look sees the same, they
// are the same. It is greater after each change, and 0 when there never was one or Redis lost its data.
func (s *Store) DynamicJobs(ctx context.Context) (rev int64, sources map[string][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis.Timeout())
	defer cancel()
	rdb, err := s.redis.Server(ctx)
	var fields map[string]string
	if err == nil {
		fields, err = rdb.HGetAll(ctx, s.redis.Keys.Jobs).Result()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("reading the dynamic jobs: %w", err)
	}
	sources = map[string][]byte{}
	for name, source := range fields {
		if !strings.HasPrefix(name, "@") {
			sources[name] = []byte(source)
		}
	}
	return rds.Number(fields[revision]), sources, nil
}

// jobName keeps names apart from the fields beside them, and from timers.
func jobName(name string) error {
	if strings.ContainsAny(name, "@:") {
		return fmt.Errorf("name %q has a : or an @", name)
	}
	return rds.OneWord("name", name)
}
