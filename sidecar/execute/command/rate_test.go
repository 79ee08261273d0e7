package command

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// The log bounds what a run prints in a loop, at once as well as for long, and each line
// that the log lacks is told of.
func TestTheLogTakesOnlySoMuchOfARunsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log records
		out := &output{log: slog.New(&log), rate: new(rate)}
		const size = 800 // with what else stands in a line of the log: a thousand
		said := 0
		say := func(lines int, pause time.Duration) {
			for range lines {
				out.line("stdout", []byte(strings.Repeat("x ", size/2)), false)
				time.Sleep(pause)
			}
			said += lines
		}
		count := func() (lines, told int) {
			for _, l := range log.text {
				n, leftOut := strings.CutPrefix(l[strings.LastIndexByte(l, ' ')+1:], "lines=")
				if !leftOut {
					lines++
				} else if n, err := strconv.Atoi(n); err != nil {
					t.Error(err)
				} else {
					told += n
				}
			}
			return lines, told
		}

		say(logBurst/1000, 0) // all of that is taken
		if lines, told := count(); lines != said || told != 0 {
			t.Fatalf("of a burst of %d lines the log has %d, and tells of %d", said, lines, told)
		}
		say(20_000, 5*time.Millisecond) // for a hundred seconds
		lines, _ := count()
		if got := lines - logBurst/1000; got < 60*logPerSecond/1000 || got > 110*logPerSecond/1000 {
			t.Errorf("in a hundred seconds the log has taken %d lines", got)
		}
		if extra := len(log.text) - lines; extra > 100 {
			t.Errorf("%d lines tell of those that were left out", extra)
		}
		out.close(0)
		if lines, told := count(); lines+told != said {
			t.Errorf("%d lines were printed: the log has %d, and tells of %d", said, lines, told)
		}

		time.Sleep(2 * time.Minute)
		log.text, said = nil, 0
		say(logBurst/1000, 0)
		if lines, told := count(); lines != said || told != 0 {
			t.Errorf("after a rest the log has %d of %d lines, and tells of %d", lines, said, told)
		}
		if tail, _ := out.words(); len(tail) < execute.MaxOutput-1 {
			t.Errorf("the tail has %d bytes", len(tail))
		}
	})
}

// A job of every second that prints 3 MiB each time wrote 260 GB a day.
func TestTheRunsOfAJobShareWhatTheLogTakes(t *testing.T) {
	var log records
	loud := New(config.Exec{Command: []string{"sh", "-c", `yes "so $(printf %0797d 0)" | head -c 3000000`}},
		Options{Log: slog.New(&log), Env: []string{"PATH=/usr/bin:/bin"}})
	began := time.Now()
	for range 3 {
		wantStatus(t, loud.Execute(t.Context(), aRun()), execute.Succeeded)
	}
	size, told := 0, false
	for _, l := range log.text {
		size += len(l)
		told = told || strings.Contains(l, "lines were left out")
	}
	// A busy machine may take so long for them that the log takes all of it.
	took := time.Since(began)
	if most := (logBurst + int(took.Seconds()*logPerSecond)) * 5 / 4; size < logBurst/2 || size > most || !told && most < 9_000_000 {
		t.Errorf("three runs that printed 9 MB in %s wrote %d bytes into the log; told of it: %t", took, size, told)
	}
}
