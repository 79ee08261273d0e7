package rig

import (
	"net"
	"strconv"
	"testing"
)

// TestAPortIsReservedUntilItsProcessEnds: a Redis that was killed comes back to its port, though other tests look for ports
// meanwhile.
func TestAPortIsReservedUntilItsProcessEnds(t *testing.T) {
	first, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	second, err := freePort(func() int { // as another process does
		n++
		return 20000 + (first-20000+n/3)%10000
	})
	if err != nil || second == first {
		t.Errorf("it got %d, which is taken: %v", second, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	if err != nil {
		t.Fatalf("the port cannot be used: %v", err)
	}
	l.Close()
}
