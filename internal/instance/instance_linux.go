package instance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/file"
)

// bootID names the kernel since it was started. It is a variable for tests.
var bootID = "/proc/sys/kernel/random/boot_id"

// A process that is killed while it starts another one leaves the lock to that one until it has become the other
// program, which takes about a millisecond.
const (
	tries = 10
	pause = 10 * time.Millisecond
)

// errLeft says that the file was removed before this process had the lock on it.
var errLeft = errors.New("another process has just left it")

// Hold makes this process, which has the id, the one that holds the instance of a directory, which it makes. It returns
// ErrHeld if another one does. If it returns any other error, nothing is known of the instance, either.
func Hold(dir, id string) (*Instance, error) {
	text, err := os.ReadFile(bootID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	boot := strings.TrimSpace(string(text))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		f, err := file.OpenOwn(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		dead, err := take(f, boot, id)
		if err == nil {
			return &Instance{Dead: dead, file: f}, nil
		}
		err = errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
		if !errors.Is(err, errLeft) || try == tries {
			return nil, err
		}
	}
}

func take(f *os.File, boot, id string) (dead []Process, err error) {
	if err := lock(f); err != nil {
		return nil, err
	}
	if !hasName(f) { // another process has just left
		return nil, errLeft
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil, err
	}
	var own unix.Stat_t
	session, err := unix.Getsid(0)
	if err := errors.Join(err, unix.Fstat(int(f.Fd()), &own)); err != nil {
		return nil, err
	}
	origin := fmt.Sprintf("%s %d %d", boot, own.Dev, own.Ino)
	dead = read(text, origin)
	return dead, write(f, origin, append(dead[:len(dead):len(dead)], Process{ID: id, Session: session}))
}

// lock locks a file for as long as it is open. os.OpenFile has it closed in programs that this process becomes or
// starts.
func lock(f *os.File) error {
	for try := 1; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		case try == tries:
			return ErrHeld
		}
		time.Sleep(pause)
	}
}
