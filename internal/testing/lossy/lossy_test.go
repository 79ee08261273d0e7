package lossy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a miniredis behind a proxy, and a client of each.
type bench struct {
	mini   *miniredis.Miniredis
	proxy  *Proxy
	client *redis.Client
}

func newBench(t *testing.T, tcp bool) *bench {
	t.Helper()
	b := &bench{mini: miniredis.NewMiniRedis()}
	b.proxy = New(func(context.Context) (net.Conn, error) { return b.mini.Dial() })
	o := &redis.Options{MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second, ReadTimeout: time.Second,
		ContextTimeoutEnabled: true, Dialer: b.proxy.Dial,
		// The client would look its own address up in DNS, which no bubble allows.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	if tcp {
		addr, err := b.proxy.Listen()
		if err != nil {
			t.Fatal(err)
		}
		o.Addr, o.Dialer = addr, nil
		o.DialTimeout, o.ReadTimeout = 5*time.Second, 5*time.Second // a busy machine answers late
	}
	b.client = redis.NewClient(o)
	t.Cleanup(func() {
		_ = b.client.Close()
		b.proxy.Close()
		b.mini.Close()
	})
	return b
}

// overBoth runs a case over TCP, and in memory in a bubble.
func overBoth(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Run("tcp", func(t *testing.T) { f(t, newBench(t, true)) })
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newBench(t, false)) })
	})
}

func get(t *testing.T, b *bench, key string) string {
	t.Helper()
	v, err := b.mini.Get(key)
	if err != nil && !errors.Is(err, miniredis.ErrKeyNotFound) {
		t.Fatal(err)
	}
	return v
}

func TestWhatNoFaultIsAimedAtPasses(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		n := b.proxy.Count(Command("set"))
		if err := b.client.Set(ctx, "k", "v\r\n*1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if v, err := b.client.Get(ctx, "k").Result(); err != nil || v != "v\r\n*1" {
			t.Fatalf("GET: %q, %v", v, err)
		}
		if n.N() != 1 {
			t.Fatalf("counted %d SETs", n.N())
		}
	})
}

func TestLostReplyComesAfterTheRequestWasRun(t *testing.T) {
	for name, action := range map[string]Action{"cut": LoseReply, "hang": HangReply} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, b *bench) {
				ctx := t.Context()
				f := b.proxy.On(Command("SET"), 2, action)
				for i, wantErr := range []bool{false, true, false} {
					err := b.client.Set(ctx, fmt.Sprint("k", i), "v", 0).Err()
					if (err != nil) != wantErr {
						t.Fatalf("SET %d: %v", i, err)
					}
					if get(t, b, fmt.Sprint("k", i)) != "v" {
						t.Fatalf("SET %d did not arrive", i)
					}
				}
				<-f.Struck()
			})
		})
	}
}

func TestLostRequestDoesNotArriveUntilItIsDelivered(t *testing.T) {
	for name, action := range map[string]Action{"cut": LoseRequest, "hang": HangRequest} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, b *bench) {
				ctx := t.Context()
				f := b.proxy.On(Command("INCR"), 1, action)
				if _, err := f.Deliver(ctx); err == nil {
					t.Fatal("a request that has not come was delivered")
				}
				if err := b.client.Incr(ctx, "n").Err(); err == nil {
					t.Fatal("no error")
				}
				if get(t, b, "n") != "" {
					t.Fatal("the request arrived")
				}
				for want := 1; want <= 2; want++ {
					if reply, err := f.Deliver(ctx); err != nil || reply != fmt.Sprintf(":%d\r\n", want) {
						t.Fatalf("late request: %q, %v", reply, err)
					}
				}
				if got := strings.Join(f.Words(), " "); got != "incr n" {
					t.Fatalf("words: %q", got)
				}
			})
		})
	}
}

func TestCopyPassesAndCanBeRepeated(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		f := b.proxy.On(Any, 1, Copy)
		if n, err := b.client.Incr(t.Context(), "n").Result(); err != nil || n != 1 {
			t.Fatalf("INCR: %d, %v", n, err)
		}
		if reply, err := f.Deliver(t.Context()); err != nil || reply != ":2\r\n" {
			t.Fatalf("copy: %q, %v", reply, err)
		}
	})
}

// A client that is not answered in time gives up its connection, as on a busy machine; who awaits the fault must not
// wait for ever.
func TestAFaultHasStruckWhenItsConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, server := net.Pipe()
		p := New(func(context.Context) (net.Conn, error) { return near, nil })
		go func() { _, _ = io.Copy(io.Discard, server) }() // it never answers
		f := p.On(Command("INCR"), 1, Copy)
		client, err := p.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-f.Struck():
			t.Error("it has struck before the answer")
		default:
		}
		_ = client.Close()
		<-f.Struck()
		p.Close()
		_ = server.Close()
	})
}

