package sidecar

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

func TestTheInfoOfAJobFollowsTheTable(t *testing.T) {
	const told = "\njobs:\n" +
		`  - {name: told, schedule: "0 9 * * *", timeZone: Europe/Berlin, exec: {command: [x]}, owner: 'team "a"', runbook: "https://wiki/a", labels: {tier: gold, severity: critical}}` + "\n"
	simulate(t, told, func(w *world) {
		r := w.replica(time.Second)
		infos := func(want ...string) {
			t.Helper()
			var got []string
			for _, line := range regexp.MustCompile(`(?m)^solotick_job_info(\{.*\} 1)$`).FindAllStringSubmatch(string(r.exposition()), -1) {
				got = append(got, line[1])
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the infos are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		first := `{guarantee="at-most-once",job="told",owner="team \"a\"",runbook="https://wiki/a",schedule="0 9 * * *",severity="critical",time_zone="Europe/Berlin"} 1`
		infos(first)
		w.at(time.Second)
		infos(first)
		w.swap(r, strings.Replace(told, `'team "a"'`, "b", 1)+"  - {name: bare, schedule: '@every 1h', guarantee: every-replica, exec: {command: [x]}}\n")
		infos(strings.Replace(first, `team \"a\"`, "b", 1), `{guarantee="every-replica",job="bare",owner="",runbook="",schedule="@every 1h",severity="",time_zone="UTC"} 1`)
		w.swap(r, "\njobs: []\n")
		infos()
	})
}

// TestNoLabelOfAJobHasTheNameOfALabelOfTheMetrics, so that a tool can put both on one series.
func TestNoLabelOfAJobHasTheNameOfALabelOfTheMetrics(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		names := map[string]bool{}
		for _, m := range regexp.MustCompile(`[{,]([a-z_]+)="`).FindAllStringSubmatch(string(w.replica(0).exposition()), -1) {
			names[m[1]] = true
		}
		delete(names, "severity") // it is the job's own label
		if len(names) < 8 {
			t.Errorf("the metrics have the labels %v", names)
		}
		for name := range names {
			table := fmt.Appendf(nil, `{service: s, jobs: [{name: a, schedule: "@daily", exec: {command: [x]}, labels: {%s: x}}]}`, name)
			_, err := config.Parse("table.yaml", table, func(string) (string, bool) { return "", false })
			if problems := (config.Problems{}); !errors.As(err, &problems) {
				t.Errorf("a job can have the label %s: %v", name, err)
			}
		}
	})
}
