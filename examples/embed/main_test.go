package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is the output of an example, which ends when each job has fired twice.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	count map[string]int // by job and tick
	jobs  map[string]int
	end   func()
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := strings.Fields(string(line)) // report 09:00:02 by 123-1
	l.count[f[0]+" "+f[1]]++
	if l.jobs[f[0]]++; l.jobs["report"] >= 2 && l.jobs["invoices"] >= 2 {
		l.end()
	}
	return l.text.Write(line)
}

// fired runs the example until each job has fired twice, and looks at what was fired.
func fired(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &lines{count: map[string]int{}, jobs: map[string]int{}, end: cancel}
	if err := run(ctx, url, out); err != nil {
		t.Fatal(err)
	}
	for tick, n := range out.count {
		if n != 1 {
			t.Errorf("%s was fired %d times", tick, n)
		}
	}
	for _, job := range []string{"report", "invoices"} {
		if n := out.jobs[job]; n < 2 {
			t.Errorf("%s was fired %d times in a minute", job, n)
		}
	}
	if t.Failed() {
		t.Log(out.text.String())
	}
}

func TestEachTickIsFiredOnceOverTheEmbeddedRedis(t *testing.T) {
	t.Parallel()
	fired(t, "")
}

func TestEachTickIsFiredOnceOverARealRedis(t *testing.T) {
	t.Parallel()
	fired(t, redistest.Start(t).URL())
}
