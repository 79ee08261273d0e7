package lock

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The figures of docs/guarantees.md are those of the constants and the scripts.
func TestTheGuaranteesStateTheFiguresOfTheLock(t *testing.T) {
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ") // wherever its lines are broken

	settled := regexp.MustCompile(`\(stands or now\) or now \+ (\d+)`).FindStringSubmatch(registerScript.Source)
	day := regexp.MustCompile(`local member, r, x, day = .*, (\d+)\n`).FindStringSubmatch(settleScript.Source)
	if settled == nil || day == nil {
		t.Fatal("the scripts do not have the figures where they are looked for")
	}
	newLedger, fired := milliseconds(t, settled[1]), milliseconds(t, day[1])
	words := map[any]string{time.Second: "a second", 24 * time.Hour: "a day", 3: "three"}
	for _, s := range []struct {
		form   string
		figure any
	}{
		{"A replica that cannot renew its lease ends the run %s before the lease does", Margin},
		{"Because its replica died, a tick is run again at most %s times", takeovers},
		{"is refused for %s after it was fired", fired},
		{"first tick must come at least %s after the first replica registered the job", newLedger},
		{"Ticks up to that moment, and those that come within %s after it, count as settled", newLedger},
	} {
		word, ok := words[s.figure]
		if !ok {
			word = fmt.Sprint(s.figure)
		}
		want := fmt.Sprintf(s.form, word)
		if !strings.Contains(page, want) {
			t.Errorf("docs/guarantees.md does not say %q", want)
		}
	}
}

func milliseconds(t *testing.T, digits string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(digits + "ms")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
