package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestDurationsInTheLogAreSecondsWithTheirUnit(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		text string
	}{
		{4801324 * time.Microsecond / 1000, "0.004801324s"}, {7604 * time.Microsecond, "0.007604s"}, {0, "0s"}, {25 * time.Second, "25s"},
		{90 * time.Minute, "5400s"}, {-300 * time.Millisecond, "-0.3s"},
	} {
		var out bytes.Buffer
		log, err := (&app{err: &out, logLevel: "info", logFormat: "text"}).logger()
		if err != nil {
			t.Fatal(err)
		}
		log.With("took", c.d).Info("x", "delay", c.d)
		if got := out.String(); !strings.HasSuffix(got, " msg=x took="+c.text+" delay="+c.text+"\n") {
			t.Errorf("%s as text: %s", c.d, got)
		}
		out.Reset()
		if log, err = (&app{err: &out, logLevel: "info", logFormat: "json"}).logger(); err != nil {
			t.Fatal(err)
		}
		log.Info("x", "delay", c.d)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["delaySeconds"] != c.d.Seconds() || line["delay"] != nil {
			t.Errorf("%s as JSON: %s, %v", c.d, &out, err)
		}
	}
}
