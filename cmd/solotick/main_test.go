package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// embeddedVariable has the addresses of the embedded store for the program under test: the constant ones may be in use.
const embeddedVariable = "TEST_EMBEDDED_ADDRS"

// tests are those of this package.
type tests struct{ *testing.M }

// Run keeps replicas without a state directory from leaving files on this machine: they have no place to come back to, unless
// a test names one.
func (t tests) Run() int {
	_ = os.Setenv("XDG_RUNTIME_DIR", os.DevNull)
	return t.M.Run()
}

// TestMain makes this test binary the program, too: as `solotick` in the PATH it runs command lines like the real one.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"solotick": func() {
		if addrs := os.Getenv(embeddedVariable); addrs != "" {
			embeddedAddrs = strings.Split(addrs, ",")
		}
		main()
	}})
}
