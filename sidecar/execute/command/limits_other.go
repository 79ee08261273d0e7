//go:build unix && !linux

package command

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
)

// looks is of no use here.
type looks struct{}

// enforceable refuses limits that only Linux can enforce: they need prlimit, and a process table that shows use.
func enforceable(r config.Resources) error {
	if r.Memory != 0 {
		return errors.New("resources: memory is limited on Linux alone")
	}
	return nil
}

func niceness() (int, error) { return unix.Getpriority(unix.PRIO_PROCESS, 0) }

func (l *limits) backstop(int) error { return enforceable(l.Resources) }

func (l *limits) watch(int, <-chan struct{}) error { return enforceable(l.Resources) }

func (l *limits) explainExit(err error, _ *os.ProcessState) error { return err }
