package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// takeName reserves a replica name of a service for this process on this machine. It binds an abstract socket, which
// needs no directory and ends with its process. ok is false if another process has the name. If no socket can be made,
// takeName cannot tell, and returns true.
func takeName(name, service string) (free func(), ok bool) {
	address := fmt.Sprintf("@solotick-%x", sha256.Sum256([]byte(service+"/"+name)))
	c, err := net.ListenPacket("unixgram", address)
	switch {
	case err == nil:
		return func() { _ = c.Close() }, true
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, false
	}
	return func() {}, true
}
