package adapters_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// candidate is a replica with a supervised holder beside it.
type candidate struct {
	name, admin string
	starts      int
	replica     *rig.Replica
	claim       *exec.Cmd
}

// holds is the work of a holder: while it has the lease, it says so.
const holds = `while :; do echo "$SOLOTICK_FENCING_TOKEN $(date +%s%N)" >> "$HELD"; sleep 0.05; done`

// TestOneHolderAtATime: three candidates for a lease, while holders, replicas and Redis die or stand still. A holder
// that has lost the lease says nothing any more when the next one begins.
func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	needs.Program(t, "redis-server")
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	redis, err := rig.StartRedis(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	start := func(c *candidate) {
		t.Helper()
		c.starts++
		c.replica, err = rig.StartReplica(rig.ReplicaOptions{Binary: binary, Name: c.name, Redis: redis.URL(), Dir: dir,
			Log: fmt.Sprintf("%s-%d.log", c.name, c.starts)}, func(listen string) string {
			return fmt.Sprintf("service: leases\nlisten: %q\nadmin: %q\njobs:\n"+
				"  - {name: consumer, schedule: \"@lease\", claim: {heartbeat: 1s}, lock: {ttl: 4s}}\n", listen, c.admin)
		})
		if err != nil {
			t.Fatal(err)
		}
		replica := c.replica
		t.Cleanup(func() {
			_ = replica.Signal(syscall.SIGCONT)
			replica.Kill()
			if t.Failed() {
				t.Logf("replica of %s:\n%s", c.name, tail(replica.Log))
			}
		})
	}
	// A supervisor starts the command again whenever it ends.
	var all []*candidate
	for i := range 3 {
		c := &candidate{name: fmt.Sprintf("pod-%d", i+1), admin: rig.FreeAddr(t)}
		start(c)
		c.claim = exec.Command("sh", "-c", `while :; do "$SOLOTICK" claim --wait consumer --admin "$ADMIN" -- sh -c "$HOLDS"; sleep 0.2; done`)
		c.claim.Env = append(os.Environ(), "SOLOTICK="+binary, "ADMIN="+c.admin, "HOLDS="+holds, "HELD="+filepath.Join(dir, c.name))
		c.claim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.claim.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-c.claim.Process.Pid, syscall.SIGKILL)
			_ = c.claim.Wait()
		})
		all = append(all, c)
	}

	type held struct {
		token, at int64
		by        *candidate
	}
	says := func() (lines []held) {
		t.Helper()
		for _, c := range all {
			text, err := os.ReadFile(filepath.Join(dir, c.name))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				h := held{by: c}
				if n, _ := fmt.Sscan(line, &h.token, &h.at); n == 2 && strings.HasSuffix(line, "\n") {
					lines = append(lines, h)
				}
			}
		}
		slices.SortFunc(lines, func(a, b held) int { return int(a.at - b.at) })
		return lines
	}
	// next waits for a holder with a newer token than that one, and for it to work.
	next := func(than int64) held {
		t.Helper()
		var newest held
		await(t, "the next holder", func() bool {
			lines := says()
			if len(lines) < 10 {
				return false
			}
			newest = lines[len(lines)-1]
			return newest.token > than && lines[len(lines)-10].token == newest.token
		})
		return newest
	}

	holder := next(0)
	for _, fault := range []struct {
		what string
		do   func(*candidate) (undo func())
	}{
		{"the replica of the holder is killed", func(c *candidate) func() {
			c.replica.Kill()
			return func() { start(c) }
		}},
		{"the replica of the holder stands still", func(c *candidate) func() {
			if err := c.replica.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			return func() { _ = c.replica.Signal(syscall.SIGCONT) }
		}},
		{"the holder is killed with its supervisor", func(c *candidate) func() {
			if err := syscall.Kill(-c.claim.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return func() {}
		}},
		{"Redis is killed", func(*candidate) func() {
			redis.Kill()
			time.Sleep(5 * time.Second) // longer than the lease
			if err := redis.Restart(); err != nil {
				t.Fatal(err)
			}
			return func() {}
		}},
	} {
		began := time.Now()
		undo := fault.do(holder.by)
		before := holder
		holder = next(before.token)
		t.Logf("%s: the next one, on %s, works after %s", fault.what, holder.by.name, time.Since(began).Round(10*time.Millisecond))
		undo()
	}
	newest := held{}
	for _, h := range says() {
		if h.token < newest.token {
			t.Errorf("%s worked under token %d, %s after %s had begun under %d", h.by.name, h.token,
				time.Duration(h.at-newest.at), newest.by.name, newest.token)
		}
		if h.token > newest.token {
			newest = h
		}
	}
}
