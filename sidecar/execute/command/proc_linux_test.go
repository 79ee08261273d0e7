package command

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
)

func TestTheLoadOfAProcessIsRead(t *testing.T) {
	page := int64(os.Getpagesize())
	for stat, want := range map[string]load{
		"42 (a) b) S 7 41 1 0 -1 4194304 9 9 9 9 10 20 3 4 20 0 1 0 777 1000000 25 18446744073709551615 1": {
			process{42, 7, 41, 'S'}, 777, 25 * page},
	} {
		if got, ok := parseLoad([]byte(stat)); !ok || got != want {
			t.Errorf("%q: %+v, %t", stat, got, ok)
		}
	}
	for _, stat := range []string{"", "1 (y) S 0 1 1", "42 (a) S 7 41 1 0 -1 0 9 9 9 9 10 20 3 4 20 0 1 0 x 1 25", "42 (a) S 7 41 1 0 -1 0 9 9 9 9 10 20 3 4 20 0 1 0 7 1 -25"} {
		if got, ok := parseLoad([]byte(stat)); ok {
			t.Errorf("%q: %+v", stat, got)
		}
	}
	own, err := loadOf(os.Getpid())
	if err != nil || own.pid != os.Getpid() || own.start == 0 || own.resident < 1<<20 {
		t.Errorf("%+v, %v", own, err)
	}
}

func TestOnlyWhatIsFreedWithAProcessIsHeld(t *testing.T) {
	const text = "1000-2000 ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:  500 kB\nPss_Anon:  100 kB\nPss_File: 300 kB\nPss_Shmem: 20 kB\nSwapPss:   3 kB\n"
	if n, ok := parseRollup([]byte(text)); !ok || n != 123<<10 {
		t.Errorf("%d, %t", n, ok)
	}
	for _, text := range []string{"", "Pss: 500 kB\nSwapPss: 3 kB\n", "Pss_Anon: x kB\n"} {
		if n, ok := parseRollup([]byte(text)); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func TestFilesInMemoryAreNotHeld(t *testing.T) {
	const size = 64 << 20
	file, err := os.CreateTemp(".", "*.tmp") // a directory for temporary files may be in memory itself
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	os.Remove(file.Name())
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	before, err := loadOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	held := before.held()
	touch := func(fd, flags int) (load, int64) {
		t.Helper()
		m, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(m)
		for i := 0; i < size; i += 4096 {
			m[i] = 1
		}
		now, err := loadOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return now, now.held()
	}
	const some = 32 << 20
	if now, heldNow := touch(int(file.Fd()), unix.MAP_SHARED); now.resident < before.resident+some || heldNow > held+some {
		t.Errorf("with a file: resident %d → %d, held %d → %d", before.resident, now.resident, held, heldNow)
	}
	for _, kind := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
		if _, heldNow := touch(-1, unix.MAP_ANON|kind); heldNow < held+some {
			t.Errorf("with memory: held %d → %d", held, heldNow)
		}
	}
}

// BenchmarkLook measures one look at a small command, with the process table that is there.
func BenchmarkLook(b *testing.B) {
	all, err := processes()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	l := limits{Resources: config.Resources{Memory: 1 << 40}}
	for b.Loop() {
		tree, err := treeOf(cmd.Process.Pid)
		if err == nil {
			err = l.over(tree)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(all)), "processes")
}
