//go:build unix

package call

import "golang.org/x/sys/unix"

// peek reports whether the socket is open with nothing to read.
func peek(fd int) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN || err == unix.EWOULDBLOCK
}
