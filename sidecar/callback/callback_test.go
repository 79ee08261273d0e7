package callback

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const heartbeat = 5 * time.Second

var errCancelled = errors.New("cancelled")

// accepted plays a call whose app has accepted the run, in a bubble. wait returns what Wait returned, and when.
func accepted(t *testing.T, lasts func(time.Duration) bool, f func(r *Runs, c *Call, cancel func(error), wait func() (Report, time.Duration, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := New("127.0.0.1:9748")
		c := r.Open("run", heartbeat, lasts)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		begun, done := time.Now(), make(chan struct{})
		var report Report
		var err error
		var took time.Duration
		go func() {
			defer close(done)
			report, err = c.Wait(ctx)
			took = time.Since(begun)
		}()
		synctest.Wait()
		f(r, c, cancel, func() (Report, time.Duration, error) {
			<-done
			return report, took, err
		})
	})
}

func mustBeat(t *testing.T, r *Runs, c *Call) {
	t.Helper()
	if d, err := r.Beat("run", c.Token()); err != nil || d != heartbeat {
		t.Errorf("a heartbeat was answered with %s, %v", d, err)
	}
}

func wantOver(t *testing.T, r *Runs, c *Call, why error) {
	t.Helper()
	_, err := r.Beat("run", c.Token())
	if over, ok := errors.AsType[*OverError](err); !ok || !errors.Is(over, why) {
		t.Errorf("a heartbeat was answered with %v, want that it is over: %v", err, why)
	}
}

func TestARunLastsUntilItsAppFinishesIt(t *testing.T) {
	for _, want := range []Report{{Outcome: Succeeded}, {Failed, "disk full"}, {Interrupted, "the app shuts down"}} {
		accepted(t, nil, func(r *Runs, c *Call, _ func(error), wait func() (Report, time.Duration, error)) {
			for range 10 {
				time.Sleep(heartbeat - time.Millisecond)
				mustBeat(t, r, c)
			}
			if err := r.Finish("run", c.Token(), want); err != nil {
				t.Error(err)
			}
			if got, took, err := wait(); err != nil || got != want || took != 10*(heartbeat-time.Millisecond) {
				t.Errorf("%+v, %v after %s", got, err, took)
			}
			wantOver(t, r, c, ErrOver)
		})
	}
}

func TestAnAppThatIsSilentForAHeartbeatCountsAsDead(t *testing.T) {
	for _, beats := range []int{0, 1, 3} {
		accepted(t, nil, func(r *Runs, c *Call, _ func(error), wait func() (Report, time.Duration, error)) {
			for range beats {
				time.Sleep(time.Second)
				mustBeat(t, r, c)
			}
			_, took, err := wait()
			if want := time.Duration(beats)*time.Second + heartbeat; !errors.Is(err, ErrSilent) || took != want {
				t.Errorf("after %d heartbeats: %v after %s, want %s", beats, err, took, want)
			}
			wantOver(t, r, c, ErrSilent)
			if err := r.Finish("run", c.Token(), Report{Outcome: Succeeded}); !errors.Is(err, ErrSilent) {
				t.Errorf("a late finish was answered with %v", err)
			}
		})
	}
}

