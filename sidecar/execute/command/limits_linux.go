package command

import (
	"errors"
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
	// firstLook is early, and each further one twice as late up to lookEvery: most programs take their memory first of
	// all, and a core fills about 3 MiB in a millisecond.
	firstLook = 10 * time.Millisecond
	lookEvery = 100 * time.Millisecond

	// Looking costs time that grows with the machine's process table. It is kept to a twentieth of one core, at the
	// price of looking later, but for the least that a limit is worth.
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

// backstop has the kernel limit each process by itself. It is above the limits, so that the watch sees first who is over
// them and the command is ended whole and with a reason; it counts where the watch comes too late.
//
// Of memory the kernel counts what a process may write to (RLIMIT_DATA), touched or not, stacks of threads and reserves
// of run-time systems included. An idle JVM has 165 MiB of that and touches 40, an idle node 48 and 6. RLIMIT_AS would
// count what may not even be written to: hundreds of GiB with node.
func (l *limits) backstop(pid int) error {
	var errs []error
	if l.Memory > 0 {
		n := 2*uint64(l.Memory) + 256<<20
		errs = append(errs, lower(pid, unix.RLIMIT_DATA, n, n))
	}
	if l.CPU > 0 {
		n := uint64(l.CPU/time.Second) + 1
		errs = append(errs, lower(pid, unix.RLIMIT_CPU, n, n+1)) // SIGXCPU, which may be caught, and SIGKILL
	}
	return errors.Join(errs...)
}

// lower leaves a limit that is lower already.
func lower(pid, resource int, soft, hard uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return fmt.Errorf("prlimit: %w", err)
	}
	if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(soft, old.Cur), Max: min(hard, old.Max)}, nil); err != nil {
		return fmt.Errorf("prlimit: %w", err)
	}
	return nil
}

// watch returns why the command is to be killed, nil when stop was closed before there was a reason. Those of its
// processes that have left the group are killed already.
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
			// What was forked after the limits were set has inherited them. The rest is found by the first look, and by
			// the second what the rest has forked during the first.
			for _, p := range tree {
				_ = l.backstop(p.pid) // impose has said so if it may not
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

// over tells whether the processes together are over a limit.
func (l *limits) over(tree []load) error {
	var resident int64
	var cpu time.Duration
	for _, p := range tree {
		resident += p.resident
		cpu += p.cpu
	}
	if l.CPU > 0 && cpu > l.CPU {
		return overCPU(cpu, l.CPU)
	}
	if l.Memory == 0 || resident <= l.Memory {
		return nil
	}
	// Resident are also the files that the kernel can drop from memory, and pages shared with a parent, counted with each
	// of its children. To see them takes a walk through the page tables, so it is asked for only now.
	var held int64
	for _, p := range tree {
		held += p.held()
	}
	if held > l.Memory {
		return overMemory(held, l.Memory)
	}
	return nil
}

// blame adds a limit to why a command has failed when it was over it without the watch having seen that: its last
// moments were short, or the kernel was faster. Known are the time of all that was waited for, and the most that one of
// these processes had in memory. The latter is never less than what this process had when it started the command: a
// child begins with the memory of its parent, and the kernel counts that.
func (l *limits) explainExit(err error, state *os.ProcessState) error {
	if state == nil {
		return err
	}
	if cpu := state.UserTime() + state.SystemTime(); l.CPU > 0 && cpu > l.CPU {
		return fmt.Errorf("%w, %w", err, overCPU(cpu, l.CPU))
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

// killStrays kills what has left the group but still descends from it. The rest is for endGroup to kill.
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
