package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// embeddedVariable names the address of the embedded store for the program under test: the constant one may be in use.
const embeddedVariable = "TEST_EMBEDDED_ADDR"

// TestMain makes this test binary the program, too: as `solotick` in the PATH it runs command lines like the real one.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"solotick": func() {
		if addr := os.Getenv(embeddedVariable); addr != "" {
			embeddedAddr = addr
		}
		main()
	}})
}
