// Package prometheus shows that the alert rules and the scrape configurations beside it do what they say.
package prometheus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/internal/testing/promtest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// ruleFile is what the tests read of rules.yaml.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) (text string, rules ruleFile) {
	t.Helper()
	data, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	return string(data), rules
}

func TestRulesPassTheirUnitTests(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "rules", "rules.yaml"},
		{"check", "config", "prometheus.yaml"},
		{"test", "rules", "rules_test.yaml", "rules_days_test.yaml"},
	} {
		if out, err := promtool(t, args...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func promtool(t *testing.T, args ...string) (string, error) { return promtest.Tool(t, ".", args...) }

func TestEveryAlertIsShownFiringAndNot(t *testing.T) {
	t.Parallel()
	type unitTests struct {
		Tests []struct {
			Name             string
			Promql_expr_test []struct {
				Expr        string
				Exp_samples []struct{ Labels string }
			}
		}
	}
	firing, calm := map[string]bool{}, 0
	for _, file := range []string{"rules_test.yaml", "rules_days_test.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var u unitTests
		if err := yaml.Unmarshal(data, &u); err != nil {
			t.Fatal(err)
		}
		for _, test := range u.Tests {
			for _, at := range test.Promql_expr_test {
				if len(at.Exp_samples) == 0 && strings.Contains(at.Expr, "ALERTS") {
					calm++
				}
				for _, s := range at.Exp_samples {
					if m := regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(s.Labels); m != nil {
						firing[m[1]] = true
					}
				}
			}
		}
	}
	_, rules := readRules(t)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if !firing[r.Alert] {
				t.Errorf("no unit test has %s fire", r.Alert)
			}
		}
	}
	// Each of these lists is empty, and so is about all alerts.
	if calm < 20 {
		t.Errorf("only %d moments are shown at which nothing fires", calm)
	}
}

// ofTheJob is a severity that a job's own label replaces.
var ofTheJob = regexp.MustCompile(`^\{\{ or \$labels\.severity "(\w+)" \}\}$`)

func TestEveryAlertSaysWhatItIsAndWhatToDo(t *testing.T) {
	_, rules := readRules(t)
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(string(page), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	runbook := regexp.MustCompile(`^(?:\{\{ or \$labels\.runbook ")?https://github\.com/solotick/solotick/blob/main/docs/operating\.md#([a-z-]+)(?:" \}\})?$`)
	alerts, documented := 0, len(regexp.MustCompile("(?m)^\\| `Solotick").FindAll(page, -1))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts++
			severity := r.Labels["severity"]
			if m := ofTheJob.FindStringSubmatch(severity); m != nil {
				severity = m[1]
			}
			if severity != "critical" && severity != "warning" {
				t.Errorf("%s: severity %q", r.Alert, severity)
			}
			if m := runbook.FindStringSubmatch(r.Annotations["runbook_url"]); m == nil || !anchors[m[1]] {
				t.Errorf("%s: runbook_url %q is no heading of docs/operating.md", r.Alert, r.Annotations["runbook_url"])
			}
			if row := fmt.Sprintf("| `%s` | %s | ", r.Alert, severity); !strings.Contains(string(page), row) {
				t.Errorf("docs/operating.md has no row that begins %s", row)
			}
			for _, a := range []string{"summary", "description"} {
				if len(r.Annotations[a]) < 20 {
					t.Errorf("%s: %s: %q", r.Alert, a, r.Annotations[a])
				}
			}
		}
	}
	if alerts < 12 || documented != alerts {
		t.Errorf("there are %d alerts, and docs/operating.md has %d", alerts, documented)
	}
}

// inPod is how a command of an alert reaches a replica; without namespaces there is no Kubernetes.
const inPod = "{{ with $labels.namespace }}kubectl -n {{ . }} exec deploy/{{ $labels.service }} -c solotick -- {{ end }}"

// Each command in an alert can be typed as it is: the CLI has its verb and flags. A verb that changes something says
// who asks.
func TestTheCommandsInTheAlertsExist(t *testing.T) {
	_, rules := readRules(t)
	commands := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, m := range regexp.MustCompile("`([^`]*solotick [^`]+)`").FindAllStringSubmatch(r.Annotations["description"], -1) {
				c, whole := strings.CutPrefix(m[1], inPod)
				if writes := regexp.MustCompile(`^solotick (rerun|resume|backfill|trigger) `).MatchString(c); !whole ||
					writes && !strings.HasSuffix(c, ` --by "$USER"`) {
					t.Errorf("%s: `%s` cannot be typed as it is", r.Alert, m[1])
				}
				commands[c] = true
			}
		}
	}
	if len(commands) < 4 {
		t.Errorf("the alerts name only %d commands", len(commands))
	}
	solotick := build(t)
	for c := range commands {
		words := strings.Fields(strings.ReplaceAll(c, "{{ $labels.job }}", "job"))
		help, err := exec.Command(solotick, words[1], "--help").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", c, err, help)
		}
		for _, w := range words[2:] {
			if strings.HasPrefix(w, "-") && !strings.Contains(string(help), w+" ") {
				t.Errorf("%s: there is no %s", c, w)
			}
		}
	}
}

// build compiles the product for this test.
func build(t *testing.T) string {
	t.Helper()
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(root, rig.Package, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// metricsOf are the names of Solotick's metrics, and of those of the process, in a text.
func metricsOf(text string) []string {
	names := regexp.MustCompile(`\b(?:solotick|process)_[a-z_]+`).FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
