package prometheus

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/internal/testing/promtest"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

const table = `service: billing
redis: {url: %q}
listen: %q
admin: ""
jobs:
  - {name: often, schedule: "@every 1s", exec: {command: ["true"]}}
  - {name: failing, schedule: "@every 1s", exec: {command: ["false"]}}
  - {name: long, schedule: "@every 2s", exec: {command: [sleep, "600"]}, timeout: 1h, lock: {ttl: 3s}}
`

// The shipped files as they are, but for the addresses and for how often is scraped: two replicas, scraped by a real
// Prometheus, and what it makes of a Redis that dies and of a table that is broken.
func TestARealPrometheusScrapesReplicasAndRaisesTheAlarm(t *testing.T) {
	t.Parallel()
	store := redistest.Start(t)
	dir, binary := t.TempDir(), build(t)
	var replicas []*rig.Replica
	var listen []string
	for _, name := range []string{"one", "two"} {
		r, err := rig.StartReplica(rig.ReplicaOptions{Binary: binary, Name: name, Dir: dir}, func(l string) string {
			listen = append(listen, l)
			return fmt.Sprintf(table, store.URL(), l)
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			r.Kill()
			if log, err := os.ReadFile(r.Log); t.Failed() && err == nil {
				t.Logf("%s:\n%s", name, log)
			}
		})
		if err := r.Ready(patience); err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, r)
	}
	p := promtest.Start(t, configuration(t, listen))

	t.Run("targets are up, and relabelled in Kubernetes", func(t *testing.T) { targets(t, p, listen) })
	t.Run("every exposed name gives series", func(t *testing.T) { names(t, p, listen[0]) })
	t.Run("every rule is evaluated", func(t *testing.T) { evaluated(t, p) })
	t.Run("a failed reload and a lost lock raise the alarm", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, replicas[0].Name+".yaml"), []byte("service: [\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		appears(t, p, `ALERTS{alertname="SolotickReloadFailed", alertstate="firing", severity="warning", service="billing", instance="`+listen[0]+`"}`)
		store.Kill()
		appears(t, p, `ALERTS{alertname="SolotickLockLost", alertstate="firing", severity="warning", service="billing", job="long"}`)
		appears(t, p, `ALERTS{alertname="SolotickRedisDown", alertstate="pending", severity="critical", service="billing"}`)
		annotated(t, p)
	})
}

