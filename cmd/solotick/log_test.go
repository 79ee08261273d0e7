package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
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

// A collector takes each line by itself, and a drawing of the place for three lines of something else.
func TestWithALogInJSONRunSaysInJSONWhyItDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.yaml")
	refused := func(want int) (lines []map[string]any) {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := commandLine([]string{"run", "-c", file, "--log-format", "json"}, &out, &errOut); code != want || out.Len() > 0 {
			t.Errorf("code %d, output %s", code, &out)
		}
		for text := range strings.Lines(errOut.String()) {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil || line["level"] != "ERROR" || line["time"] == nil {
				t.Errorf("%v: %s", err, text)
			}
			delete(line, "time")
			lines = append(lines, line)
		}
		return lines
	}
	if lines := refused(exitCannot); len(lines) != 1 || !strings.Contains(lines[0]["hint"].(string), "-c") {
		t.Errorf("without a table: %v", lines)
	}
	table := "service: billing\njobs:\n  - {name: a, shedule: '* * * * *', exec: {command: [x]}}\n" +
		"  - {name: b, schedule: '61 * * * *', exec: {command: [x]}}\n"
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	got, want := refused(exitProblem), []map[string]any{
		{"level": "ERROR", "msg": "problem in the table", "file": file, "line": 3.0, "column": 15.0, "err": `job "a": unknown key "shedule"`},
		{"level": "ERROR", "msg": "problem in the table", "file": file, "line": 4.0, "column": 25.0,
			"err": `job "b": schedule "61 * * * *": minute "61": 61 is out of range: allowed are 0-59`},
		{"level": "ERROR", "msg": file + " has 2 problems"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
