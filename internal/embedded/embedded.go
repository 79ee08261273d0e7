// Package embedded is the Redis for trying Solotick out on one machine: the first process serves an in-memory store on
// a loopback port, the others join it. When the serving process ends, one of the others takes its place with an empty
// store; the ledgers' birth then keeps ticks from firing again. Nothing is kept on disk. There is no password: the store
// trusts every user of this machine. Each of them can read and change it, and nobody else can.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Addr is where the store is served. Fixed, so that processes find each other without being told.
const Addr = "127.0.0.1:9749"

// standBy is how often a process that has joined tries to serve: a tick that comes due meanwhile is a retry late.
const standBy = 200 * time.Millisecond

// Store is one process's part in the embedded store.
type Store struct {
	addr   string
	server *server // nil while another process serves
}

// Open serves the store at addr, or joins the process that does. What else may listen there is an error.
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
		// The store's process may have ended between the two questions: then it is for this one to serve.
		if !errors.Is(err, errGone) || try == maxTries {
			return nil, fmt.Errorf("joining the embedded store at %s: %w", addr, err)
		}
	}
}

// Addr is where this process serves the store, which tells the port that was asked for as 0; "" when another one serves.
func (s *Store) Addr() string {
	if s.server == nil {
		return ""
	}
	return s.server.listener.Addr().String()
}

// Serving tells whether this process is the one that serves. It must not be asked while Run runs, nor must Addr.
func (s *Store) Serving() bool { return s.server != nil }

func (s *Store) serve() error {
	served, err := listen(s.addr)
	if err == nil {
		s.server = served
	}
	return err
}

// Run stands by to serve should the serving process end, calls took when it did, and stops serving when ctx ends.
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
