package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// embeddedVariable has the addresses of the embedded store for the program under test: the constant ones may be in use.
const embeddedVariable = "TEST_EMBEDDED_ADDRS"

// TestMain makes this test binary the program, too: as `solotick` in the PATH it runs command lines like the real one.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"solotick": func() {
		if addrs := os.Getenv(embeddedVariable); addrs != "" {
			embeddedAddrs = strings.Split(addrs, ",")
		}
		main()
	}})
}
