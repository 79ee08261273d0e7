package instance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hold holds the instance of a directory until the test gives it up.
func hold(t *testing.T, dir, id string) *Instance {
	t.Helper()
	i, err := Hold(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() }) // most were closed before
	return i
}

func ids(i *Instance) (all []string) {
	for _, p := range i.Dead {
		all = append(all, p.ID)
	}
	return all
}

func wants(t *testing.T, i *Instance, want ...string) {
	t.Helper()
	if got := ids(i); !slices.Equal(got, want) {
		t.Errorf("dead are %v, want %v", got, want)
	}
}

func TestWhoHoldsAnInstanceKnowsThatThoseBeforeAreDead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	one := hold(t, dir, "one")
	wants(t, one)
	_ = one.Close()
	two := hold(t, dir, "two")
	wants(t, two, "one")
	_ = two.Close()
	three := hold(t, dir, "three")
	wants(t, three, "one", "two")
	if own, err := unix.Getsid(0); err != nil || three.Dead[0].Session != own {
		t.Errorf("the session was %d, and not %d (%v)", three.Dead[0].Session, own, err)
	}
}

func TestAProcessThatEndsInOrderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_ = hold(t, dir, "one").Close()
	two := hold(t, dir, "two")
	wants(t, two, "one")
	if err := two.Leave(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	three := hold(t, dir, "three")
	wants(t, three)
	// One that has lost its file leaves that of another one alone.
	if err := os.Remove(three.file.Name()); err != nil {
		t.Fatal(err)
	}
	four := hold(t, dir, "four")
	if err := three.Leave(); err != nil {
		t.Error(err)
	}
	_ = four.Close()
	wants(t, hold(t, dir, "five"), "four")
	var none *Instance
	if err := errors.Join(none.Leave(), none.Close()); err != nil {
		t.Error(err)
	}
}

// A lock on a file that has lost its name keeps nobody away from the one that has it now.
func TestAFileThatWasRemovedIsNotHeld(t *testing.T) {
	dir := t.TempDir()
	one := hold(t, dir, "one")
	late, err := os.OpenFile(one.file.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := one.Leave(); err != nil {
		t.Fatal(err)
	}
	if dead, err := take(late, "boot", "late"); !errors.Is(err, errLeft) {
		t.Errorf("%v, %v", dead, err)
	}
}

func TestAProcessThatLivesIsNotBelievedToBeDead(t *testing.T) {
	dir := t.TempDir()
	one := hold(t, dir, "one")
	if i, err := Hold(dir, "impostor"); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, %v", i, err)
	}
	_ = one.Close()
	wants(t, hold(t, dir, "two"), "one") // and of the impostor, which may live, nothing is known
}

func TestOfAnotherBootNothingIsKnown(t *testing.T) {
	dir := t.TempDir()
	_ = hold(t, dir, "one").Close()
	real := bootID
	defer func() { bootID = real }()
	bootID = filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(bootID, []byte("01234567-89ab-cdef-0123-456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := hold(t, dir, "two")
	wants(t, two)
	_ = two.Close()
	bootID = real
	wants(t, hold(t, dir, "three")) // as little as of the first, since the one in between has said nothing of it
}

// The processes of another machine may live. No end of their file may stand below the new first line.
func TestALongerFileOfAnotherBootIsForgottenInFull(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"one", "two", "six"} { // as long as each other, as real ids are
		_ = hold(t, dir, id).Close()
	}
	real := bootID
	defer func() { bootID = real }()
	bootID = filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(bootID, []byte("01234567-89ab-cdef-0123-456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = hold(t, dir, "ten").Close()
	wants(t, hold(t, dir, "now"), "ten")
}

// A file that is a copy names processes that may live, as those of the file that it was copied from.
func TestACopyKnowsNothingOfThoseThatTheOriginalNames(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copied")
	_ = hold(t, dir, "one").Close()
	two := hold(t, dir, "two")
	cp := func(from, to string) {
		t.Helper()
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cp(dir, copied)
	beside := hold(t, copied, "beside")
	wants(t, beside)
	_ = beside.Close()
	wants(t, hold(t, copied, "after"), "beside") // it is a place like any other

	// A backup that is restored beneath a process that lives.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	cp(copied, dir)
	three := hold(t, dir, "three")
	wants(t, three)
	_, _ = three.Close(), two.Close()

	// A place that is moved stays the same.
	if err := os.Rename(dir, dir+" moved"); err != nil {
		t.Fatal(err)
	}
	wants(t, hold(t, dir+" moved", "four"), "three")
}

func TestWithoutABootIDNothingIsKnown(t *testing.T) {
	real := bootID
	defer func() { bootID = real }()
	bootID = filepath.Join(t.TempDir(), "none")
	if _, err := Hold(t.TempDir(), "one"); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

func TestADirectoryThatCannotBeUsedIsAnError(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(taken, "one"); err == nil || errors.Is(err, ErrHeld) {
		t.Error(err)
	}
}

func TestTheNewestProcessesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	for n := range remembered + 5 {
		_ = hold(t, dir, fmt.Sprint("p", n)).Close()
	}
	i := hold(t, dir, "last")
	if len(i.Dead) != remembered || i.Dead[0].ID != "p5" || i.Dead[remembered-1].ID != fmt.Sprint("p", remembered+4) {
		t.Errorf("%d: %v", len(i.Dead), ids(i))
	}
}

// Wherever a process is cut off as it writes, what it leaves names some of those that held the instance, or nothing.
func TestAFileThatWasCutOffNamesTheWholeLinesAlone(t *testing.T) {
	const boot = "01234567-89ab-cdef-0123-456789abcdef"
	text := boot + "\none 7\ntwo 8\n"
	for n := range len(text) + 1 {
		var want []Process
		if n >= len(boot+"\none 7\n") {
			want = append(want, Process{"one", 7})
		}
		if n == len(text) {
			want = append(want, Process{"two", 8})
		}
		if got := read([]byte(text[:n]), boot); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text[:n], got, want)
		}
	}
	for _, other := range []string{"", "\n", "\n\n", boot + "\n\none 7\n", boot + "\n 7\n", boot + "\none\n", boot + "\none x\n"} {
		if got := read([]byte(other), boot); len(got) != 0 {
			t.Errorf("%q: %v", other, got)
		}
	}
	if got := read([]byte("one 7\n"), ""); len(got) != 0 {
		t.Errorf("without a boot id: %v", got)
	}
}

// A program that the holder starts does not hold the instance on.
func TestAChildDoesNotInheritTheInstance(t *testing.T) {
	dir := t.TempDir()
	one := hold(t, dir, "one")
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", child.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", child.Process.Pid, fd.Name())); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("it has %s", to)
		}
	}
	_ = one.Close()
	wants(t, hold(t, dir, "two"), "one")
}
