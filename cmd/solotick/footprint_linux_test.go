package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

const smaps = `00400000-00a5b000 r-xp 00000000 fe:00 9977936                            /usr/bin/solo tick
Rss:                6380 kB
Anonymous:             0 kB
00a5b000-00b00000 r--p 0065b000 fe:00 9977936                            /usr/bin/solo tick
Rss:                 600 kB
Anonymous:             4 kB
00b00000-00c00000 rw-p 00700000 fe:00 9977936                            /usr/bin/solo tick
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 12                         /lib/ld.so
Anonymous:             0 kB
7f0000002000-7f0000003000 r--p 00000000 fe:00 9977936                    /usr/bin/solo tick
Anonymous:             0 kB
VmFlags: rd mr mw me
`

func TestOnlyPagesThatTheFileHoldsAreGivenBack(t *testing.T) {
	got := cleanMappings(strings.NewReader(smaps), "/usr/bin/solo tick")
	want := []mapping{{0x400000, 0xa5b000}, {0x7f0000002000, 0x7f0000003000}}
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestShrinkGivesMemoryBackAndHarmsNothing(t *testing.T) {
	work := func() { // touches much of the binary
		if _, err := config.Parse("table.yaml", []byte("service: shop\njobs: []\n"), os.LookupEnv); err != nil {
			t.Error(err)
		}
		if commandLine([]string{"next", "--help"}, &bytes.Buffer{}, &bytes.Buffer{}) != 0 {
			t.Error("help does not work")
		}
		if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
			t.Error(err)
		}
	}
	work()
	before := ofFiles(t)
	shrink()
	after := ofFiles(t)
	if after > before*3/4 {
		t.Errorf("%d kB of files are in memory after shrinking, %d kB before", after, before)
	}
	work()
}

// ofFiles is how much of what this process has in memory belongs to files, in kB.
func ofFiles(t *testing.T) int {
	t.Helper()
	return statusKB(t, os.Getpid(), "RssFile:")
}

// statusKB reads a figure of /proc/PID/status.
func statusKB(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatalf("reading %s of /proc/%d/status: %v", name, pid, err)
	}
	return kb
}
