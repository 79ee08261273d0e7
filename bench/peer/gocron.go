package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	solotick "github.com/solotick/solotick/examples/adapters/gocron"
)

// adapted runs the jobs by gocron with Solotick's adapter, as its page shows.
func (r *replica) adapted() (func() error, error) {
	locker := solotick.New("http://" + r.api)
	return r.schedule(func(j job) error {
		claim := locker.Claimed(j.Name)
		return r.call(claim.Context, j, claim.Tick, 0)
	}, append(locker.Options(), gocron.WithLocation(time.UTC))...)
}

// halfLocker is a gocron.Locker by SET NX. gocron tells it the name of the job, and nothing else, so a key is for a job.
// It lasts for half of the job's period, and is never released.
type halfLocker struct {
	redis  *redis.Client
	halves map[string]time.Duration // by name of the job
}

func newHalfLocker(r *replica) halfLocker {
	l := halfLocker{r.redis, map[string]time.Duration{}}
	for _, j := range r.jobs {
		l.halves[j.Name] = j.period() / 2
	}
	return l
}

func (l halfLocker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	err := l.redis.SetArgs(ctx, "lock:"+name, 1, redis.SetArgs{Mode: "NX", TTL: l.halves[name]}).Err()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("another replica has %s", name)
	}
	return kept{}, err
}