// The app may work for a heartbeat from when it sent the last one that was answered. Nothing else may begin before.
func TestAnAppThatIsToldToEndIsWaitedFor(t *testing.T) {
	accepted(t, nil, func(r *Runs, c *Call, cancel func(error), wait func() (Report, time.Duration, error)) {
		time.Sleep(time.Second)
		mustBeat(t, r, c)
		time.Sleep(time.Second)
		cancel(errCancelled)
		synctest.Wait()
		wantOver(t, r, c, errCancelled)
		if _, took, err := wait(); !errors.Is(err, errCancelled) || took != time.Second+heartbeat {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestAnAppThatIsToldToEndEndsTheWaitWithItsReport(t *testing.T) {
	for _, want := range []Report{{Outcome: Succeeded}, {Failed, "stopped"}, {Outcome: Interrupted}} {
		accepted(t, nil, func(r *Runs, c *Call, cancel func(error), wait func() (Report, time.Duration, error)) {
			mustBeat(t, r, c)
			cancel(errCancelled)
			time.Sleep(time.Second)
			if err := r.Finish("run", c.Token(), want); err != nil {
				t.Error(err)
			}
			if got, took, err := wait(); err != nil || got != want || took != time.Second {
				t.Errorf("%+v, %v after %s", got, err, took)
			}
		})
	}
}

func TestAnAppThatNeverHadLeaveToWorkIsNotWaitedFor(t *testing.T) {
	accepted(t, nil, func(r *Runs, c *Call, cancel func(error), wait func() (Report, time.Duration, error)) {
		time.Sleep(time.Second)
		cancel(errCancelled)
		if _, took, err := wait(); !errors.Is(err, errCancelled) || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// Whatever becomes of the replica, the lease lasts for as long as the app may work.
func TestAHeartbeatIsAnsweredOnlyWhileTheLeaseLastsForAnotherOne(t *testing.T) {
	var until time.Time
	lasts := func(d time.Duration) bool { return time.Until(until) >= d }
	accepted(t, lasts, func(r *Runs, c *Call, _ func(error), wait func() (Report, time.Duration, error)) {
		until = time.Now().Add(heartbeat)
		mustBeat(t, r, c)
		time.Sleep(time.Nanosecond)
		if _, err := r.Beat("run", c.Token()); !errors.Is(err, ErrUnsure) {
			t.Errorf("a heartbeat was answered with %v", err)
		}
		time.Sleep(heartbeat / 2)
		until = time.Now().Add(2 * heartbeat) // the lease was renewed
		mustBeat(t, r, c)
		_ = r.Finish("run", c.Token(), Report{Outcome: Succeeded})
		wait()
	})
}

// An app whose heartbeats are refused because of the lease is not at fault: the run ends with the lease.
func TestARefusedHeartbeatGivesNoLeaveAndIsNoSilence(t *testing.T) {
	lasts := func(time.Duration) bool { return false }
	accepted(t, lasts, func(r *Runs, c *Call, _ func(error), wait func() (Report, time.Duration, error)) {
		time.Sleep(heartbeat / 2)
		if _, err := r.Beat("run", c.Token()); !errors.Is(err, ErrUnsure) || c.Beaten() {
			t.Errorf("a heartbeat was answered with %v", err)
		}
		if _, took, err := wait(); !errors.Is(err, ErrSilent) || took != heartbeat+heartbeat/2 {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A process that stood still finds the report before it finds that its lease is over.
func TestAReportThatComesAfterTheLeaseIsRefused(t *testing.T) {
	lasts := true
	r := New("127.0.0.1:9748")
	c := r.Open("run", heartbeat, func(time.Duration) bool { return lasts })
	mustBeat(t, r, c)
	lasts = false
	if err := r.Finish("run", c.Token(), Report{Outcome: Succeeded}); !errors.Is(err, errLate) {
		t.Errorf("the report was answered with %v", err)
	}
	lasts = true
	if err := r.Finish("run", c.Token(), Report{Outcome: Succeeded}); err != nil {
		t.Error(err)
	}
}

func TestAReportThatIsRepeatedGetsTheSameAnswer(t *testing.T) {
	r := New("127.0.0.1:9748")
	c := r.Open("run", heartbeat, nil)
	for range 2 {
		if err := r.Finish("run", c.Token(), Report{Failed, "x"}); err != nil {
			t.Error(err)
		}
	}
	if err := r.Finish("run", c.Token(), Report{Outcome: Succeeded}); !errors.Is(err, ErrOver) {
		t.Errorf("another report was answered with %v", err)
	}
	if got, err := c.Wait(t.Context()); err != nil || got.Outcome != Failed { // it came before the answer to the call
		t.Errorf("%+v, %v", got, err)
	}
	c.Close()
	if err := r.Finish("run", c.Token(), Report{Failed, "x"}); err != nil {
		t.Error(err)
	}
}

// Calls that are over keep the details of their reports.
func TestTheDetailOfAReportIsBounded(t *testing.T) {
	r := New("127.0.0.1:9748")
	c := r.Open("run", heartbeat, nil)
	if err := r.Finish("run", c.Token(), Report{Failed, strings.Repeat("x", MaxDetail-1) + "äöü"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Wait(t.Context()); err != nil || got.Detail != strings.Repeat("x", MaxDetail-1) { // without half a character
		t.Errorf("%d bytes are kept, %v", len(got.Detail), err)
	}
	c.Close()
}

func TestOnlyTheTokenOfTheAttemptReports(t *testing.T) {
	r := New("127.0.0.1:9748")
	first := r.Open("run", heartbeat, nil)
	first.Close()
	second := r.Open("run", heartbeat, nil)
	other := r.Open("other", heartbeat, nil)
	if _, err := r.Beat("run", first.Token()); !errors.Is(err, ErrOver) {
		t.Errorf("the token of an attempt that is over was answered with %v", err)
	}
	for _, token := range []string{"", "x", other.Token()} {
		if _, err := r.Beat("run", token); !errors.Is(err, ErrUnknown) {
			t.Errorf("token %q was answered with %v", token, err)
		}
		if err := r.Finish("run", token, Report{Outcome: Succeeded}); !errors.Is(err, ErrUnknown) {
			t.Errorf("token %q was answered with %v", token, err)
		}
	}
	if second.Beaten() || first.Token() == second.Token() {
		t.Error("a token served another attempt")
	}
	if want := "http://127.0.0.1:9748/v1/runs/run"; second.URL() != want {
		t.Errorf("the app reports to %s", second.URL())
	}
}

func TestOfCallsThatAreOverTheNewestAreRemembered(t *testing.T) {
	r := New("127.0.0.1:9748")
	open := r.Open("open", heartbeat, nil)
	var all []*Call
	for range kept + 1 {
		c := r.Open("run", heartbeat, nil)
		c.Close()
		all = append(all, c)
	}
	if _, err := r.Beat("run", all[0].Token()); !errors.Is(err, ErrUnknown) {
		t.Errorf("the oldest was answered with %v", err)
	}
	if _, err := r.Beat("run", all[1].Token()); !errors.Is(err, ErrOver) {
		t.Errorf("the one after it was answered with %v", err)
	}
	if _, err := r.Beat("open", open.Token()); err != nil || len(r.calls) != kept+1 {
		t.Errorf("%v, %d calls", err, len(r.calls))
	}
}

// The report and the end of the wait may come at the same instant.
func TestAReportThatCameLastIsNotLost(t *testing.T) {
	r := New("127.0.0.1:9748")
	c := r.Open("run", 0, nil)
	if err := r.Finish("run", c.Token(), Report{Outcome: Succeeded}); err != nil {
		t.Error(err)
	}
	if why := c.expire(t.Context(), false); why != nil {
		t.Errorf("the call is over by %v", why)
	}
	if got, err := c.Wait(t.Context()); err != nil || got.Outcome != Succeeded {
		t.Errorf("%+v, %v", got, err)
	}
}
