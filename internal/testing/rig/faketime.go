package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Faketime is the library that moves the clock of a program which cannot do so itself, as in Java; "" if it is missing.
func Faketime() string {
	for _, dir := range []string{"/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime"} {
		if found, _ := filepath.Glob(dir + "/libfaketimeMT.so.1"); found != nil {
			return found[0]
		}
	}
	return ""
}

const fakes = "FAKETIME="

// FakeClock is what the environment of a program has for a clock that is fast.
func FakeClock(by time.Duration) []string {
	if by == 0 {
		return nil
	}
	return []string{"LD_PRELOAD=" + Faketime(), fmt.Sprintf("%s%+fs", fakes, by.Seconds())}
}

// forgetFakeClock removes what the library leaves in shared memory when its process is killed.
func forgetFakeClock(env []string, pid int) {
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, fakes) }) {
		return
	}
	left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime_s[he]m*_%d", pid))
	for _, file := range left {
		_ = os.Remove(file)
	}
}
