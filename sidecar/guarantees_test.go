package sidecar

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

func guarantees(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ") // wherever its lines are broken
}

// The figures of docs/guarantees.md are those of the constants.
func TestTheGuaranteesStateTheFiguresOfTheSidecar(t *testing.T) {
	page := guarantees(t)
	words := map[any]string{2 * time.Second: "two seconds", 5 * time.Second: "five seconds", time.Minute: "one minute",
		5: "five", 100: "hundred"}
	for _, s := range []struct {
		form   string
		figure any
		times  int
	}{
		{"up to %s ahead of the tick", strings.Replace(ahead.String(), "ms", " ms", 1), 1},
		{"(%s with 1,000 jobs, ", strings.Replace(aheadOf(1000).String(), "ms", " ms", 1), 1},
		{"at most %s)", strings.Replace(aheadOf(1_000_000).String(), "ms", " ms", 1), 1},
		{"(without one, under `missed: skip`, for %s)", punctual, 1},
		{"under `all` the newest and the %s before it", maxOlder, 1},
		{"A tick that every replica's app has refused goes %s further rounds through all replicas", 5, 1},
		{"An offset between Redis' clock and a replica's beyond %s is not believed", service.MaxOffset, 1},
		// One look may find that the connection was cut, and the next one finds the data gone.
		{"their replica notices: within %s of Redis answering again", 2 * lookEvery, 1},
	} {
		word, ok := words[s.figure]
		if !ok {
			word = fmt.Sprint(s.figure)
		}
		want := fmt.Sprintf(s.form, word)
		if n := strings.Count(page, want); n != s.times {
			t.Errorf("docs/guarantees.md says %q %d times, want %d", want, n, s.times)
		}
	}
}

// Of metrics, reasons and outcomes docs/guarantees.md names only those that there are.
func TestTheGuaranteesNameOnlyWhatThereIs(t *testing.T) {
	golden, err := os.ReadFile("testdata/metrics-at-start.txt")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^# TYPE solotick_(\S+)`).FindAllStringSubmatch(string(golden), -1) {
		exist[row[1]] = true
	}
	for _, name := range perJobMetrics() { // some have no series yet
		exist[strings.TrimPrefix(name, "solotick_")] = true
	}
	for _, r := range reasons {
		exist[string(r)] = true
	}
	for _, o := range outcomes {
		exist[string(o)] = true
	}
	// Words with an underscore are nothing else; those without one are what something is counted or skipped as.
	named := regexp.MustCompile("`([a-z]+_[a-z_]+)|(?:\\bas `|outcome=\")([a-z_]+)").FindAllStringSubmatch(guarantees(t), -1)
	if len(named) < 12 {
		t.Fatalf("only %d names were found: %q", len(named), named)
	}
	for _, n := range named {
		if name := n[1] + n[2]; !exist[name] {
			t.Errorf("docs/guarantees.md names %s, which does not exist", name)
		}
	}
}
