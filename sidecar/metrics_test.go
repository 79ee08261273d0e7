package sidecar

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/solotick/solotick/sidecar/service"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The whole exposition is compared: names, help, labels, and which series are there from the start.
func TestTheExpositionIsAsDocumented(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}}
`, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		compare(t, "testdata/metrics-at-start.txt", r.exposition())
		w.at(90 * time.Second)
		compare(t, "testdata/metrics-after-two-ticks.txt", r.exposition())
	})
}

func (r *replica) exposition() []byte {
	families, err := r.registry.Gather()
	if err != nil {
		r.world.t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			r.world.t.Fatal(err)
		}
	}
	out := regexp.MustCompile(`hash="[0-9a-f]{12}"`).ReplaceAll(b.Bytes(), []byte(`hash="HASH"`)) // that of any table
	// Another series, gathered beside this one, may ask Redis first.
	return regexp.MustCompile(`(offset_seconds) -?0(\.00\d*)?\b`).ReplaceAll(out, []byte("$1 OFFSET"))
}

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite it with -update); now it is\n%s", golden, got)
	}
}

// docs/metrics.md names exactly the metrics, reasons and outcomes that there are.
func TestTheDocumentationNamesEveryMetric(t *testing.T) {
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = true
	}
	exist := map[string]bool{}
	golden, err := os.ReadFile("testdata/metrics-at-start.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(golden), -1) {
		exist[row[1]] = true
	}
	for _, name := range perJobMetrics() { // some have no series yet
		exist[name] = true
	}
	for _, r := range reasons {
		exist[string(r)] = true
	}
	for _, o := range outcomes {
		exist[string(o)] = true
	}
	for _, fate := range service.Fates {
		exist[fate] = true
	}
	for name := range exist {
		if !documented[name] {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
	}
	for name := range documented {
		if !exist[name] {
			t.Errorf("docs/metrics.md names %s, which does not exist", name)
		}
	}
}
