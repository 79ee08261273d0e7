package nemesis

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// pace is from one beat of the pulse to the next.
	pace = 50 * time.Millisecond
	// hops is how often a beat goes to another process and back: about as often as a tick, from its claim to its
	// recorded end.
	hops = 8
	// standstill is how late a beat is on a machine that the judge cannot measure by its allowances.
	standstill = hair
)

// echoArg makes this program the other process of a pulse.
const echoArg = "echo"

func echo(string) error {
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

// pulse measures how late this machine wakes a process and passes bytes to another one and back. Replicas and Redis
// need the same; what Redis writes is in memory. It notes the stretches in which that took too long, until the test
// ends, and returns the id of the other process.
func pulse(t testing.TB, note func(from, to time.Time)) (pid int) {
	t.Helper()
	other := exec.Command(os.Args[0], echoArg, "-")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			for one := []byte{0}; ctx.Err() == nil; {
				began := time.Now()
				time.Sleep(pace)
				for range hops {
					if _, err := in.Write(one); err != nil {
						return err
					}
					if _, err := io.ReadFull(out, one); err != nil {
						return err
					}
				}
				if now := time.Now(); now.Sub(began) >= pace+standstill {
					note(began, now)
				}
			}
			return nil
		}()
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the pulse: %v", err)
		}
		_ = in.Close()
		_ = other.Wait() // it ends with its input
	})
	return other.Process.Pid
}

// still notes that the machine did not keep time.
func (r *record) still(from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stills = append(r.stills, span{from: from, to: to})
}

// stood returns the longest standstill of the machine that overlaps with [from, to].
func (r *record) stood(from, to time.Time) (longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.stills {
		if !s.from.After(to) && !s.to.Before(from) {
			longest = max(longest, s.to.Sub(s.from)-pace)
		}
	}
	return longest
}

// lateness are the findings that a late machine explains, and no others. It may excuse one of a hundred ticks, and few
// of a short run.
var lateness = []string{"started late", "started although a newer tick was due", "lost", "taken over late",
	"taken over late in its place", "its app had to stop, and nothing had happened", unharmed,
	lostLock + ", and nothing had happened", "no clear answer, and nothing had happened",
	"its app could not begin, and nothing had happened", "that its app had died was noticed late",
	"a lease without a holder", noLeaseMissed}

const fewLate = 5

// ofALostLease reports whether a finding may follow from a lease that was lost: its run had ended for the app alone, and
// a job that is run again has a second one.
func ofALostLease(what string, again bool) bool {
	return what == itsFateIs+lostLock || again && (what == "double" || strings.HasPrefix(what, itsFateIs))
}

// late reports whether a finding may be the machine's fault, and for how long it stood still near the tick, from before
// its claim until a takeover of its run would be over.
func (w *world) late(r *record, f finding) (stood time.Duration, late bool) {
	if !slices.Contains(lateness, f.what) && !ofALostLease(f.what, w.job(f.job).again) {
		return 0, false
	}
	end := f.tick
	if f.end.After(end) {
		end = f.end
	}
	stood = r.stood(f.tick.Add(-ttl), end.Add(longLease+dying))
	return stood, stood > 0
}

// maxStill is the share of its time for which a machine may stand still before the judge leaves findings open.
const maxStill = 0.01

// busy reports whether the machine did not keep time.
func (r *record) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum time.Duration
	for _, s := range r.stills {
		sum += s.to.Sub(s.from) - pace
	}
	return sum.Seconds() > maxStill*time.Since(r.began).Seconds()
}

// figuresOfTime says how well the machine kept time.
func (r *record) figuresOfTime() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest time.Duration
	for _, s := range r.stills {
		longest = max(longest, s.to.Sub(s.from)-pace)
	}
	return fmt.Sprintf("the machine stood still %d times, for %s at most",
		len(r.stills), longest.Round(time.Millisecond))
}
