package embedded

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// mark marks an address as that of a store, until the mark is closed or its process ends. A stopped process answers
// nobody, and its mark tells it from other silent programs. The mark is an abstract socket: no file stays behind.
func mark(addr string) io.Closer {
	c, err := net.ListenPacket("unixgram", markOf(addr))
	if err != nil { // without a mark, only a stopped process is not known
		return io.NopCloser(nil)
	}
	return c
}

// marked reports whether a store has the address.
func marked(addr string) bool {
	c, err := net.ListenPacket("unixgram", markOf(addr))
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

func markOf(addr string) string { return "@solotick-embedded-" + addr }
