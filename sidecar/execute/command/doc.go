// Package command runs commands: those of jobs (New), and the question whether the app is ready (NewReady). Reap waits for
// what they leave behind where this process is PID 1.
//
// What it guarantees: a command is started once, and Execute returns only when its process group is gone.
//
// What it does not guarantee: that all its work stops then. A command that moved a part of itself out of its process group
// (setsid, a daemon) leaves that part running, unless it is over its limits. And if this process itself is killed by
// SIGKILL, the kernel kills each command on Linux, but not the children of the command; in a container, where this process
// is PID 1, it kills all.
//
// # Groups
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
package command
