package rig

import (
	"net"
	"strconv"
	"testing"
)

func TestAFreePortIsTakenByNobody(t *testing.T) {
	taken := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if taken[port] || port >= 32768 {
			t.Errorf("port %d: taken %t, or one of those for outgoing connections", port, taken[port])
		}
		taken[port] = true
	}
}
