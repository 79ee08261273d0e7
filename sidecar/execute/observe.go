package execute

import "context"

// Observer executes nothing: an attempt waits for its tick, and has ended. It stands in place of the executor of a job
// that is observed only, beside the old cron whose work Solotick is to take over.
type Observer struct{}

// Execute waits until the job may begin, and returns Observed.
func (Observer) Execute(ctx context.Context, r Run) Result {
	if err := r.Wait(ctx); err != nil {
		return Result{Status: Canceled, Err: err, Code: -1}
	}
	r.Begun()
	return Result{Status: Observed, Code: -1}
}
