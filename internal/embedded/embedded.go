// Package embedded is the Redis for trying Solotick out on one machine. The first process serves an in-memory store on
// a loopback port, and the others join it. When the serving process ends, another takes its place with an empty store;
// the ledgers' birth then keeps ticks from firing again. The store keeps nothing on disk. It has no password: it trusts
// every user of this machine. Each of them can read and change it, and no one else can.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// Addrs are the addresses at which the store can be, the usual one first. They are fixed, so that processes find each
// other without being told. The others are for machines on which another program has the usual port.
var Addrs = []string{"127.0.0.1:9749", "127.0.0.1:19749", "127.0.0.1:29749"}

// standBy is how often a process that has joined tries to serve: a tick that comes due meanwhile is a retry late.
const standBy = 200 * time.Millisecond

// Store is one process's part in the embedded store.
type Store struct {
	addr   string
	server *server // nil while another process serves
}

// Open joins the store at one of the addresses, or serves it at the first address that is free. If other programs have
// all of them, Open returns an error.
//
// It asks at all addresses before it serves at one. Otherwise there would be two stores, and each tick would be fired
// twice, when a program has left the usual port since the store was opened at another one.
func Open(addrs ...string) (*Store, error) {
	for try := 0; ; try++ {
		at, free, err := look(addrs)
		if err != nil {
			return nil, err
		}
		if at != "" {
			return &Store{addr: at}, nil
		}
		s := &Store{addr: free}
		if err = s.serve(); err == nil {
			return s, nil
		}
		// Another process may have begun to serve since: then this process must join it.
		if !errors.Is(err, syscall.EADDRINUSE) || try == maxTries {
			return nil, fmt.Errorf("opening the embedded store: %w", err)
		}
	}
}

// look returns the address of the store. If there is none, it returns the first address that is free.
func look(addrs []string) (at, free string, err error) {
	var taken []string
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close()
			free = cmp.Or(free, addr)
			continue
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", "", fmt.Errorf("opening the embedded store: %w", err)
		}
		err = greet(addr)
		switch {
		case err == nil:
			return addr, "", nil
		case errors.Is(err, errGone): // between the two questions
			free = cmp.Or(free, addr)
		case errors.Is(err, errSilent) && marked(addr): // beside a second store it would go on later
			return "", "", fmt.Errorf("joining the embedded store at %s: the process that serves it is stopped: %w",
				addr, err)
		default:
			taken = append(taken, fmt.Sprintf("%s: %s", addr, err))
		}
	}
	if free == "" {
		return "", "", fmt.Errorf("opening the embedded store at %s", strings.Join(taken, ", at "))
	}
	return "", free, nil
}

// Find returns the address of the store; without one, it returns the first of the addresses.
func Find(addrs ...string) string {
	for _, addr := range addrs {
		if greet(addr) == nil {
			return addr
		}
	}
	return addrs[0]
}

// At is the address of the store, wherever it is served, with the real port if port 0 was asked for.
func (s *Store) At() string { return s.addr }

// Serving reports whether this process serves the store. The caller must not call Serving or At while Run runs.
func (s *Store) Serving() bool { return s.server != nil }

func (s *Store) serve() error {
	served, err := listen(s.addr)
	if err == nil {
		s.server, s.addr = served, served.listener.Addr().String()
	}
	return err
}

// Run stands by to serve if the serving process ends, and calls took when it has begun to serve. It stops serving when
// ctx ends.
func (s *Store) Run(ctx context.Context, took func()) {
	ticker := time.NewTicker(standBy)
	defer ticker.Stop()
	for s.server == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.serve() == nil {
			took()
		}
	}
	<-ctx.Done()
	s.server.close()
}
