package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/bsm/redislock"
)

// fenced locks each tick of a job by redislock, with a key that is never released and ends by itself, and sends the app
// a fencing token, which Redis counts for each job.
func (r *replica) fenced() (func() error, error) {
	locks := redislock.New(r.redis)
	return r.schedule(func(j job) error {
		ctx, tick := context.Background(), j.tick()
		_, err := locks.Obtain(ctx, fmt.Sprintf("lock:%s:%d", j.Name, tick.Unix()), lease, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return nil // another replica has it
		}
		if err != nil {
			return err
		}
		token, err := r.redis.Incr(ctx, "token:"+j.Name).Result()
		if err != nil {
			return err
		}
		return r.call(ctx, j, tick, token)
	})
}
