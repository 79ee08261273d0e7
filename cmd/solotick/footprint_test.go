package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

var burst [][]byte // where the compiler cannot keep it from the heap

func TestWhatABurstTookIsGivenBackWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			returnMemory(ctx)
		}()
		time.Sleep(settled + time.Second)
		for range 64 {
			burst = append(burst, make([]byte, 1<<20))
		}
		burst = nil
		time.Sleep(tidied)
		synctest.Wait()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if kept := m.HeapSys - m.HeapReleased; kept > 32<<20 {
			t.Errorf("%d MiB of heap are kept", kept>>20)
		}
		cancel()
		<-ended
	})
}

func TestTheContainersMemoryIsThatOfItsControlGroup(t *testing.T) {
	root := t.TempDir()
	if n := containerMemory(root); n != 0 {
		t.Errorf("without a group: %d", n)
	}
	for text, want := range map[string]int64{"67108864\n": 64 << 20, "max\n": 0, "": 0} {
		for name, text := range map[string]string{"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": text} {
			file := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if n := containerMemory(root); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}

func TestAReplicaRunsOnOneCore(t *testing.T) {
	usual := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(usual)
	for set, want := range map[string]int{"2": 2, "": 1} {
		runtime.GOMAXPROCS(2)
		t.Setenv("GOMAXPROCS", set)
		if useLittle(0); runtime.GOMAXPROCS(0) != want {
			t.Errorf("GOMAXPROCS=%q: it runs on %d", set, runtime.GOMAXPROCS(0))
		}
	}
}

func TestTheHeapStaysWithinTheContainersMemory(t *testing.T) {
	t.Setenv("GOMAXPROCS", "as it is")
	usual := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(usual)
	for _, c := range []struct {
		container int64
		set       string
		want      int64
	}{{0, "", usual}, {64 << 20, "1GiB", usual}, {64 << 20, "", 48 << 20}} {
		t.Setenv("GOMEMLIMIT", c.set)
		useLittle(c.container)
		if n := debug.SetMemoryLimit(-1); n != c.want {
			t.Errorf("%+v: the limit is %d", c, n)
		}
	}
}
