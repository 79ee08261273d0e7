package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// delay is how long after a run its lock is deleted: above the differences of clocks that one expects, below a period.
const delay = time.Second

// setNX is the lock that many programs have: SET NX EX, the job, a delay, DEL.
func (r *replica) setNX() (func() error, error) {
	return r.schedule(func(j job) error {
		ctx := context.Background()
		tick, key := j.tick(), "lock:"+j.Name
		err := r.redis.SetArgs(ctx, key, uuid.NewString(), redis.SetArgs{Mode: "NX", TTL: lease}).Err()
		if errors.Is(err, redis.Nil) {
			return nil // another replica has it
		}
		if err != nil {
			return err
		}
		if err := r.call(ctx, j, tick, 0); err != nil {
			fmt.Fprintln(os.Stderr, "calling the app:", err)
		}
		time.Sleep(delay)
		return r.redis.Del(ctx, key).Err()
	})
}
