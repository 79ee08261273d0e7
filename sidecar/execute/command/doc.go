// Package command runs commands: jobs (New), and readiness probes (NewReady). Where this process is PID 1, Reap waits
// for the processes that they leave behind.
//
// A command is started once, and Execute returns only when its process group is gone.
//
// Some of its work may go on then. If a command moves a part of itself out of its process group (setsid, a daemon),
// that part runs on. If this process itself is killed by SIGKILL, the kernel kills each command on Linux, but not the
// children of the command. In a container, where this process is PID 1, the kernel kills all.
//
// # Groups
//
// A command leads a process group of its own. If the context ends, the group gets SIGTERM, and SIGKILL when the grace
// is over. If the command ends by itself, the rest of its group is killed at once: the run is over, and the next one
// may start elsewhere.
package command
