package call

import (
	"context"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/netip"
	"testing"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// fakeDNS is a name server, spoken to over a pipe, that answers every question for an IPv4 address with the given one.
func fakeDNS(t *testing.T, address string) func(context.Context, string, string) (net.Conn, error) {
	ip := netip.MustParseAddr(address).As4()
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		go func() {
			for { // a stream, so each message has its length before it
				var size [2]byte
				if _, err := io.ReadFull(theirs, size[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(theirs, q); err != nil {
					return
				}
				theirs.Write(dnsAnswer(q, ip))
			}
		}()
		return ours, nil
	}
}

func dnsAnswer(q []byte, ip [4]byte) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	end += 5 // the root label, type and class
	a := append([]byte{}, q[:end]...)
	isA := q[end-3] == 1
	a[2], a[3] = 0x81, 0x80 // an answer, recursion available, no error
	copy(a[6:12], []byte{0, 0, 0, 0, 0, 0})
	if isA {
		a[7] = 1
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		a = append(a, ip[:]...)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)
}
