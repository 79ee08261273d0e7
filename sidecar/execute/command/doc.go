// Package command runs commands: jobs (New), and readiness probes (NewReady). Where this process is PID 1, Reap waits
// for the processes that they leave behind.
//
// A command is started once, and Execute returns only when its process group is gone.
//
// Some of its work may go on then. If a command moves a part of itself out of its process group (setsid, a daemon),
// that part runs on, unless the command exceeds its limits. If this process itself is killed by SIGKILL, the kernel
// kills each command on Linux, but not the children of the command. In a container, where this process is PID 1, the
// kernel kills all.
//
// # Groups
//
// A command leads a process group of its own. If the context ends, the group gets SIGTERM, and SIGKILL when the grace
// is over. If the command ends by itself, the rest of its group is killed at once: the run is over, and the next one
// may start elsewhere.
//
// # Limits
//
// A sidecar in a container may not make cgroups. So this package enforces a command's limits by watching. Some ten
// times a second it reads from /proc the sum over the group and its descendants. A command over a limit is killed at
// once: during a grace, a process that fills the memory would go on filling it. Processes that have left the group
// are killed too, as long as they still descend from it.
//
// On top of that the kernel's limits (prlimit) are set, since they also hold while this process stands still. They
// are wider, because they count each process by itself, and memory that is merely reserved. They are set just after
// the start, and again on the processes that the first looks find.
//
// A shim between us and the command could set them before its first instruction. The watch would be needed all the
// same. Each run would start one more program, which the command's user or image may not let it find.
package command
