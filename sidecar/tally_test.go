package sidecar

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestAHistogramCountsAsTheLibrarysDoes(t *testing.T) {
	ours := newHistogram(delayBounds)
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Buckets: delayBounds})
	for _, v := range []float64{0, .0009, .001, .0011, .3, 1, 60, 61, 1e9} {
		ours.observe(v)
		theirs.Observe(v)
	}
	got, want := written(t, ours.metric(fireDelayDesc, "x")), written(t, theirs)
	if got.GetSampleCount() != want.GetSampleCount() || got.GetSampleSum() != want.GetSampleSum() || len(got.Bucket) != len(want.Bucket) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i, b := range want.Bucket {
		if g := got.Bucket[i]; g.GetUpperBound() != b.GetUpperBound() || g.GetCumulativeCount() != b.GetCumulativeCount() {
			t.Errorf("bucket %d: got %v, want %v", i, g, b)
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

func TestAJobThatComesBackGoesOnCounting(t *testing.T) {
	a := tallies{of: map[string]*tally{}}
	a.add("x")
	first := a.job("x")
	release := a.hold("x")
	a.remove("x")
	if a.job("x") != first {
		t.Fatal("the tally went although a fire is under way")
	}
	a.add("x")
	release()
	if a.job("x") != first {
		t.Error("the tally of a job that is back went with a fire of before")
	}
	release = a.hold("x")
	a.remove("x")
	release()
	if a.of["x"] != nil {
		t.Error("the tally outlives the last fire of a job that has left")
	}
}