// configuration is the static configuration and the one for Kubernetes, in which labels as Kubernetes gives them take
// the place of the discovery: of a sidecar, of the app beside it, and of a pod that has ended.
func configuration(t *testing.T, listen []string) []byte {
	t.Helper()
	static, cluster := readConfig(t, "prometheus.yaml"), readConfig(t, "prometheus-kubernetes.yaml")
	rules, err := filepath.Abs("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []map[string]any{static, cluster} {
		if files := fmt.Sprint(c["rule_files"]); files != "[rules.yaml]" {
			t.Errorf("rule_files are %s", files)
		}
	}
	static["rule_files"] = []string{rules}
	static["global"] = map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"}

	known := scrapeOf(t, static)
	known["static_configs"].([]any)[0].(map[string]any)["targets"] = listen
	discovered := scrapeOf(t, cluster)
	if sd := fmt.Sprint(discovered["kubernetes_sd_configs"]); sd != "[map[role:pod]]" {
		t.Errorf("kubernetes_sd_configs are %s", sd)
	}
	delete(discovered, "kubernetes_sd_configs")
	discovered["job_name"] = "kubernetes"
	pod := func(port, phase string) map[string]any {
		return map[string]any{"targets": listen[:1], "labels": map[string]string{
			"__meta_kubernetes_namespace": "shop", "__meta_kubernetes_pod_name": "billing-7d4b9c-x2x4z", "__meta_kubernetes_pod_phase": phase,
			"__meta_kubernetes_pod_container_init": "true", "__meta_kubernetes_pod_container_port_name": port,
			"__meta_kubernetes_pod_label_app_kubernetes_io_name": "billing-in-kubernetes",
		}}
	}
	discovered["static_configs"] = []any{pod("solotick", "Running"), pod("http", "Running"), pod("solotick", "Succeeded")}
	static["scrape_configs"] = []any{known, discovered}
	text, err := yaml.Marshal(static)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readConfig(t *testing.T, file string) (c map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func scrapeOf(t *testing.T, config map[string]any) map[string]any {
	t.Helper()
	scrapes := config["scrape_configs"].([]any)
	if len(scrapes) != 1 {
		t.Fatalf("there are %d scrape_configs", len(scrapes))
	}
	return scrapes[0].(map[string]any)
}

func targets(t *testing.T, p *promtest.Server, listen []string) {
	var all struct {
		ActiveTargets []struct {
			Labels    map[string]string
			Health    string
			LastError string
		}
	}
	want := map[string]string{
		"solotick " + listen[0] + "   billing": "up", "solotick " + listen[1] + "   billing": "up",
		"kubernetes " + listen[0] + " shop billing-7d4b9c-x2x4z billing-in-kubernetes": "up",
	}
	var got map[string]string
	if err := rig.Until(patience, "targets to be up", func() bool {
		if err := p.Get("targets?state=active", &all); err != nil {
			return false
		}
		got = map[string]string{}
		for _, a := range all.ActiveTargets {
			l := a.Labels
			got[strings.Join([]string{l["job"], l["instance"], l["namespace"], l["pod"], l["service"]}, " ")] = a.Health
		}
		return maps.Equal(got, want)
	}); err != nil {
		t.Errorf("%v: they are %v, want %v", err, got, want)
	}
}

// names asks for each name that a replica exposes, with the label `job` as the replica gave it, and looks for those
// that the rules use and nobody exposes.
func names(t *testing.T, p *promtest.Server, listen string) {
	for _, rare := range []string{"solotick_skips_total", "solotick_runs_total"} { // which begin with the first skip, and the first end of a run
		appears(t, p, rare+`{service="billing", instance="`+listen+`"}`)
	}
	answer, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	exposed := map[string]bool{}
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		if line := in.Text(); !strings.HasPrefix(line, "#") {
			exposed[regexp.MustCompile(`^\w+`).FindString(line)] = true
		}
	}
	if len(exposed) < 25 {
		t.Errorf("only %d names are exposed", len(exposed))
	}
	for name := range exposed {
		appears(t, p, name+`{service="billing"}`)
	}
	for _, job := range []string{"often", "failing", "long"} {
		appears(t, p, fmt.Sprintf(`count(solotick_fires_total{service="billing", job=%q}) == 2`, job))
	}
	text, _ := readRules(t)
	for _, name := range metricsOf(text) {
		if !exposed[name] && !exposed[name+"_bucket"] {
			t.Errorf("the rules name %s, which no replica exposes", name)
		}
	}
}

func evaluated(t *testing.T, p *promtest.Server) {
	var all struct {
		Groups []struct {
			Rules []struct {
				Name, Health, LastError string
			}
		}
	}
	var bad []string
	_, rules := readRules(t)
	want := 0
	for _, g := range rules.Groups {
		want += len(g.Rules)
	}
	if err := rig.Until(patience, "rules to be evaluated", func() bool {
		if err := p.Get("rules", &all); err != nil {
			return false
		}
		bad = nil
		n := 0
		for _, g := range all.Groups {
			for _, r := range g.Rules {
				n++
				if r.Health != "ok" {
					bad = append(bad, r.Name+" "+r.Health+" "+r.LastError)
				}
			}
		}
		return n == want && len(bad) == 0
	}); err != nil {
		t.Fatalf("%v: %d rules wanted, not ok: %q", err, want, bad)
	}
}

// appears waits until a query gives something.
func appears(t *testing.T, p *promtest.Server, query string) {
	t.Helper()
	var series []promtest.Series
	var last error
	if err := rig.Until(patience, query, func() bool {
		series, last = p.Query(query)
		return len(series) > 0
	}); err != nil {
		t.Fatalf("%v; %v", err, last)
	}
}

// annotated looks at what the people who are paged would read.
func annotated(t *testing.T, p *promtest.Server) {
	var all struct {
		Alerts []struct {
			State               string
			Labels, Annotations map[string]string
		}
	}
	if err := p.Get("alerts", &all); err != nil {
		t.Fatal(err)
	}
	for _, a := range all.Alerts {
		for name, text := range a.Annotations {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "{{") || strings.Contains(text, "error") {
				t.Errorf("%s: %s: %q", a.Labels["alertname"], name, text)
			}
		}
		if a.Labels["alertname"] == "SolotickLockLost" && a.Labels["service"] == "billing" &&
			a.Annotations["summary"] != "billing: job long lost its lock in mid-run" {
			t.Errorf("the summary is %q", a.Annotations["summary"])
		}
	}
}
