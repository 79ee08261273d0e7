package main

import (
	"bufio"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shrink gives back what is not in use: freed heap, and the pages of the binary itself that the start, or a scrape,
// touched. Those are clean and come back from the page cache when they are used; a sidecar at rest uses half of them.
func shrink() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return // the memory stays mapped, and that is all
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range cleanMappings(f, exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings are those of the file exe, in the form of /proc/PID/smaps, that hold nothing but what the file holds.
// That a mapping is read-only now does not say so: a loader may have relocated it before, and a debugger writes anywhere.
// The kernel counts such pages as anonymous.
func cleanMappings(smaps io.Reader, exe string) []mapping {
	var clean []mapping
	var m mapping
	readOnly := false // m is a read-only mapping of exe
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		// 00400000-00a5b000 r-xp 00000000 fe:00 9977936   /usr/bin/solotick
		// Anonymous:             0 kB
		f := strings.Fields(lines.Text())
		if len(f) < 3 {
			continue
		}
		if from, to, ok := strings.Cut(f[0], "-"); ok {
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			m = mapping{uintptr(start), uintptr(end)}
			readOnly = err1 == nil && err2 == nil && strings.HasPrefix(f[1], "r-") && strings.HasSuffix(lines.Text(), " "+exe)
		}
		if readOnly && f[0] == "Anonymous:" && f[1] == "0" {
			clean = append(clean, m)
		}
	}
	return clean
}
