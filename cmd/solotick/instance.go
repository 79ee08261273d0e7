package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/solotick/solotick/internal/instance"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute/command"
)

// holdInstance makes the process with this UUID the one that runs in this place. It returns the nodes of the processes
// before, which are dead, and has killed what their commands left behind. If nothing is certain of them, it returns
// none, and their runs are taken over when their leases are over. The place is this process' until the caller gives it
// up; nil if it is not. A state directory that another process holds is not this one's either.
func (a *app) holdInstance(service, replica, process string,
	log *slog.Logger) (dead []string, held *instance.Instance) {
	dir := cmp.Or(string(a.state), a.defaultInstance(service, replica))
	if dir == "" {
		return nil, nil
	}
	i, err := instance.Hold(dir, lock.Node(process))
	if err != nil {
		level := slog.LevelDebug
		if a.state != "" && !errors.Is(err, instance.ErrUnsupported) {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "restarts in place are not noticed: "+
			"runs that a crash cuts short are taken over when their leases are over", "dir", dir, "err", err)
		if errors.Is(err, instance.ErrHeld) && a.state != "" {
			log.Error(notKept, "err", err)
			a.state = ""
		}
		return nil, nil
	}
	sessions, nodes := map[int]bool{}, map[string]bool{}
	for _, p := range i.Dead {
		dead, sessions[p.Session], nodes[p.ID] = append(dead, p.ID), true, true
	}
	if len(dead) == 0 {
		return nil, i
	}
	if groups := command.EndLeft(sessions, func(run string) bool { return nodes[lock.Node(run)] }); groups > 0 {
		log.Info("killed what the commands of a dead process had left running", "groups", groups)
	}
	return dead, i
}

// defaultInstance is the directory of an instance without --state-dir; "" if the replica has none. A name with a pid
// in it never comes back.
func (a *app) defaultInstance(service, replica string) string {
	host, _ := os.Hostname() // without one, the name came from somewhere else
	if a.replica == "" && os.Getenv("POD_NAME") == "" && replica != host {
		return ""
	}
	base := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/run")
	return filepath.Join(base, "solotick", fmt.Sprintf("%x", sha256.Sum256([]byte(service+"/"+replica))))
}
