package nemesis

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/rig"
)

// path is a replica's way to Redis, and to the time.
type path struct {
	under []string      // what the replica is started by
	host  string        // where its metrics and health are; "" = 127.0.0.1
	redis string        // host:port of Redis, as the replica sees it
	skew  time.Duration // by how much the replica's wall clock is ahead
	clock string        // that it follows: redis or local; "" = redis
	cut   func() error
	mend  func() error
	// reach connects the app beside the replica to the replica's loopback interface; nil = it is that of all
	reach func(ctx context.Context, network, addr string) (net.Conn, error)
}

// proxied is a path through a proxy. Cut, its connections end and new ones are refused.
func proxied(addr string) (path, func(), error) {
	p := lossy.New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	})
	front, err := p.Listen()
	if err != nil {
		return path{}, nil, fmt.Errorf("starting a proxy to Redis: %w", err)
	}
	cut := func() error {
		err := p.Refuse(true)
		p.Cut()
		time.Sleep(50 * time.Millisecond)
		p.Cut() // a connection that was just coming in
		return err
	}
	return path{redis: front, cut: cut, mend: func() error { return p.Refuse(false) }}, p.Close, nil
}

// namespace is a network namespace with one link to this one's, on addresses that are set aside for tests of networks.
// It lives as long as its one idle process, so that nothing of it outlives a test that was killed.
type namespace struct {
	holder               *rig.Process
	outer, inner         string // the two ends of the link
	outerAddr, innerAddr string
}

// newNamespace makes one, which takes root; dir takes a log.
func newNamespace(dir string) (*namespace, error) {
	holder, err := rig.Launch("namespace", filepath.Join(dir, "namespace.log"), nil,
		"unshare", "--net", "sleep", "infinity")
	if err != nil {
		return nil, err
	}
	pid := holder.Pid()
	first := netip.AddrFrom4([4]byte{198, 18, byte(pid >> 6), byte(pid << 2)}) // of four addresses
	n := &namespace{
		holder: holder, outer: fmt.Sprintf("stk%da", pid), inner: fmt.Sprintf("stk%db", pid),
		outerAddr: first.Next().String(), innerAddr: first.Next().Next().String(),
	}
	if err := n.link(); err != nil {
		holder.Kill()
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	return n, nil
}

func (n *namespace) link() error {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if err := rig.Until(5*time.Second, "the namespace", func() bool {
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.holder.Pid()))
		return n.holder.Ended() || err == nil && its != ours
	}); err != nil {
		return err
	}
	if n.holder.Ended() {
		return fmt.Errorf("see %s", n.holder.Log)
	}
	for _, argv := range [][]string{
		{"ip", "link", "add", n.outer, "type", "veth", "peer", "name", n.inner, "netns", strconv.Itoa(n.holder.Pid())},
		{"ip", "addr", "add", n.outerAddr + "/30", "dev", n.outer},
		{"ip", "link", "set", n.outer, "up"},
		n.inside("ip", "addr", "add", n.innerAddr+"/30", "dev", n.inner),
		n.inside("ip", "link", "set", n.inner, "up"),
		n.inside("ip", "link", "set", "lo", "up"),
	} {
		if err := do(argv); err != nil {
			return err
		}
	}
	return nil
}

// inside is a command line that runs in the namespace.
func (n *namespace) inside(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + fmt.Sprintf("/proc/%d/ns/net", n.holder.Pid()), "--"}, argv...)
}

// path leads through the link. Cut, nothing passes, and nobody is told: connections stay open, and what was on its way
// arrives when the link is back.
func (n *namespace) path(port int) path {
	return path{
		under: n.inside(), host: n.innerAddr, redis: net.JoinHostPort(n.outerAddr, strconv.Itoa(port)),
		cut:  func() error { return do(n.inside("ip", "link", "set", n.inner, "down")) },
		mend: func() error { return do(n.inside("ip", "link", "set", n.inner, "up")) },
		reach: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialInside(ctx, n.holder.Pid(), network, addr)
		},
	}
}

func do(argv []string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
