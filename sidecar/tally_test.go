package sidecar

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/solotick/solotick/sidecar/service"
)

func TestAHistogramCountsAsTheLibrarysDoes(t *testing.T) {
	var ours histogram
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Buckets: runBounds[:]})
	for _, v := range []float64{0, .9, 1e9, 1, 61, 60, 1.1} {
		ours.observe(v, "run", time.Unix(1, 0))
		theirs.Observe(v)
	}
	got, want := written(t, ours.metric(runDurationDesc, "x")), written(t, theirs)
	if got.GetSampleCount() != want.GetSampleCount() || got.GetSampleSum() != want.GetSampleSum() || len(got.Bucket) != len(want.Bucket) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i, b := range want.Bucket {
		if g := got.Bucket[i]; g.GetUpperBound() != b.GetUpperBound() || g.GetCumulativeCount() != b.GetCumulativeCount() {
			t.Errorf("bucket %d: got %v, want %v", i, g, b)
		}
	}
}

func TestAHistogramNamesTheNewestRun(t *testing.T) {
	var h histogram
	for i, v := range []float64{70, 2, .5, 3} {
		h.observe(v, fmt.Sprint("run", i), time.Unix(int64(i), 0))
	}
	for _, b := range written(t, h.metric(runDurationDesc, "x")).Bucket {
		switch e := b.GetExemplar(); {
		case b.GetUpperBound() != 60 && e != nil:
			t.Errorf("the bucket %v has an exemplar: %v", b.GetUpperBound(), e)
		case b.GetUpperBound() == 60 && (e.GetValue() != 3 || len(e.Label) != 1 || e.Label[0].GetValue() != "run3"):
			t.Errorf("the exemplar is %v", e)
		}
	}
}

func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		t.Fatal(err)
	}
	return d.Histogram
}

func TestAJobHasFailedSinceTheFirstFailureInARow(t *testing.T) {
	var a tally
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	ends := func(n int64, o outcome) service.Ledger {
		a.ended(&service.Entry{Run: fmt.Sprint(n)}, o, o == failed, at(n))
		return a.ledger()
	}
	ends(1, failed)
	if s := ends(2, failed); !s.FailingSince.Equal(at(1)) || !s.LastFailure.Equal(at(2)) || s.Streak != 2 {
		t.Errorf("after two failures: %+v", s)
	}
	ends(3, succeeded)
	if s := ends(4, failed); !s.FailingSince.Equal(at(4)) || !s.LastSuccess.Equal(at(3)) || s.Streak != 1 {
		t.Errorf("after a success and a failure: %+v", s)
	}
}

func TestAJobThatComesBackGoesOnCounting(t *testing.T) {
	a := tallies{of: map[string]*tally{}}
	a.add("x")
	first := a.tally("x")
	release := a.hold("x")
	a.remove("x")
	if a.tally("x") != first {
		t.Fatal("the tally went although a fire is under way")
	}
	a.add("x")
	release()
	if a.tally("x") != first {
		t.Error("the tally of a job that is back went with a fire of before")
	}
	release = a.hold("x")
	a.remove("x")
	release()
	if a.of["x"] != nil {
		t.Error("the tally outlives the last fire of a job that has left")
	}
}