func TestRefusedRequestIsAnsweredByTheProxyAndDoesNotArrive(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		b.proxy.On(Command("SET"), 1, Refuse("READONLY not here"))
		err := b.client.Set(t.Context(), "k", "v", 0).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Fatalf("SET: %v", err)
		}
		if get(t, b, "k") != "" {
			t.Fatal("the request arrived")
		}
	})
}

func TestScriptIsKnownByHashAndBySource(t *testing.T) {
	const source = "return redis.call('INCR', KEYS[1])"
	script := redis.NewScript(source)
	overBoth(t, func(t *testing.T, b *bench) {
		n := b.proxy.Count(Script(script.Hash()))
		for range 2 {
			if err := script.Run(t.Context(), b.client, []string{"n"}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		b.client.Eval(t.Context(), "return 1", nil)
		if n.N() != 3 { // EVALSHA, EVAL, EVALSHA
			t.Fatalf("counted %d", n.N())
		}
	})
}

func TestCutAndRefusedConnectionsComeBack(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		if err := b.client.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.proxy.Refuse(true); err != nil {
			t.Fatal(err)
		}
		b.proxy.Cut()
		_ = b.client.Ping(ctx) // finds the connection gone
		if err := b.client.Ping(ctx).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("refused: %v", err)
		}
		if err := b.proxy.Refuse(false); err != nil {
			t.Fatal(err)
		}
		if err := b.client.Ping(ctx).Err(); err != nil {
			t.Fatalf("healed: %v", err)
		}
	})
}

func TestAConnectionThatIsBeingMadeDoesNotOutliveACut(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	connecting, connect := make(chan struct{}), make(chan struct{})
	p := New(func(context.Context) (net.Conn, error) {
		close(connecting)
		<-connect
		return far, nil
	})
	defer p.Close()
	dialed := make(chan error)
	go func() {
		_, err := p.Dial(t.Context(), "", "")
		dialed <- err
	}()
	<-connecting
	if err := p.Refuse(true); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	close(connect)
	if err := <-dialed; !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it lives: %v", err)
	}
}

func TestLateReplyIsLateByTheBubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		b.proxy.On(Command("TIME"), 1, Delay(700*time.Millisecond))
		start := time.Now()
		if err := b.client.Time(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 700*time.Millisecond {
			t.Fatalf("took %s", d)
		}
		b.proxy.On(Command("TIME"), 1, Delay(time.Hour))
		if err := b.client.Time(t.Context()).Err(); err == nil {
			t.Fatal("no timeout")
		}
		if d := time.Since(start); d != 1700*time.Millisecond {
			t.Fatalf("took %s", d)
		}
	})
}

func TestLongPipelineDoesNotDeadlock(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		pipe := b.client.WithTimeout(time.Minute).Pipeline()
		for i := range 5000 {
			pipe.Set(t.Context(), fmt.Sprint("key", i), strings.Repeat("x", 100), 0)
		}
		start := time.Now()
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatalf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestHealTakesBackWhatHasNotStruck(t *testing.T) {
	overBoth(t, func(t *testing.T, b *bench) {
		b.proxy.On(Any, 1, LoseReply)
		b.proxy.Heal()
		if err := b.client.Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRepliesOfEveryTypeAreReadWhole(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", "-ERR no\r\n", ":-1\r\n", "$-1\r\n", "$0\r\n\r\n", "$4\r\na\r\nb\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n", "!5\r\nERR x\r\n", "=5\r\ntxt:a\r\n",
		"%1\r\n+a\r\n:1\r\n", "~1\r\n+a\r\n", ">2\r\n+a\r\n+b\r\n", "|1\r\n+a\r\n+b\r\n+OK\r\n",
	} {
		got, err := readReply(bufio.NewReader(bytes.NewReader([]byte(reply + ":99\r\n"))))
		if err != nil || string(got) != reply {
			t.Errorf("%q: read %q, %v", reply, got, err)
		}
	}
}

func TestGarbageIsAnErrorAndNoPanic(t *testing.T) {
	for _, text := range []string{"", "\n", "?1\r\n", "$x\r\n", "*1\r\n", "$5\r\nab", "*1\r\n?\r\n"} {
		if _, err := readReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q was read as a reply", text)
		}
	}
	if _, _, err := readRequest(bufio.NewReader(strings.NewReader("PING\r\n"))); err == nil {
		t.Error("an inline command was read as a request")
	}
}
