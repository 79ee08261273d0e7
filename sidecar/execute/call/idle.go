package call

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Servers are the servers that jobs call. Jobs that call the same one share its idle connections. The zero value is
// ready for use.
type Servers struct {
	mu sync.Mutex
	of map[serverName]*server
}

// serverName tells servers apart. Jobs share a connection only if each of them may have made it.
type serverName struct {
	host, socket string
	allowRemote  bool
}

// sweepAbove is how many servers may be known before those that were not called lately are forgotten: each timer may
// have a server of its own.
const sweepAbove = 100

// get returns the server of a name.
func (all *Servers) get(name serverName) *server {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.of[name]; s != nil {
		return s
	}
	if len(all.of) >= sweepAbove {
		maps.DeleteFunc(all.of, func(_ serverName, s *server) bool { return s.isForgettable() })
	}
	if all.of == nil {
		all.of = map[serverName]*server{}
	}
	s := &server{}
	all.of[name] = s
	return s
}

// server is what is known of one server.
type server struct {
	mu       sync.Mutex
	last     time.Time // begin of the last call
	idle     []*conn   // newest last
	keepNone bool      // a kept connection once broke without an answer: keep none any more
}

// isForgettable reports whether a server has nothing that a later call would need.
func (s *server) isForgettable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.keepNone && len(s.idle) == 0 && time.Since(s.last) >= idleLimit
}

// idleTime is how long a connection is kept whose server has answered with that header. A server may say when it closes
// idle ones: Keep-Alive: timeout=1. The next request must arrive before that.
func idleTime(h http.Header) time.Duration {
	_, said, _ := strings.Cut(h.Get("Keep-Alive"), "timeout=")
	said, _, _ = strings.Cut(said, ",")
	if n, err := strconv.ParseUint(strings.TrimSpace(said), 10, 31); err == nil {
		return min(idleLimit, time.Duration(n)*time.Second-500*time.Millisecond)
	}
	return idleLimit
}

// keep keeps c for the next call, for that time.
func (s *server) keep(c *conn, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepNone || idle <= 0 {
		c.Close()
		return
	}
	s.idle = append(s.idle, c)
	c.expiry = time.AfterFunc(idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.idle, c); i >= 0 {
			s.idle = slices.Delete(s.idle, i, i+1)
			c.Close()
		}
	})
}

// take hands out an idle connection if there is one that the app has not closed, as far as the kernel has heard.
func (s *server) take() *conn {
	for {
		s.mu.Lock()
		n := len(s.idle)
		if n == 0 {
			s.mu.Unlock()
			return nil
		}
		c := s.idle[n-1]
		s.idle = slices.Delete(s.idle, n-1, n)
		s.mu.Unlock()
		c.expiry.Stop()
		if isIdle(c.Conn) {
			return c
		}
		c.Close()
	}
}

// callsOften reports whether this call follows the last one so soon that a kept connection would have served it. Only
// then is one kept: idle connections of hourly jobs would burden the app for nothing.
func (s *server) callsOften() bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	often := !s.keepNone && now.Sub(s.last) < idleLimit
	s.last = now
	return often
}

// stopKeeping ends the keeping of connections for good.
func (s *server) stopKeeping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepNone = true
}

// isIdle reports whether nc is open and has nothing to read. An HTTP server may send nothing without a request. If
// the state of nc cannot be read, nc is not idle.
func isIdle(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	again := false
	err = rc.Control(func(fd uintptr) { again = peek(int(fd)) })
	return err == nil && again
}

// peek reports whether the socket is open with nothing to read.
func peek(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}
