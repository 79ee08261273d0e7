package admin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// well is a replica in good health.
type well struct{}

func (well) Alive() bool    { return true }
func (well) Ready() error   { return nil }
func (well) Notice() string { return "" }

// unread is an answer that its client does not read for a while.
type unread struct {
	*httptest.ResponseRecorder
	sent chan<- struct{}
	read <-chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	u.sent <- struct{}{}
	<-u.read
	return u.ResponseRecorder.Write(p)
}

// Four scrapes with unread answers kept the gathered metrics four times: with a table of a thousand jobs they took 160
// MiB.
func TestFewScrapesAreAnsweredAtOnceAndOneGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, read := make(chan struct{}, maxLarge), make(chan struct{})
		var gathers atomic.Int32
		g := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			gathers.Add(1)
			time.Sleep(time.Second)
			name, kind := "x", dto.MetricType_UNTYPED
			return []*dto.MetricFamily{{Name: &name, Type: &kind, Metric: []*dto.Metric{{Untyped: &dto.Untyped{}}}}}, nil
		})
		h := Server(well{}, g, slog.New(slog.DiscardHandler)).Handler
		scrape := func() int {
			out := unread{httptest.NewRecorder(), sent, read}
			h.ServeHTTP(out, httptest.NewRequest("GET", "/metrics", nil))
			return out.Code
		}
		codes := make(chan int, maxLarge)
		for range maxLarge {
			go func() { codes <- scrape() }()
		}
		for i := range maxLarge {
			synctest.Wait()
			if n := gathers.Load(); int(n) != i+1 || len(sent) != i {
				t.Fatalf("after %d s there were %d gatherings, and %d answers are being sent", i, n, len(sent))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		close(read)
		for range maxLarge {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("one of four scrapes: %d", code)
			}
		}
	})
}

func TestAFifthScrapeWaitsForAPlaceAndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		g := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			<-end
			return nil, nil
		})
		h := Server(well{}, g, slog.New(slog.DiscardHandler)).Handler
		codes := make(chan int, maxLarge+1)
		for range maxLarge + 1 {
			go func() {
				out := httptest.NewRecorder()
				h.ServeHTTP(out, httptest.NewRequest("GET", "/metrics", nil))
				codes <- out.Code
			}()
		}
		time.Sleep(largeWait - time.Nanosecond)
		synctest.Wait()
		if len(codes) != 0 {
			t.Error("a fifth scrape does not wait")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(codes) != 1 || <-codes != http.StatusServiceUnavailable {
			t.Error("a fifth scrape at once is not refused")
		}
		close(end)
		for range maxLarge {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("one of four scrapes: %d", code)
			}
		}
	})
}

// Small reads are soon over: a page makes several at once, and none of them is refused.
func TestSixteenReadersHaveAPlaceAndOneMoreIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		h := inTurn(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }), func(w http.ResponseWriter, text string) {
			http.Error(w, text, http.StatusServiceUnavailable)
		})
		codes := make(chan int, 17)
		for range cap(codes) {
			go func() {
				out := httptest.NewRecorder()
				h.ServeHTTP(out, httptest.NewRequest("GET", "/", nil))
				codes <- out.Code
			}()
		}
		synctest.Wait()
		if len(codes) != 1 || <-codes != http.StatusServiceUnavailable {
			t.Errorf("%d more are answered at once", len(codes))
		}
		close(end)
		for range 16 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("one of sixteen: %d", code)
			}
		}
	})
}

func TestAScraperThatWantsOpenMetricsIsToldTheRun(t *testing.T) {
	h := prometheus.MustNewConstHistogram(prometheus.NewDesc("took_seconds", "How long.", nil, nil), 1, 2, map[float64]uint64{60: 1})
	r := prometheus.NewRegistry()
	r.MustRegister(constant{prometheus.MustNewMetricWithExemplars(h, prometheus.Exemplar{Value: 2, Labels: prometheus.Labels{"run": "0190-run"}})})
	for accept, want := range map[string]bool{"application/openmetrics-text; version=1.0.0": true, "text/plain": false} {
		q, out := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		q.Header.Set("Accept", accept)
		Server(well{}, r, slog.New(slog.DiscardHandler)).Handler.ServeHTTP(out, q)
		if told := strings.Contains(out.Body.String(), `took_seconds_bucket{le="60.0"} 1 # {run="0190-run"} 2`); told != want || out.Code != http.StatusOK {
			t.Errorf("%s: %d\n%s", accept, out.Code, out.Body)
		}
	}
}

// constant is a collector of one metric.
type constant struct{ metric prometheus.Metric }

func (c constant) Describe(ch chan<- *prometheus.Desc) { ch <- c.metric.Desc() }
func (c constant) Collect(ch chan<- prometheus.Metric) { ch <- c.metric }
