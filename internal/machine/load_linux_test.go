package machine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// plant writes the files of a machine.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const memory = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n"

// stat is /proc/stat of a machine after some ticks of work and of rest.
func stat(work, idle int) string {
	return fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n", work, idle)
}

func TestTheLoadOfAMachineIsThatOfTheLastSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reader{root: t.TempDir()}
		work, idle := 1000, 5000
		reads := func(cpu float64) {
			t.Helper()
			plant(t, r.root, map[string]string{"proc/stat": stat(work, idle), "proc/meminfo": memory})
			got, err := r.Read()
			if err != nil || math.Abs(got.CPU-cpu) > 0.001 || got.Memory != 0.25 {
				t.Errorf("%+v, %v; want %v of the CPUs, and a quarter of the memory", got, err, cpu)
			}
		}
		reads(0)
		for second := range 20 { // it works for ten seconds, and then rests
			time.Sleep(time.Second)
			if second < 10 {
				work += 150
				idle += 50
			} else {
				idle += 200
			}
			switch second {
			case 0, 5, 9:
				reads(0.75)
			case 12:
				reads(0.75 * 2 / 5)
			case 19:
				reads(0)
			default:
				plant(t, r.root, map[string]string{"proc/stat": stat(work, idle)})
				if _, err := r.Read(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestALimitOfTheContainerCountsIfMoreOfItIsUsed: half a CPU, of which all is used, on a machine that rests.
func TestALimitOfTheContainerCountsIfMoreOfItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reader{root: t.TempDir()}
		const group = "sys/fs/cgroup/system.slice/solotick.service/"
		files := map[string]string{"proc/stat": stat(0, 1000), "proc/meminfo": memory, "proc/self/cgroup": "0::/system.slice/solotick.service\n",
			group + "cpu.max": "50000 100000\n", group + "cpu.stat": "usage_usec 1000000\nuser_usec 1\n", group + "memory.max": "1000000\n",
			group + "memory.current": "900000\n", group + "memory.stat": "anon 1\ninactive_file 100000\n"}
		plant(t, r.root, files)
		if got, err := r.Read(); err != nil || got.CPU != 0 || got.Memory != 0.8 {
			t.Errorf("at first %+v, %v", got, err)
		}
		time.Sleep(4 * time.Second)
		files["proc/stat"], files[group+"cpu.stat"] = stat(200, 1600), "usage_usec 3000000\n"
		plant(t, r.root, files)
		if got, err := r.Read(); err != nil || math.Abs(got.CPU-1) > 0.001 {
			t.Errorf("when all is used %+v, %v", got, err)
		}
		files[group+"cpu.max"], files[group+"memory.max"] = "max 100000\n", "max\n"
		plant(t, r.root, files)
		if got, err := r.Read(); err != nil || math.Abs(got.CPU-0.25) > 0.001 || got.Memory != 0.25 {
			t.Errorf("without limits %+v, %v", got, err)
		}
	})
}

func TestThisMachineHasALoad(t *testing.T) {
	r := New()
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 300*time.Millisecond; { // something to see
	}
	got, err := r.Read()
	// A process that stood still between its looks at use and clock measures more than all. A share in per cent is far
	// above 2.
	if err != nil || got.CPU <= 0 || got.CPU > 2 || got.Memory <= 0 || got.Memory >= 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFilesThatAreOthersAreErrors(t *testing.T) {
	for what, files := range map[string]map[string]string{
		"none":      {},
		"no CPUs":   {"proc/stat": "intr 1\n", "proc/meminfo": memory},
		"no number": {"proc/stat": "cpu a b c d e\n", "proc/meminfo": memory},
		"no memory": {"proc/stat": stat(1, 1), "proc/meminfo": "x\n"},
	} {
		r := &Reader{root: t.TempDir()}
		plant(t, r.root, files)
		if got, err := r.Read(); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestTheMemoryLimitIsThatOfTheControlGroup(t *testing.T) {
	r := &Reader{root: t.TempDir()}
	for text, want := range map[string]int64{"67108864\n": 64 << 20, "max\n": 0, "": 0} {
		plant(t, r.root, map[string]string{"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": text})
		if n := r.MemoryLimit(); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
	if n := (&Reader{root: t.TempDir()}).MemoryLimit(); n != 0 {
		t.Errorf("without a group: %d", n)
	}
}
