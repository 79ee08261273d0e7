package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// MasterName is what the Sentinels of a test call their master.
const MasterName = "mymaster"

// Sentinel is a master with its replicas, and the Sentinels that put a replica into its place when it is gone for half
// a second.
type Sentinel struct {
	t       testing.TB
	Servers []*Server // the first begins as master
	Watch   []*Server // the Sentinels
}

// StartSentinel returns when the replicas are in step and each Sentinel knows all others. args are those of the
// servers; a certificate among them is that of the Sentinels too, and all speak TLS with each other.
func StartSentinel(t testing.TB, replicas, sentinels int, args ...string) *Sentinel {
	t.Helper()
	// A replica that just connected waits five seconds for others that could share its copy, unless told not to.
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	if slices.Contains(args, certArg) {
		args = append(args, "--tls-replication", "yes")
	}
	s := &Sentinel{t: t, Servers: []*Server{Start(t, args...)}}
	master := s.Servers[0]
	for range replicas {
		s.Servers = append(s.Servers,
			Start(t, append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(master.peerPort())}, args...)...))
	}
	for _, r := range s.Servers[1:] {
		r.AwaitCopy(master)
	}
	for range sentinels {
		s.Watch = append(s.Watch, s.watch(sentinels/2+1, args))
	}
	for _, w := range s.Watch {
		w.await("INFO sentinel", "the Sentinels", func(info string) bool {
			want := fmt.Sprintf("name=%s,status=ok,address=127.0.0.1:%d,slaves=%d,sentinels=%d",
				MasterName, master.peerPort(), replicas, sentinels)
			return Field(info, "master0") == want
		})
	}
	return s
}

func (s *Sentinel) watch(quorum int, args []string) *Server {
	s.t.Helper()
	w := newServer(s.t, "Sentinel ID is")
	w.start(slices.Contains(args, certArg), func() []string {
		config := filepath.Join(w.dir, "sentinel.conf") // must be a file, since a Sentinel writes what it learns to it
		text := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %[4]d %[5]d
sentinel down-after-milliseconds %[3]s 500
sentinel failover-timeout %[3]s 10000
`, w.port, w.dir, MasterName, s.Servers[0].peerPort(), quorum)
		if w.tls != 0 {
			text += fmt.Sprintf("tls-port %d\n", w.tls)
		}
		for i, arg := range args {
			if name, ok := strings.CutPrefix(arg, "--tls-"); ok {
				text += fmt.Sprintf("tls-%s %s\n", name, args[i+1])
			}
		}
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return []string{config, "--sentinel"}
	})
	return w
}

// Addrs are those of the Sentinels.
func (s *Sentinel) Addrs() []string {
	var addrs []string
	for _, w := range s.Watch {
		addrs = append(addrs, w.Addr())
	}
	return addrs
}

// AwaitMaster waits until all Sentinels have put another server into the place of old, and returns it. Nothing is asked
// twice: on a busy machine a Sentinel may call its master down for a moment, after it had called it well.
func (s *Sentinel) AwaitMaster(old *Server) *Server {
	s.t.Helper()
	var master *Server
	for _, w := range s.Watch {
		w.await("INFO sentinel", "another master", func(info string) bool {
			master = s.called(info)
			return master != nil && master != old
		})
	}
	master.await("INFO replication", "the new master", func(info string) bool {
		return Field(info, "role") == "master"
	})
	return master
}

// called is the server that a Sentinel calls the master; nil while it calls it down.
func (s *Sentinel) called(info string) *Server {
	for _, server := range s.Servers {
		var port int
		const form = "name=" + MasterName + ",status=ok,address=127.0.0.1:%d,"
		if n, _ := fmt.Sscanf(Field(info, "master0"), form, &port); n == 1 && port == server.peerPort() {
			return server
		}
	}
	return nil
}

// AwaitCopy waits until the server, a replica of master, has all that was written there so far.
func (s *Server) AwaitCopy(master *Server) {
	s.t.Helper()
	info, err := master.Ask("INFO replication")
	if err != nil {
		s.t.Fatal(err)
	}
	written, _ := strconv.Atoi(Field(info, "master_repl_offset"))
	s.await("INFO replication", "the replica", func(info string) bool {
		offset, err := strconv.Atoi(Field(info, "slave_repl_offset"))
		return err == nil && offset >= written && Field(info, "master_link_status") == "up"
	})
}
