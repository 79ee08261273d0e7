//go:build unix

package command

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
)

// limits hold a command to the table's resources.
type limits struct {
	config.Resources
	log  *slog.Logger
	look looks

	once sync.Once // for warnOnce: the reason is the same for every run
}

// limitError is why a command is killed, or has died, because of its limits.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// overMemory rounds the used amount up and the limit down, so that the message shows the larger number first.
func overMemory(used, limit int64) error {
	const tenth, inexact = float64(1<<20) / 10, 1e-6
	tenths := func(f float64) string { return strconv.FormatFloat(f/10, 'f', -1, 64) }
	return &limitError{fmt.Sprintf("over its memory limit: %s MiB of %s MiB",
		tenths(math.Ceil(float64(used)/tenth-inexact)), tenths(math.Floor(float64(limit)/tenth+inexact)))}
}

// enforce watches the process group of pid, and calls kill with the reason when the group exceeds a limit. Call stop
// after the group is gone, and before its leader is waited for.
func (l *limits) enforce(pid int, job string, kill context.CancelCauseFunc) (stop func()) {
	if l.Nice != 0 {
		if err := l.renice(pid); err != nil {
			l.warnOnce(job, "the command keeps the niceness of Solotick: a lower one needs CAP_SYS_NICE", err)
		}
	}
	if l.Memory == 0 {
		return func() {}
	}
	if err := l.backstop(pid); err != nil {
		l.warnOnce(job, "the kernel does not hold the command to its limits: it is only watched", err)
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		if err := l.watch(pid, done); err != nil {
			kill(err)
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// renice adds to the niceness of the group, as nice(1) does.
func (l *limits) renice(pid int) error {
	own, err := niceness()
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PGRP, pid, min(max(own+l.Nice, -20), 19))
}

func (l *limits) warnOnce(job, what string, err error) {
	l.once.Do(func() { l.log.Warn(what, "job", job, "err", err) })
}
