// Package packaging holds the files of a release to account: they are made as .goreleaser.yaml says, installed, tried
// and removed, by the commands of docs/install.md among others.
package packaging

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dist is for `make release-snapshot`. Without it, the libraries that goreleaser calls make the packages.
var dist = flag.String("dist", "", "the directory with the files that goreleaser has made")

const inside = "SOLOTICK_PACKAGING_INSIDE"

// The tests mount file systems. They do so in a mount namespace of their own: the machine never sees a mount, and the
// kernel undoes them all when the tests end, however they end.
func TestMain(m *testing.M) {
	if os.Getuid() != 0 || os.Getenv(inside) != "" {
		os.Exit(run(m))
	}
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.Env = append(os.Environ(), inside+"=1")
	self.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := self.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "making a mount namespace:", err)
		os.Exit(run(m)) // newMachine says what is not run
	}
	if self.Wait() != nil {
		os.Exit(1)
	}
}

func run(m *testing.M) int {
	flag.Parse()
	if os.Getenv(inside) != "" {
		// `make build` writes to bin, which is the developer's: here it is another directory.
		bin := filepath.Join(repository, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := unix.Mount("tmpfs", bin, "tmpfs", 0, ""); err != nil {
			fmt.Fprintln(os.Stderr, "mounting bin:", err)
			return 1
		}
	}
	defer func() {
		if *dist == "" && made.dir != "" {
			os.RemoveAll(made.dir)
		}
	}()
	return m.Run()
}
