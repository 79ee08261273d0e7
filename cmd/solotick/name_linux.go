package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// takeName takes a name for this process alone, on this machine and for a service: an abstract socket, which needs no
// directory, and which ends with its process. Not ok: another process has it. Where no socket can be made nobody can tell, and
// the name is this process'.
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
