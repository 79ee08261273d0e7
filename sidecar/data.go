package sidecar

import (
	"context"
	"errors"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// dataReads is how often a replica asks for the data of a run, dataRetry apart, before it leaves the run to another
// one.
const (
	dataReads = 5
	dataRetry = 250 * time.Millisecond
)

// errTakesNoData is why a run with data does not begin: they were accepted under another table than this replica's.
var errTakesNoData = errors.New("a trigger brought data, and in this replica's table the job has no " +
	"trigger: {data: true}")

// readData reads the data that a run by hand brought. The claim comes first, so only one replica asks. A run never
// begins without its data: readData returns how it ends then; nil if it may begin. If the data are gone or bad, no
// other replica has better ones. In all other cases the run goes to another replica.
func (r *runner) readData(ctx context.Context, w *wake) *ended {
	if w.of.Data == "" {
		return nil
	}
	refused := execute.Result{Status: execute.NotStarted, Err: errTakesNoData, Code: -1}
	if w.spec.Trigger.Data {
		for n := 1; ; n++ {
			data, err := r.store.Data(ctx, w.of.Data)
			if err == nil {
				w.data = data
				return nil
			}
			refused.Err = err
			if errors.Is(err, service.ErrNoData) || errors.Is(err, service.ErrBadData) {
				refused.Status = execute.Failed
				break
			}
			if n == dataReads || !beat.Sleep(ctx, dataRetry) {
				break
			}
		}
	}
	cause := context.Cause(ctx)
	return &ended{outcome: unbegun(cause), result: refused, cause: cause, attempt: w.attempt}
}
