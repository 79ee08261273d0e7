// Package execute is the contract between who fires a tick and what runs the job: Run is what the job is told of its run,
// Result is what came of it, and an Executor runs one attempt. Package call has the executor of a job that is an HTTP
// request to the app, package command that of a job that is a process. With the same means they ask the app whether it is
// ready (Ready).
//
// What every Executor guarantees: an attempt is one attempt, and nothing is sent or started again behind the caller's
// back. Status tells three answers apart that callers must not mix up: NotStarted is reported only when the job certainly
// never began (no connection, no byte written, no process), a clear answer is reported as it was given, and everything
// between, the answer that never came, is Failed, and its Err says that the job may have started. Execute returns only
// when the call is over or the process is gone, and what it keeps of the job's words is bounded.
//
// What it does not guarantee: that the work stops when Execute returns.
//
// These packages know no lock, no store, no schedule and no metrics.
package execute
