// Package compose shows that examples/compose is what Docker Compose and Solotick understand: loaded strictly, by
// Compose's own library, and each reference followed. Nothing is started here: the same program is run from the same
// kind of image in the test of the Kubernetes manifests.
package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/rig"
)

const root = "../../compose"

func load(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: dir, ConfigFiles: types.ToConfigFiles([]string{filepath.Join(dir, "compose.yaml")}), Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sidecars are the services that run Solotick.
func sidecars(t *testing.T, p *types.Project) []types.ServiceConfig {
	t.Helper()
	var all []types.ServiceConfig
	for _, s := range p.Services {
		if strings.HasPrefix(s.Name, "solotick-") {
			all = append(all, s)
		}
	}
	if len(all) != 3 {
		t.Fatalf("there are %d sidecars", len(all))
	}
	return all
}

func TestEachSidecarSharesTheNetworkOfItsApp(t *testing.T) {
	p := load(t)
	apps, names, ports := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range sidecars(t, p) {
		app, ok := strings.CutPrefix(s.NetworkMode, "service:")
		beside, found := p.Services[app]
		if !ok || !found || apps[app] || !slices.Equal(beside.Command, []string{"toy-app", "--listen", ":8080"}) {
			t.Errorf("%s is in the network %s", s.Name, s.NetworkMode)
		}
		apps[app] = true
		if name := s.Environment["SOLOTICK_REPLICA"]; name == nil || names[*name] {
			t.Errorf("%s has no name of its own", s.Name)
		} else {
			names[*name] = true
		}
		if d := s.DependsOn; d["redis"].Condition != types.ServiceConditionHealthy || !d[app].Restart {
			t.Errorf("%s waits for %v", s.Name, d)
		}
		for _, port := range beside.Ports {
			if port.HostIP != "127.0.0.1" || ports[port.Published] || port.Target != 9747 {
				t.Errorf("%s publishes %s:%s for %d", app, port.HostIP, port.Published, port.Target)
			}
			ports[port.Published] = true
		}
	}
	if redis := p.Services["redis"]; redis.HealthCheck == nil || !strings.Contains(strings.Join(redis.Command, " "), "--maxmemory-policy noeviction") {
		t.Errorf("Redis is run as %v, with the health check %v", redis.Command, redis.HealthCheck)
	}
}

func TestTheTableFitsTheContainers(t *testing.T) {
	p := load(t)
	for _, s := range sidecars(t, p) {
		if len(s.Volumes) != 1 || s.Volumes[0].Target != "/etc/solotick" || !s.Volumes[0].ReadOnly {
			t.Fatalf("%s has the volumes %v", s.Name, s.Volumes)
		}
		table, err := config.Load(filepath.Join(s.Volumes[0].Source, "table.yaml"), func(name string) (string, bool) {
			v := s.Environment[name]
			return "", v != nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(table.Warnings) > 0 || table.Listen != ":9747" || table.Redis.URL != "redis://redis:6379/0" {
			t.Errorf("the table listens on %s, asks %s, and has the warnings %v", table.Listen, table.Redis.URL, table.Warnings)
		}
		for _, j := range table.Jobs {
			if !strings.HasPrefix(j.HTTP.URL, "http://127.0.0.1:8080/") {
				t.Errorf("the job %s calls %s", j.Name, j.HTTP.URL)
			}
		}
		if grace := s.StopGracePeriod; grace == nil || int64(*grace) <= int64(table.ShutdownGrace) {
			t.Errorf("%s is killed after %s", s.Name, grace)
		}
	}
}

func TestContainersMayDoNothingThatTheyNeedNot(t *testing.T) {
	for _, s := range load(t).Services {
		if s.Name == "redis" {
			continue
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 || s.SecurityOpt[0] != "no-new-privileges:true" || s.Privileged {
			t.Errorf("%s may do too much", s.Name)
		}
	}
}

func TestImagesCanBeBuilt(t *testing.T) {
	for _, s := range load(t).Services {
		if s.Build == nil {
			continue
		}
		file := filepath.Join(s.Build.Context, s.Build.Dockerfile)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if entry := regexp.MustCompile(`(?m)^ENTRYPOINT \["/(\S+/)?` + s.Image + `"\]$`); !entry.Match(text) {
			t.Errorf("%s has no %s", file, entry)
		}
		for _, m := range regexp.MustCompile(`(?m)^COPY (\w\S*) `).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(s.Build.Context, m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// The comment at the top tells people what to type.
func TestTheCommandsInTheCommentExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := load(t)
	commands := regexp.MustCompile(`(?m)^#   docker compose (\w+) (\S+)(?: solotick (\w+))?`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 3 {
		t.Fatalf("there are %d commands", len(commands))
	}
	dir, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(dir, rig.Package, program); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if _, ok := p.Services[c[2]]; !ok && !strings.HasPrefix(c[2], "-") {
			t.Errorf("%s: there is no %s", strconv.Quote(c[0]), c[2])
		}
		if c[3] == "" {
			continue
		}
		if out, err := exec.Command(program, c[3], "--help").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strconv.Quote(c[0]), err, out)
		}
	}
}
