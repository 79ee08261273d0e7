package prometheus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/internal/testing/promtest"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// rolled is a table as three replicas of a service have it: all of them the same one.
const rolled = `service: billing
redis: {url: "${REDIS}"}
listen: "${LISTEN}"
admin: ""
jobs:
  - {name: often, schedule: "@every 1s", exec: {command: ["true"]}}
  - {name: slow, schedule: "@every 2s", exec: {command: [sleep, "0.5"]}}
  - {name: everywhere, schedule: "@every 1s", guarantee: every-replica, exec: {command: ["true"]}}
`

const (
	faster = 60              // a minute of the rules is a second of this test
	pace   = 6 * time.Second // from one replica to the next
)

// TestARollingRestartRaisesNoAlarm replaces three replicas as a Deployment does: a new one comes, gets ready, and an
// old one is told to end. All times in the shipped rules are shorter here than they are, so that the alarm comes sooner
// than it would. In the end all replicas go, to see that it does come.
func TestARollingRestartRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	store := redistest.Start(t)
	dir, binary := t.TempDir(), build(t)
	table := filepath.Join(dir, "table.yaml")
	write(t, table, []byte(rolled))
	g := &generation{t: t, dir: dir, targets: filepath.Join(dir, "targets.json"), argv: []string{binary, "run", "-c", table}, redis: store.URL()}
	for range 3 {
		g.begin()
	}
	p := promtest.Start(t, g.configuration())
	firing := func() map[string]bool {
		var all struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
		if err := p.Get("alerts", &all); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, a := range all.Alerts {
			if a.State == "firing" {
				names[a.Labels["alertname"]] = true
			}
		}
		return names
	}
	until := func(end time.Time) {
		for time.Now().Before(end) {
			if names := firing(); len(names) > 0 {
				t.Fatalf("the alarm: %v", names)
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
	evaluated(t, p)
	appears(t, p, `count(solotick_build_info{service="billing"}) == 3`)
	began := time.Now()
	until(began.Add(pace))
	for i := range 3 {
		g.begin()
		g.end(0)
		until(began.Add(time.Duration(i+2) * pace))
	}
	for _, job := range []string{"often", "slow", "everywhere"} { // it watched what it was to watch
		appears(t, p, fmt.Sprintf(`sum(increase(solotick_fires_total{job=%q}[1m])) > 5`, job))
	}
	appears(t, p, `count(last_over_time(solotick_build_info{service="billing"}[5m])) == 6`)

	for range 3 {
		g.end(0)
	}
	if err := rig.Until(patience, "the alarm", func() bool { return firing()["SolotickNoReplica"] }); err != nil {
		t.Fatalf("%v: %v", err, firing())
	}
}

// generation is the replicas that are there.
type generation struct {
	t                   *testing.T
	dir, targets, redis string
	argv                []string
	born                int
	replicas            []*rig.Process
	listen              []string
}

// begin starts a replica, and waits until it is ready.
func (g *generation) begin() {
	g.t.Helper()
	port, err := rig.FreePort()
	if err != nil {
		g.t.Fatal(err)
	}
	g.born++
	name, at := fmt.Sprint("billing-", g.born), "127.0.0.1:"+strconv.Itoa(port)
	p, err := rig.Launch(name, filepath.Join(g.dir, name+".log"), []string{"REDIS=" + g.redis, "LISTEN=" + at}, append(g.argv, "--replica", name)...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		p.Kill()
		if log, err := os.ReadFile(p.Log); g.t.Failed() && err == nil {
			g.t.Logf("%s:\n%s", name, log)
		}
	})
	if err := rig.Until(patience, name+" to be ready", func() bool {
		answer, err := http.Get("http://" + at + "/readyz")
		if err != nil {
			return p.Ended()
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}); err != nil || p.Ended() {
		g.t.Fatalf("%s did not start: %v", name, err)
	}
	g.replicas, g.listen = append(g.replicas, p), append(g.listen, at)
	g.discovered()
}

// end has a replica end in its own time.
func (g *generation) end(i int) {
	g.t.Helper()
	if err := g.replicas[i].Stop(patience); err != nil {
		g.t.Fatal(err)
	}
	g.replicas, g.listen = append(g.replicas[:i], g.replicas[i+1:]...), append(g.listen[:i], g.listen[i+1:]...)
	g.discovered()
}

// discovered tells Prometheus which replicas there are.
func (g *generation) discovered() {
	g.t.Helper()
	text, err := json.Marshal([]any{map[string]any{"targets": g.listen, "labels": map[string]string{"service": "billing"}}})
	if err != nil {
		g.t.Fatal(err)
	}
	write(g.t, g.targets+".new", text)
	if err := os.Rename(g.targets+".new", g.targets); err != nil {
		g.t.Fatal(err)
	}
}

// configuration is the shipped one, but for how targets are found, and for its times.
func (g *generation) configuration() []byte {
	g.t.Helper()
	text, _ := readRules(g.t)
	rules := filepath.Join(g.dir, "rules.yaml")
	write(g.t, rules, []byte(quicker(g.t, text)))
	c := readConfig(g.t, "prometheus.yaml")
	c["rule_files"] = []string{rules}
	c["global"] = map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"}
	scrape := scrapeOf(g.t, c)
	delete(scrape, "static_configs")
	scrape["file_sd_configs"] = []any{map[string]any{"files": []string{g.targets}, "refresh_interval": "1s"}}
	made, err := yaml.Marshal(c)
	if err != nil {
		g.t.Fatal(err)
	}
	return made
}

// quicker makes all durations of the rules shorter.
func quicker(t *testing.T, rules string) string {
	t.Helper()
	changed := 0
	rules = regexp.MustCompile(`(for: |offset |\[|:)(\d+[smhd])\b`).ReplaceAllStringFunc(rules, func(found string) string {
		parts := regexp.MustCompile(`(for: |offset |\[|:)(\d+)([smhd])`).FindStringSubmatch(found)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		unit := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[parts[3]]
		changed++
		return fmt.Sprintf("%s%ds", parts[1], max(int(time.Duration(n)*unit/faster/time.Second), 2))
	})
	if changed < 20 {
		t.Fatalf("%d durations are in the rules", changed)
	}
	return rules
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
