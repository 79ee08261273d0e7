package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestThePageTellsOfEachAlert(t *testing.T) {
	rules, err := os.ReadFile("../examples/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shipped, told []string
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+).*?labels: \{severity: (?:'\{\{ or \$labels\.severity ")?(\w+)(?:" \}\}')?\}`).FindAllStringSubmatch(string(rules), -1) {
		shipped = append(shipped, m[1]+" "+m[2])
	}
	_, table, _ := strings.Cut(read(t, "operating.md"), "<!-- alerts -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1]+" "+m[2])
	}
	if len(shipped) < 15 || !slices.Equal(shipped, told) {
		t.Errorf("the rules have\n%q\nand the page tells of\n%q", shipped, told)
	}
}

// Each sentence that the page lets `why` say is one of its own.
func TestWhySaysWhatThePageSays(t *testing.T) {
	saysWhatThePageSays(t, "why", 10, "../sidecar/view/why.go")
}

func TestAnInterruptedRunSaysWhatThePageSays(t *testing.T) {
	saysWhatThePageSays(t, "interrupted", 4, "../sidecar/takeover.go", "../sidecar/callback/attempt.go", "../sidecar/callback/call.go", "../sidecar/callback/runs.go")
}

// saysWhatThePageSays finds each sentence of a table in the source, between what differs. There must be so many
// sentences.
func saysWhatThePageSays(t *testing.T, name string, least int, files ...string) {
	t.Helper()
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	_, table, _ := strings.Cut(read(t, "operating.md"), "<!-- "+name+" -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < least {
		t.Fatalf("only %d sentences were looked at", len(rows))
	}
	for _, row := range rows {
		for part := range strings.SplitSeq(row[1], "…") {
			if part = strings.TrimSpace(part); !strings.Contains(source.String(), part) {
				t.Errorf("%s: %v never say %q", name, files, part)
			}
		}
	}
}
