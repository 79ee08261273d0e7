package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The pod's limit is 64 MiB. Without a guard the first of these ends the process, the second takes 1.9 GiB, and the
// others some hundred MiB and more, at each look.
func TestAReplicaOutlivesAHostileRedisAndStaysSmall(t *testing.T) {
	for name, says := range map[string]string{
		"a text that overflows":           "*2\r\n$9223372036854775805\r\n",
		"an array that fills the memory":  "*500000000\r\n",
		"a line without end":              "+" + strings.Repeat("x", 20<<20),
		"attributes behind attributes":    strings.Repeat("|0\r\n", 1<<20),
		"many answers for one":            strings.Repeat("$4000000\r\n"+strings.Repeat("x", 4000000)+"\r\n", 10),
		"arrays that lie in one another":  strings.Repeat("*1\r\n", 1<<20),
		"a map that fills the memory":     "%50000000\r\n",
		"an error that is as long as can": "-ERR " + strings.Repeat("x", 4000) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := &atomic.Int32{}
			r := launch(t, fmt.Sprintf(everySecond, ""), nil, "--redis", "redis://"+countingSpeaker(t, asked, "-ERR unknown command 'HELLO'\r\n", says))
			r.awaitLine("trouble with Redis", func(l line) bool { return l["level"] == "ERROR" && strings.HasPrefix(l.text("msg"), "Redis ") })
			eventually(t, "further requests", func() bool {
				select {
				case <-r.done:
					t.Fatal("the replica has ended")
				default:
				}
				return asked.Load() >= 12
			})
			if mib := most(t, r.cmd.Process.Pid); mib > 64*raceMemory {
				t.Errorf("it took %d MiB", mib)
			} else {
				t.Logf("%d MiB", mib)
			}
			r.stop()
			for _, l := range r.raw {
				if len(l) > 5000 {
					t.Errorf("a line of %d bytes is in the log", len(l))
				}
			}
		})
	}
}

// most is the largest resident size that a process has had, in MiB.
func most(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
