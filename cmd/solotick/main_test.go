package main

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solotick/solotick/lock"
)

// Variables for the program under test.
const (
	embeddedVariable = "TEST_EMBEDDED_ADDRS" // addresses of the embedded store: the constant ones may be in use
	hurryVariable    = "TEST_HURRY"          // "1" where nothing is said again only after a minute
	stillVariable    = "TEST_STILL"          // "1" where the clock of Redis stands still
)

// tests are those of this package.
type tests struct{ *testing.M }

// Run removes afterwards what the tests share. It keeps replicas without a state directory from leaving files on this
// machine: they have no place to come back to, unless a test names one.
func (t tests) Run() int {
	_ = os.Setenv("XDG_RUNTIME_DIR", os.DevNull)
	var err error
	if shared, err = os.MkdirTemp("", "solotick"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(shared)
	if signal.Ignored(syscall.SIGHUP) { // by nohup: no program that a test starts may inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	return t.M.Run()
}

// TestMain makes this test binary the program, too: as `solotick` in the PATH it runs command lines like the real one.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"solotick": func() {
		if addrs := os.Getenv(embeddedVariable); addrs != "" {
			embeddedAddrs = strings.Split(addrs, ",")
		}
		if os.Getenv(hurryVariable) != "" {
			complainEvery = 100 * time.Millisecond
		}
		a := &app{out: os.Stdout, err: os.Stderr, operate: patientVerbs}
		if os.Getenv(stillVariable) != "" {
			a.operate.Boottime = still
		}
		private()
		os.Exit(a.commandLine(os.Args[1:]))
	}})
}

// patientVerbs wait long for Redis: a busy machine may take seconds for a round trip. A longer time would be waited for
// where TLS meets a plain port.
var patientVerbs = lock.Options{Timeout: 10 * time.Second}

// commandLine runs one command line in this process, and returns the exit code.
func commandLine(args []string, out, errOut io.Writer) int {
	return (&app{out: out, err: errOut, operate: patientVerbs}).commandLine(args)
}

// still is a Boottime that stands still. Where Redis' clock stands still as well, what a verb prints does not depend on
// how long it takes.
func still() time.Duration { return time.Hour }

// shared is a directory for what several tests need.
var shared string
