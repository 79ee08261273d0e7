package rds

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// BatchSize is the longest pipeline of a batch, HerdSize what one script answers at most.
const BatchSize, HerdSize = maxBatch, maxHerd

// Delivered are the errors of the calls of a herd to which Redis gave that answer.
func Delivered(calls int, answer any) (errs []error) {
	r := &request{Cmd: redis.NewCmd(context.Background()), calls: make([]*call, calls)}
	for i := range r.calls {
		r.calls[i] = &call{}
	}
	r.SetVal(answer)
	r.deliver(false)
	for _, c := range r.calls {
		errs = append(errs, c.err)
	}
	return errs
}
