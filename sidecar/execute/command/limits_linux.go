package command

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
)

// looks is how often the processes of a command are looked at; 0 = the defaults.
type looks struct{ first, every time.Duration }

const (
	// firstLook is early, since most programs take their memory first of all, and a core fills about 3 MiB in a
	// millisecond. Each further look comes twice as late, up to lookEvery.
	firstLook = 10 * time.Millisecond
	lookEvery = 100 * time.Millisecond

	// The cost of a look grows with the machine's process table. Looks come less often if they would take more than a
	// twentieth of one core, but never less often than rarestLook.
	lookShare  = 20
	rarestLook = time.Second

	// blindLooks in a row end the command: a limit that cannot be watched is none.
	blindLooks = 10
)

func enforceable(config.Resources) error { return nil }

// niceness is that of the present thread. The system call adds 20 to be able to return errors, and turns it round.
func niceness() (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return 20 - n, err
}

// backstop makes the kernel limit each process by itself. This limit is wider, so that the watch is the first to
// notice: it ends the whole command, and gives a reason. The kernel helps if the watch is too late.
//
// The kernel counts the memory that a process may write to (RLIMIT_DATA), touched or not, with the stacks of threads
// and the reserves of run-time systems. An idle JVM has 165 MiB and touches 40, an idle node 48 and 6. RLIMIT_AS
// would also count memory that may not be written to: hundreds of GiB with node.
func (l *limits) backstop(pid int) error {
	return lower(pid, unix.RLIMIT_DATA, 2*uint64(l.Memory)+256<<20)
}

// lower leaves a limit that is lower already.
func lower(pid, resource int, limit uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return fmt.Errorf("prlimit: %w", err)
	}
	now := unix.Rlimit{Cur: min(limit, old.Cur), Max: min(limit, old.Max)}
	if err := unix.Prlimit(pid, resource, &now, nil); err != nil {
		return fmt.Errorf("prlimit: %w", err)
	}
	return nil
}

// watch returns why the command has to be killed, nil if stop was closed first. It has killed the processes by then
// that have left the group.
func (l *limits) watch(pid int, stop <-chan struct{}) error {
	pause, every := firstLook, lookEvery
	if l.look.first > 0 {
		pause, every = l.look.first, l.look.every
	}
	for look, blind := 0, 0; ; look++ {
		next := time.NewTimer(pause)
		select {
		case <-stop:
			next.Stop()
			return nil
		case <-next.C:
		}
		began := time.Now()
		tree, err := treeOf(pid)
		switch {
		case err == nil:
			blind = 0
		case blind < blindLooks:
			blind++
		default:
			return &limitError{fmt.Sprintf("its limits cannot be watched: %v", err)}
		}
		if look < 2 {
			// Processes that were forked after the limits were set have inherited them. The first look finds the
			// others, and the second one those that they have forked meanwhile.
			for _, p := range tree {
				_ = l.backstop(p.pid) // enforce has logged it if it fails
			}
		}
		if over := l.over(tree); over != nil {
			killStrays(pid, tree)
			return over
		}
		pause = min(2*pause, every)
		pause = max(pause, min(lookShare*time.Since(began), rarestLook))
	}
}

// over reports whether the processes together are over the limit.
func (l *limits) over(tree []load) error {
	var resident int64
	for _, p := range tree {
		resident += p.resident
	}
	if resident <= l.Memory {
		return nil
	}
	// The resident size also counts files that the kernel can drop from memory. It counts pages shared with a parent
	// once for each of its children. The exact size takes a walk through the page tables, so it is read only now.
	var held int64
	for _, p := range tree {
		held += p.held()
	}
	if held > l.Memory {
		return overMemory(held, l.Memory)
	}
	return nil
}

// explainExit adds a limit to the error of a failed command if the command exceeded it unseen by the watch. Its last
// moments were short, or the kernel was faster.
//
// The peak memory of one of the processes is known. It is never less than this process' memory at the start of the
// command: a child begins with the memory of its parent, and the kernel counts that.
func (l *limits) explainExit(err error, state *os.ProcessState) error {
	if state == nil {
		return err
	}
	child, ok := state.SysUsage().(*syscall.Rusage)
	var own syscall.Rusage
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || child.Maxrss <= own.Maxrss {
		return err
	}
	if most := int64(child.Maxrss) << 10; l.Memory > 0 && most > l.Memory {
		return fmt.Errorf("%w, %w", err, overMemory(most, l.Memory))
	}
	return err
}

// killStrays kills the processes that have left the group but still descend from it. endGroup kills the rest.
func killStrays(pid int, tree []load) {
	for _, p := range tree {
		if p.group == pid {
			continue
		}
		fd, err := unix.PidfdOpen(p.pid, 0)
		if err != nil {
			continue
		}
		// The number may have become another process' before it was opened, but not since.
		if now, err := loadOf(p.pid); err == nil && now.start == p.start {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
}
