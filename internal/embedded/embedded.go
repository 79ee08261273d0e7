// Package embedded is the Redis for trying Solotick out on one machine. The first process serves an in-memory store on
// a loopback port, and the others join it. When the serving process ends, another takes its place with an empty store;
// the ledgers' birth then keeps ticks from firing again. The store keeps nothing on disk. It has no password: it trusts
// every user of this machine. Each of them can read and change it, and no one else can.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Addr is the address of the store. It is fixed, so that processes find each other without being told.
const Addr = "127.0.0.1:9749"

// standBy is how often a process that has joined tries to serve: a tick that comes due meanwhile is a retry late.
const standBy = 200 * time.Millisecond

// Store is one process's part in the embedded store.
type Store struct {
	addr   string
	server *server // nil while another process serves
}

// Open serves the store at addr, or joins the process that does. If another program listens there, Open returns an
// error.
func Open(addr string) (*Store, error) {
	s := &Store{addr: addr}
	for try := 0; ; try++ {
		err := s.serve()
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("opening the embedded store: %w", err)
		}
		if err = greet(addr); err == nil {
			return s, nil
		}
		// The process that served may have ended between the two questions: then this process must serve.
		if !errors.Is(err, errGone) || try == maxTries {
			return nil, fmt.Errorf("joining the embedded store at %s: %w", addr, err)
		}
	}
}

// Addr is the address at which this process serves the store, with the real port if port 0 was asked for; "" if another
// process serves.
func (s *Store) Addr() string {
	if s.server == nil {
		return ""
	}
	return s.server.listener.Addr().String()
}

// Serving tells whether this process serves the store. The caller must not call Serving or Addr while Run runs.
func (s *Store) Serving() bool { return s.server != nil }

func (s *Store) serve() error {
	served, err := listen(s.addr)
	if err == nil {
		s.server = served
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
