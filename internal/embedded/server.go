package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	protocol "github.com/alicebob/miniredis/v2/server"

	"github.com/solotick/solotick/internal/resp"
)

// server is a miniredis behind a listener of its own, which guards each connection. Any program may send a request
// without a command, and without the guard that request would end the process.
type server struct {
	mini     *miniredis.Miniredis
	listener net.Listener
	mark     io.Closer
	serving  sync.WaitGroup
}

// listen serves an empty store at addr.
func listen(addr string) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &server{mini: miniredis.NewMiniRedis(), listener: l, mark: mark(l.Addr().String())}
	s.mini.ClockTTL(true)
	first, err := s.mini.Dial() // Dial starts miniredis without a listener
	if err == nil {
		_ = first.Close()
		err = s.mini.Server().Register(hello, func(c *protocol.Peer, _ string, _ []string) { c.WriteInline(welcome) })
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("starting the store: %w", err)
	}
	to := s.mini.Server()
	s.serving.Go(func() { s.accept(to) })
	return s, nil
}

func (s *server) accept(to *protocol.Server) {
	for {
		c, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // this process has as many files open as it may have
			time.Sleep(standBy)
		default:
			to.ServeConn(resp.GuardRequests(c))
		}
	}
}

// close ends the store and the connections to it.
func (s *server) close() {
	_ = s.listener.Close()
	_ = s.mark.Close()
	s.serving.Wait()
	s.mini.Close()
}
