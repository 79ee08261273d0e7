package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Door is one address at which the app is called. Replicas that each have a door of their own can lose the app one by
// one, as they do when it runs beside them.
type Door struct {
	// Reach is how the app beside this door connects to its replica's API; nil = as everybody does. It is set before
	// the door is called.
	Reach func(ctx context.Context, network, addr string) (net.Conn, error)

	app           *App
	network, addr string

	mu     sync.Mutex
	server *http.Server  // nil while the door is shut
	served chan struct{} // closed when the server takes no more connections
}

// Open adds a door: "tcp" and a loopback address, or "unix" and the path of a socket.
func (a *App) Open(network, addr string) (*Door, error) {
	d := &Door{app: a, network: network, addr: addr}
	if err := d.Reopen(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.doors = append(a.doors, d)
	a.mu.Unlock()
	return d, nil
}

// URL is where a job that takes so long is called.
func (d *Door) URL(job string, take time.Duration) string {
	host := d.addr
	if d.network == "unix" {
		host = "unix:" + d.addr + ":"
	}
	return fmt.Sprintf("http://%s/%s?take=%s", host, job, take)
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.app.serve(d, w, r) }

// Shut refuses connections from now on. Requests at work are answered, and work that is to be
// reported goes on.
func (d *Door) Shut() {
	d.mu.Lock()
	server, served := d.server, d.served
	d.server = nil
	d.mu.Unlock()
	if server == nil {
		return
	}
	go func() { _ = server.Shutdown(context.Background()) }() // ends with the last call at work
	<-served
}

// Reopen lets connections in again, at the same address.
func (d *Door) Reopen() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		return nil
	}
	if d.network == "unix" {
		if err := os.Remove(d.addr); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("opening the app: %w", err)
		}
	}
	l, err := net.Listen(d.network, d.addr)
	if err != nil {
		return fmt.Errorf("opening the app: %w", err)
	}
	d.addr = l.Addr().String()
	d.server, d.served = &http.Server{Handler: d}, make(chan struct{})
	go func(server *http.Server, served chan struct{}) {
		_ = server.Serve(l) // ends with Shut or close
		close(served)
	}(d.server, d.served)
	return nil
}

func (d *Door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		_ = d.server.Close()
		d.server = nil
	}
}
