package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the product's, and Package the program under test, as seen from the module's root.
const (
	Module  = "github.com/solotick/solotick"
	Package = "./cmd/solotick"
)

// Root is the directory of the product's module, also for a module that requires it.
func Root() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", Module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s: %w", Module, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// Build compiles the program pkg of the module in dir to the file out, static as the release is, with the versions that
// this module asks for. flags come before the package.
func Build(dir, pkg, out string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", out}, flags...), pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// SkewVariable is the environment variable that moves the wall clock of a program made by BuildSkewed: a Go duration.
const SkewVariable = "SOLOTICK_SKEW"

// The one place where Go reads the wall clock for time.Now. It goes through the vDSO, out of reach of LD_PRELOAD and of
// time namespaces, which have none for the real-time clock.
const (
	readsClock  = "sec, nsec, mono := runtimeNow()\n"
	readsSkewed = "sec, nsec, mono := runtimeNow()\n\tsec, nsec = skewed(sec, nsec)\n"
	skewSource  = `package time

import "syscall"

var skewSec, skewNsec = readSkew()

func readSkew() (int64, int32) {
	text, ok := syscall.Getenv("` + SkewVariable + `")
	if !ok {
		return 0, 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic("` + SkewVariable + `: " + err.Error())
	}
	sec, nsec := int64(d/Second), int32(d%Second)
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return sec, nsec
}

func skewed(sec int64, nsec int32) (int64, int32) {
	sec, nsec = sec+skewSec, nsec+skewNsec
	if nsec >= 1e9 {
		sec, nsec = sec+1, nsec-1e9
	}
	return sec, nsec
}
`
)

// BuildSkewed compiles a program whose time.Now is off by SkewVariable. Timers, the monotonic part of a Time and
// CLOCK_BOOTTIME stay as they are, as they do on a machine whose wall clock is wrong. scratch takes the changed
// sources.
func BuildSkewed(dir, pkg, out, scratch string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("building with a skewed clock: go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("building with a skewed clock: %w", err)
	}
	if n := strings.Count(string(source), readsClock); n != 1 {
		return fmt.Errorf("building with a skewed clock: %s reads the clock in %d places, not in 1: "+
			"this Go is another one", original, n)
	}
	patched, added := filepath.Join(scratch, "time.go"), filepath.Join(scratch, "skew.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: patched,
		filepath.Join(filepath.Dir(original), "solotick_skew.go"): added,
	}})
	if err != nil {
		return fmt.Errorf("building with a skewed clock: %w", err)
	}
	for name, text := range map[string]string{
		patched:                                strings.Replace(string(source), readsClock, readsSkewed, 1),
		added:                                  skewSource,
		filepath.Join(scratch, "overlay.json"): string(overlay),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("building with a skewed clock: %w", err)
		}
	}
	return Build(dir, pkg, out, "-overlay", filepath.Join(scratch, "overlay.json"))
}
