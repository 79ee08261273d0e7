package call

import (
	"net"
	"syscall"
	"time"
)

// keep makes c the idle connection, for idleLimit.
func (w *transport) keep(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil || w.keepNone { // runs of one job side by side
		c.Close()
		return
	}
	w.idle = c
	c.expiry = time.AfterFunc(idleLimit, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.idle == c {
			w.idle = nil
			c.Close()
		}
	})
}

// take hands out the idle connection if there is one that the app has not closed, as far as the kernel has heard.
func (w *transport) take() *conn {
	w.mu.Lock()
	c := w.idle
	w.idle = nil
	w.mu.Unlock()
	if c == nil {
		return nil
	}
	c.expiry.Stop()
	if !isIdle(c.Conn) {
		c.Close()
		return nil
	}
	return c
}

// callsOften reports whether this call follows the last one so soon that a kept connection would have served it. Only
// then is one kept: idle connections of a hundred hourly jobs would burden the app for nothing.
func (w *transport) callsOften() bool {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	often := !w.keepNone && now.Sub(w.last) < idleLimit
	w.last = now
	return often
}

// stopKeeping ends the keeping of connections for good.
func (w *transport) stopKeeping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepNone = true
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
	err = rc.Read(func(fd uintptr) bool {
		again = peek(int(fd))
		return true
	})
	return err == nil && again
}
