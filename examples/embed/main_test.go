package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fired runs the example for a while and counts its lines by job and tick.
func fired(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, url, &out); err != nil {
		t.Fatal(err)
	}
	count, jobs := map[string]int{}, map[string]int{}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line) // report 09:00:02 by 123-1
		count[f[0]+" "+f[1]]++
		jobs[f[0]]++
	}
	for tick, n := range count {
		if n != 1 {
			t.Errorf("%s was fired %d times", tick, n)
		}
	}
	// Four or five ticks come in nine seconds, less one in the ledger's first second and one at the end.
	for _, job := range []string{"report", "invoices"} {
		if jobs[job] < 2 {
			t.Errorf("%s was fired %d times in all", job, jobs[job])
		}
	}
	if t.Failed() {
		t.Log(out.String())
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
