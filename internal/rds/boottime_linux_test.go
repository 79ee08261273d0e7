package rds

import (
	"testing"
	"time"
)

func TestBoottimeIsThatOfTheKernel(t *testing.T) {
	const inexact = 2 * time.Millisecond
	for range 1000 {
		before := clockBoottime()
		got := Boottime()
		if after := clockBoottime(); got < before-inexact || got > after+inexact {
			t.Fatalf("Boottime is %s, and the kernel's %s before and %s after", got, before, after)
		}
	}
}

func TestTimeInSuspendCounts(t *testing.T) {
	var boot, monotonic, wall, pause time.Duration
	reads := 0
	c := carried{
		read: func() time.Duration {
			reads++
			boot, monotonic, wall = boot+pause, monotonic+pause, wall+pause
			pause = 0
			return boot
		},
		clocks: func() (time.Duration, time.Duration) { return monotonic, wall },
	}
	for _, step := range []struct {
		what                  string
		boot, monotonic, wall time.Duration
		pause                 time.Duration // between the look at the other clocks and the system call
		reads                 int
	}{
		{"at first", time.Minute, 0, 50 * time.Hour, 0, 1},
		{"later", time.Second / 2, time.Second / 2, time.Second / 2, 0, 0},
		{"an hour later", time.Hour, time.Hour, time.Hour, 0, 1},
		{"after suspend", time.Hour, 0, time.Hour, 0, 1},
		{"after a short suspend", 3 * time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 0, 1},
		{"later", time.Second / 2, time.Second / 2, time.Second / 2, 0, 0},
		{"its wall clock set back", time.Second, time.Second, -time.Hour, 0, 1},
		{"interrupted while it reads", time.Hour, 0, time.Hour, time.Second / 10, 1},
		{"so that it is read again", 0, 0, 0, 0, 1},
		{"later", time.Second / 2, time.Second / 2, time.Second / 2, 0, 0},
	} {
		boot, monotonic, wall = boot+step.boot, monotonic+step.monotonic, wall+step.wall
		reads, pause = 0, step.pause
		if got := c.now(); got != boot {
			t.Errorf("%s: %s, want %s", step.what, got, boot)
		}
		if reads != step.reads {
			t.Errorf("%s: %d system calls, want %d", step.what, reads, step.reads)
		}
	}
}

func BenchmarkBoottime(b *testing.B) {
	for b.Loop() {
		Boottime()
	}
}

func BenchmarkClockBoottime(b *testing.B) {
	for b.Loop() {
		clockBoottime()
	}
}
