// Package execute runs one attempt of one job: a call to the app over HTTP, or a command. With the same means it asks
// the app whether it is ready.
//
// What it guarantees: an attempt is one attempt. A request is written to at most one connection and never sent again
// behind the caller's back; a command is started once. Status tells three answers apart that callers must not mix up:
// NotStarted is reported only when the job certainly never began (no connection, no byte written, no process), a clear
// answer is reported as it was given, and everything between, the answer that never came, is Failed, and its Err says
// that the job may have started. Execute returns only when the call is over or the process is gone, and what it keeps
// of the job's words is bounded.
//
// What it does not guarantee: that the work stops when Execute returns. A handler in the app may run on after its
// caller has gone; only the fencing token tells the app so. A command that moved a part of itself out of its process
// group (setsid, a daemon) leaves that part running, unless it is over its limits. And if this process itself is killed
// by SIGKILL, the kernel kills each command on Linux, but not the children of the command; in a container, where this
// process is PID 1, it kills all.
//
// The package knows no lock, no store, no schedule and no metrics.
//
// # Calls
//
// net/http's Transport is not used, because it resends: when a reused connection breaks before an answer came, it sends
// a request again if it has no body or a GetBody and is a GET or carries an Idempotency-Key (shouldRetryRequest and
// isReplayable in its source), and ours always carries that key. There is no switch for it. So a call here is one dial,
// one write and one read on a connection this package owns, with net/http's encoder and parser on it, HTTP/1.1 only,
// because HTTP/2 resends too (GOAWAY, REFUSED_STREAM). That is also the shortest way to the wire: no goroutine is
// involved but the caller's.
//
// A connection is kept after an answer for a moment only (idleLimit), one per job and only for a job that runs that
// often; it saves such a job half the way to its app. Before it is used again the kernel is asked whether the app has
// closed it; if the write then fails with no byte taken, nothing was sent and a new connection is dialled. Any later
// error may be a started job and is reported as one; after the first such error the job's connections are not kept any
// more.
//
// # Commands
//
// A command leads a process group of its own. When the context ends the group gets SIGTERM, and SIGKILL when the grace
// is over; what is still in the group when the command itself has ended by itself is killed at once, because the run is
// over and the next one may start elsewhere.
//
// # Limits
//
// A sidecar in a container may make no cgroups, so a command's limits are enforced by looking: the sum over its group
// and its descendants, from /proc, some ten times a second. Who is over is killed at once, without a grace in which a
// process that fills the memory would go on filling it; and with it what has left the group, as long as it still
// descends from it. The kernel's limits (prlimit) are set on top, since they hold also while this process stands still.
// But they count each process by itself, and memory that is merely reserved, so they are wider. They are set just after
// the start, and again on what the first looks find. A shim between us and the command could set them before its first
// instruction; the watch would be needed all the same, and each run would start one more program, which the command's
// user or image may not let it find.
package execute
