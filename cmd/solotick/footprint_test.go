package main

import (
	"context"
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

func TestTheHeapStaysWithinTheContainersMemory(t *testing.T) {
	usual := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(usual)
	for _, c := range []struct {
		container int64
		set       string
		want      int64
	}{{0, "", usual}, {64 << 20, "1GiB", usual}, {64 << 20, "", 48 << 20}} {
		t.Setenv("GOMEMLIMIT", c.set)
		limitMemory(c.container)
		if n := debug.SetMemoryLimit(-1); n != c.want {
			t.Errorf("%+v: the limit is %d", c, n)
		}
	}
}
