package service_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// listens has a replica listen until the case is over. The function that it returns waits for the next nudge, and
// returns how long that took; the case fails if none comes within a minute.
func listens(w *redisworld.World, r *redisworld.Replica) (next func(want string) time.Duration, stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	heard, done := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(done)
		r.Service.Listen(ctx, func(job string) { heard <- job }, func(lock.Heard) {})
	}()
	next = func(want string) time.Duration {
		w.Helper()
		began := time.Now()
		select {
		case job := <-heard:
			if job != want {
				w.Errorf("heard %q, want %q", job, want)
			}
		case <-time.After(time.Minute):
			w.Fatal("nothing is heard within a minute")
		}
		return time.Since(began)
	}
	return next, func() { cancel(); <-done }
}

func TestASubscriptionOfWhichNothingComesIsMadeAnew(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		next, stop := listens(w, a)
		defer stop()
		next(service.AnyJob)
		w.Pass(time.Second)
		before := w.Mini.CurrentConnectionCount()
		for range 3 {
			hangs := a.Proxy.On(lossy.Command("ping"), 1, lossy.HangRequest)
			<-hangs.Struck()
			if took := next(service.AnyJob); took > 6*time.Second {
				t.Errorf("it was made anew %s after a ping without an answer", took)
			}
		}
		w.Pass(time.Second)
		if n := w.Mini.CurrentConnectionCount(); n > before {
			t.Errorf("%d connections were open, and now %d are", before, n)
		}
	})
}

func TestASubscriptionThatIsLostAfterItWasOfUseIsMadeAnewAtOnce(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		next, stop := listens(w, a)
		defer stop()
		next(service.AnyJob)
		for n := range 8 {
			w.Pass(8 * time.Second) // Redis has answered a ping
			a.Proxy.Cut()
			if took := next("") + next(service.AnyJob); took > 200*time.Millisecond {
				t.Errorf("after loss %d it took %s", n+1, took)
			}
		}
	})
}

// Many proxies cut a connection that was silent for half a minute. At rest a replica asks when it wakes anyway.
func TestAtRestASilentSubscriptionIsCheckedWithinHalfAMinute(t *testing.T) {
	for phase := range 6 {
		redisworld.InBubble(t, func(w *redisworld.World) {
			w.Born()
			a := w.Replica("a")
			next, stop := listens(w, a)
			defer stop()
			next(service.AnyJob)
			a.Service.Resting.Store(true)
			w.Pass(time.Duration(phase) * 900 * time.Millisecond)
			w.Must(a.Service.Pause(w.Context(), redisworld.Job, "a message", time.Time{}))
			next(redisworld.Job)
			asked, last := make(chan struct{}, 10), time.Now()
			w.Mini.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
				if command == "PING" {
					asked <- struct{}{}
				}
				return false
			})
			for range 3 {
				<-asked
				if silent := time.Since(last); silent < 20*time.Second || silent > 27600*time.Millisecond {
					t.Errorf("phase %d: asked after %s of silence", phase, silent)
				}
				last = time.Now()
			}
		})
	}
}

// Redis' channels are those of all its databases. Staging may be in the next one, with the same service.
func TestMessagesOfAnotherDatabaseAreNotHeard(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		next, stop := listens(w, a)
		defer stop()
		next(service.AnyJob)
		client := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, DB: 1,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx) }}, w.Timeout())
		defer client.Close()
		other, err := service.New(client, redisworld.Service, lock.Options{})
		w.Must(err)
		_, err = other.Locks.Register(w.Context(), "foreign", "")
		w.Must(err)
		w.Must(other.Pause(w.Context(), "foreign", "of the other", time.Time{}))
		w.Must(a.Service.Pause(w.Context(), redisworld.Job, "of this one", time.Time{}))
		next(redisworld.Job)
	})
}
