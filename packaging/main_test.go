// Package packaging holds the files of a release to account: they are made as .goreleaser.yaml says, installed, tried and
// removed, by the commands of docs/install.md among others.
package packaging

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// dist is for `make release-snapshot`. Without it, the libraries that goreleaser calls make the packages.
var dist = flag.String("dist", "", "the directory with the files that goreleaser has made")

const inside = "SOLOTICK_PACKAGING_INSIDE"

// The tests mount file systems. They do so in a mount namespace of their own: the machine never sees a mount, and the
// kernel undoes them all when the tests end, however they end.
func TestMain(m *testing.M) {
	if os.Getuid() != 0 || os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.Env = append(os.Environ(), inside+"=1")
	self.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := self.Run(); err != nil {
		if self.ProcessState == nil {
			fmt.Fprintln(os.Stderr, "starting the tests in a mount namespace:", err)
		}
		os.Exit(1)
	}
}
