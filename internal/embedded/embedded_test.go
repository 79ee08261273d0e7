package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/solotick/solotick/internal/testing/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anywhere listens at a free address.
func anywhere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// process is what one process does with the store.
type process struct {
	*Store
	took chan struct{}
	end  func() // and waits
}

func start(t *testing.T, addrs ...string) *process {
	t.Helper()
	s, err := Open(addrs...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Store: s, took: make(chan struct{}, 1)}
	serving := s.Serving()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, func() { p.took <- struct{}{} })
	}()
	p.end = func() {
		cancel()
		<-done
	}
	t.Cleanup(p.end)
	if serving {
		p.took <- struct{}{}
	}
	return p
}

func TestTheFirstServesAndTheOthersJoin(t *testing.T) {
	addr := rig.FreeAddr(t)
	first := start(t, addr)
	<-first.took
	for range 2 {
		s, err := Open(addr)
		if err != nil {
			t.Fatal(err)
		}
		if s.Serving() {
			t.Error("two processes serve at one address")
		}
	}
	if err := ask(addr); err != nil {
		t.Errorf("the store does not say that it is one: %v", err)
	}
}

func TestExactlyOneOfManyThatStartAtOnceServes(t *testing.T) {
	addr := rig.FreeAddr(t)
	stores := make([]*Store, 8)
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() { stores[i], errs[i] = Open(addr) })
	}
	all.Wait()
	serving := 0
	for i, s := range stores {
		if errs[i] != nil {
			t.Error(errs[i])
		} else if s.Serving() {
			serving++
			s.server.close()
		}
	}
	if serving != 1 {
		t.Errorf("%d processes serve, want 1", serving)
	}
}

func TestAnotherServesAnEmptyStoreWhenTheServingProcessEnds(t *testing.T) {
	addr := rig.FreeAddr(t)
	first := start(t, addr)
	<-first.took
	if err := first.server.mini.Set("key", "value"); err != nil {
		t.Fatal(err)
	}
	others := []*process{start(t, addr), start(t, addr)}
	first.end()
	var heir *process
	select {
	case <-others[0].took:
		heir = others[0]
	case <-others[1].took:
		heir = others[1]
	case <-time.After(time.Minute):
		t.Fatal("nobody took the store over")
	}
	if err := ask(addr); err != nil {
		t.Fatal(err)
	}
	heir.end() // so that its server may be looked at
	if heir.server.mini.Exists("key") {
		t.Error("the new store is not empty")
	}
}

func TestWhatAnyLocalProcessSendsEndsItsOwnConnectionAlone(t *testing.T) {
	addr := rig.FreeAddr(t)
	start(t, addr)
	for _, sent := range []string{"*-1\r\n", "*0\r\n", "*2\r\n$9223372036854775805\r\n", "*1\r\n$9000000000\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := fmt.Fprint(c, sent); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: %q, %v", sent, got, err)
		}
		c.Close()
	}
	if err := ask(addr); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatStopsLeavesItsAddressFree(t *testing.T) {
	addr := rig.FreeAddr(t)
	for range 3 {
		p := start(t, addr)
		select {
		case <-p.took:
		default:
			t.Fatal("joined a store that has ended")
		}
		p.end()
	}
}

// stranger listens and treats every connection alike.
func stranger(t *testing.T, treat func(net.Conn)) string {
	t.Helper()
	l := anywhere(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				treat(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func TestAnotherProgramAtTheAddressIsAnError(t *testing.T) {
	hear := func(c net.Conn) { _, _ = c.Read(make([]byte, 256)) }
	for name, c := range map[string]struct {
		treat func(net.Conn)
		want  string
	}{
		"a real Redis":               {func(c net.Conn) { hear(c); fmt.Fprint(c, "-ERR unknown command 'SOLOTICK.EMBEDDED'\r\n") }, "another program"},
		"a web server":               {func(c net.Conn) { hear(c); fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "another program"},
		"one that hangs up":          {func(net.Conn) {}, "another program"},
		"one that never ends a line": {func(c net.Conn) { fmt.Fprint(c, strings.Repeat("x", 4096)); hear(c) }, "another program"},
		"one that says nothing":      {func(c net.Conn) { hear(c); hear(c) }, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := stranger(t, c.treat)
			_, err := Open(addr)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), addr) {
				t.Errorf("got error %v, want one that names %s and has %q", err, addr, c.want)
			}
		})
	}
}

// silent listens and accepts nobody.
func silent(t *testing.T) string {
	t.Helper()
	l := anywhere(t)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestTheStoreTakesTheNextAddressThatIsFree(t *testing.T) {
	t.Parallel()
	web := stranger(t, func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	addrs := []string{web, silent(t), rig.FreeAddr(t)}
	if got := Find(addrs...); got != web {
		t.Errorf("there is no store, and Find says %s, want the first of %v", got, addrs)
	}
	first := start(t, addrs...)
	<-first.took
	second := start(t, addrs...)
	if first.At() != addrs[2] || second.At() != addrs[2] || second.Serving() {
		t.Errorf("the store is at %s and %s, want %s", first.At(), second.At(), addrs[2])
	}
	if got := Find(addrs...); got != addrs[2] {
		t.Errorf("Find says %s, want %s", got, addrs[2])
	}
}

// The program that had the usual port has ended meanwhile. A second store would fire each tick again.
func TestAStoreAtALaterAddressIsJoinedAlthoughAnEarlierOneIsFree(t *testing.T) {
	addrs := []string{rig.FreeAddr(t), rig.FreeAddr(t)}
	start(t, addrs[1])
	second := start(t, addrs...)
	if second.Serving() || second.At() != addrs[1] {
		t.Errorf("it serves %v at %s", second.Serving(), second.At())
	}
}

func TestManyThatStartAtOnceWhereAPortIsTakenHaveOneStore(t *testing.T) {
	t.Parallel()
	addrs := []string{stranger(t, func(net.Conn) {}), rig.FreeAddr(t), rig.FreeAddr(t)}
	stores := make([]*Store, 8)
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() { stores[i], errs[i] = Open(addrs...) })
	}
	all.Wait()
	for i, s := range stores {
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		if s.Serving() {
			defer s.server.close()
		}
		if s.At() != stores[0].At() {
			t.Errorf("stores at %s and at %s", stores[0].At(), s.At())
		}
	}
}

func TestAnAddressThatCannotBeListenedOnIsAnError(t *testing.T) {
	if _, err := Open("192.0.2.1:1"); err == nil || !strings.Contains(err.Error(), "opening the embedded store") {
		t.Errorf("got error %v", err)
	}
}
