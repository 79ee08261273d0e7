package admin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// well is a replica in good health.
type well struct{}

func (well) Alive() bool    { return true }
func (well) Ready() error   { return nil }
func (well) Notice() string { return "" }

func TestFewScrapesAreAnsweredAtOnce(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	slow := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		begun <- struct{}{}
		<-end
		return nil, nil
	})
	h := Server(well{}, slow, slog.New(slog.DiscardHandler)).Handler
	scrape := func() int {
		out := httptest.NewRecorder()
		h.ServeHTTP(out, httptest.NewRequest("GET", "/metrics", nil))
		return out.Code
	}
	codes := make(chan int)
	for range 4 {
		go func() { codes <- scrape() }()
		<-begun
	}
	go func() { codes <- scrape() }()
	select {
	case code := <-codes:
		if code != http.StatusServiceUnavailable {
			t.Errorf("a fifth scrape at once: %d", code)
		}
	case <-begun:
		t.Error("a fifth scrape at once gathers, too")
		go func() { <-codes }()
	}
	close(end)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one of four scrapes: %d", code)
		}
	}
}
