// Package grafana shows that every query of the dashboard gives series, from a replica at work in a real Prometheus.
package grafana

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/solotick/solotick/internal/testing/promtest"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

const patience = time.Minute

const table = `service: billing
redis: {url: "${REDIS}"}
listen: %q
admin: ""
jobs:
  - {name: often, schedule: "@every 1s", exec: {command: ["true"]}}
  - {name: failing, schedule: "@every 1s", exec: {command: ["false"]}}
  - {name: long, schedule: "@every 1s", exec: {command: [sleep, "600"]}, timeout: 1h}
  - {name: everywhere, schedule: "@every 1s", exec: {command: ["true"]}, guarantee: every-replica}
  - {name: failing-everywhere, schedule: "@every 1s", exec: {command: ["false"]}, guarantee: every-replica}
`

type dashboard struct {
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type string
	Definition string
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Datasource         struct{ UID string }
		Expr, LegendFormat string
	}
}

func read(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryQueryOfTheDashboardGivesSeries(t *testing.T) {
	p, exposed := prometheus(t)
	d := read(t)
	used := map[string]bool{}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if m == nil {
			t.Fatalf("the variable %s is %q", v.Name, v.Definition)
		}
		check(t, p, "variable "+v.Name, m[1], []string{m[2]})
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			labels := regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1)
			var wanted []string
			for _, l := range labels {
				wanted = append(wanted, l[1])
			}
			for _, by := range regexp.MustCompile(`^\w+ by \(([^)]*)\)`).FindAllStringSubmatch(target.Expr, -1) {
				wanted = append(wanted, strings.Split(by[1], ", ")...)
			}
			check(t, p, "panel "+panel.Title, target.Expr, wanted)
			for _, name := range regexp.MustCompile(`\bsolotick_\w+`).FindAllString(target.Expr, -1) {
				name = family(name)
				used[name] = true
				if exposed[name] == nil {
					t.Errorf("panel %s: no replica exposes %s", panel.Title, name)
				}
			}
			matchers(t, panel.Title, target.Expr, exposed)
		}
	}
	for name := range exposed {
		if strings.HasPrefix(name, "solotick_") && !used[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// family is the name of the metric to which a series of a histogram belongs.
func family(name string) string {
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
}

// rare are the metrics that only appear with their first event, with their labels as documented.
func rare(t *testing.T) map[string]map[string]bool {
	t.Helper()
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(solotick_\\w+)` \\| \\w+ \\| (\\w+) \\| .*first event.*$").FindAllSubmatch(doc, -1) {
		found[string(row[1])] = map[string]bool{"service": true, string(row[2]): true}
	}
	if len(found) == 0 {
		t.Error("docs/metrics.md names no metric that appears with its first event")
	}
	return found
}

// prometheus is one that scrapes a replica at work, and what that exposes: each metric with its labels.
func prometheus(t *testing.T) (p *promtest.Server, exposed map[string]map[string]bool) {
	store := redistest.Start(t)
	t.Setenv("REDIS", store.URL())
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "solotick")
	if err := rig.Build(root, rig.Package, binary); err != nil {
		t.Fatal(err)
	}
	var listen string
	r, err := rig.StartReplica(rig.ReplicaOptions{Binary: binary, Name: "one", Dir: dir}, func(l string) string {
		listen = l
		return fmt.Sprintf(table, l)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	if err := r.Ready(patience); err != nil {
		t.Fatal(err)
	}
	p = promtest.Start(t, fmt.Appendf(nil, `global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: solotick, honor_labels: true, static_configs: [{targets: [%q], labels: {service: billing}}]}
`, listen))

	for _, name := range []string{"solotick_skips_total", "solotick_runs_total"} { // which begin with the first of their events
		check(t, p, name, name, []string{"job"})
	}
	answer, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	exposed = rare(t)
	for name, f := range families {
		if exposed[name] == nil {
			exposed[name] = map[string]bool{"service": true}
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				exposed[name][l.GetName()] = true
			}
		}
	}
	return p, exposed
}

// check runs a query for one service and for all, until each gives series that have the labels and at least one number.
func check(t *testing.T, p *promtest.Server, what, expr string, labels []string) {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "10s", "$__range", "1m").Replace(expr)
	for _, service := range []string{"billing", ".*"} {
		query := strings.NewReplacer("$service", service, "$job", ".*").Replace(expr)
		var series []promtest.Series
		var last error
		if err := rig.Until(patience, query, func() bool {
			series, last = p.Query(query)
			return last != nil || numbers(series) > 0
		}); err != nil || last != nil {
			t.Errorf("%s: %v; %v", what, err, last)
			continue
		}
		for _, s := range series {
			for _, l := range labels {
				if s.Labels[l] == "" {
					t.Errorf("%s: %s has no label %s, only %v", what, query, l, s.Labels)
				}
			}
		}
	}
}

func numbers(series []promtest.Series) (n int) {
	for _, s := range series {
		if !math.IsNaN(s.Value) {
			n++
		}
	}
	return n
}

// matchers looks at the labels in braces: a matcher on one that does not exist matches everything, or nothing.
func matchers(t *testing.T, title, expr string, exposed map[string]map[string]bool) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(\w+){([^}]*)}`).FindAllStringSubmatch(expr, -1) {
		for _, l := range regexp.MustCompile(`(\w+)\s*[=!]~?=?"`).FindAllStringSubmatch(m[2], -1) {
			if !exposed[family(m[1])][l[1]] {
				t.Errorf("panel %s: %s has no label %s", title, m[1], l[1])
			}
		}
	}
}

func TestTheDashboardIsWhole(t *testing.T) {
	d := read(t)
	if d.SchemaVersion != 42 { // the last one of this format of dashboards
		t.Errorf("the schema's version is %d", d.SchemaVersion)
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name+" "+v.Type)
	}
	if got := strings.Join(names, ", "); got != "datasource datasource, service query, job query" {
		t.Errorf("the variables are %s", got)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %s: its id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.Type != "row" && (p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q has no title, description, query, or another data source", p.ID, p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %s: data source %q", p.Title, target.Datasource.UID)
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %s lies over %q, or out of the grid", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
