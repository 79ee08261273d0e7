// Package execute is the contract between the firer of a tick and the executor of its job. Run is all that the job is
// told of its run, an Executor runs one attempt, and Result is its result. Package call has the executor of HTTP
// jobs, package command that of exec jobs. Both also ask the app whether it is ready (Ready).
//
// Each Executor guarantees:
//
//   - An attempt is one attempt. The executor sends nothing again, and starts nothing again.
//   - NotStarted means that the job certainly never began: no connection, no byte written, no process.
//   - A clear answer is reported as it was given.
//   - If the answer never came, the status is Failed, and Err says that the job may have started.
//   - Execute returns only when the call is over or the process is gone.
//   - It keeps a bounded part of the job's words.
//
// No Executor guarantees that the work stops when Execute returns.
//
// The function executor of cmd/solotick chooses one. A third kind needs a key in config, mayRepeat and Target.
//
// These packages know no lock, no store, no schedule and no metrics.
package execute
