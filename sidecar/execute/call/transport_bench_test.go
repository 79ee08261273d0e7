package call

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// BenchmarkToTheApp measures from the call of Execute to the app's handler, for one job and for a hundred at once, on
// new and on kept connections, each beside net/http's Transport with connections of its own that are never stale here.
// p50 and p99 are in µs.
func BenchmarkToTheApp(b *testing.B) {
	for _, n := range []int{1, 100} {
		name := map[int]string{1: "one", 100: "hundred"}[n]
		for kind, last := range map[string]func() time.Time{
			"new":  func() time.Time { return time.Time{} },
			"kept": time.Now,
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				toTheApp(b, n, func(url string) func() {
					e := New(config.HTTP{URL: url, Body: "{}"}, Options{}).(*caller)
					return func() {
						e.transport.mu.Lock()
						e.transport.last = last()
						e.transport.mu.Unlock()
						if res := e.Execute(context.Background(), aRun()); res.Status != execute.Succeeded {
							b.Error(res.Err)
						}
					}
				})
			})
		}
		b.Run(name+"/net-http", func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200, DisableCompression: true}}
			defer client.CloseIdleConnections()
			toTheApp(b, n, func(url string) func() {
				return func() {
					req, err := http.NewRequestWithContext(context.Background(), "POST", url, strings.NewReader("{}"))
					if err != nil {
						b.Error(err)
						return
					}
					for _, f := range aRun().Facts() {
						req.Header[f.Header] = []string{f.Value}
					}
					resp, err := client.Do(req)
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
}

// toTheApp runs n calls at once, b.N times. prepare makes one job's call of a URL.
func toTheApp(b *testing.B, n int, prepare func(url string) func()) {
	arrived := make(chan time.Time, n)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- time.Now() }))
	defer s.Close()
	calls := make([]func(), n)
	for i := range calls {
		calls[i] = prepare(s.URL)
	}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		var wg sync.WaitGroup
		for _, call := range calls {
			wg.Go(call)
		}
		wg.Wait()
		for range calls {
			took = append(took, (<-arrived).Sub(begin))
		}
	}
	slices.Sort(took)
	for name, part := range map[string]int{"p50": 50, "p99": 99} {
		b.ReportMetric(float64(took[len(took)*part/100].Microseconds()), name)
	}
}
