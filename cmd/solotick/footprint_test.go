package main

import (
	"context"
	"runtime"
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
