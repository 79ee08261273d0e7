package kubernetes

import (
	"flag"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/solotick/solotick/internal/proof/rig"
)

var update = flag.Bool("update", false, "write alerts.yaml anew")

// port is the number of a container's port.
func port(t *testing.T, c *core.Container, name string) int {
	t.Helper()
	for _, p := range c.Ports {
		if p.Name == name {
			return int(p.ContainerPort)
		}
	}
	t.Errorf("%s has no port %s", c.Name, name)
	return 0
}

func TestPortsProbesAndAddressesFitTheTable(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			table := m.table(t)
			sidecar, app := m.sidecar(), m.app()
			if want := ":" + strconv.Itoa(port(t, sidecar, "solotick")); table.Listen != want {
				t.Errorf("the table listens on %s, the port is %s", table.Listen, want)
			}
			for probe, path := range map[*core.Probe]string{sidecar.ReadinessProbe: "/readyz", sidecar.LivenessProbe: "/healthz"} {
				if get := probe.HTTPGet; get.Path != path || get.Port.StrVal != "solotick" {
					t.Errorf("a probe asks %s on %s", get.Path, get.Port.String())
				}
			}
			if sidecar.StartupProbe != nil {
				t.Error("a startupProbe of the sidecar keeps the app from starting")
			}
			if get := app.ReadinessProbe.HTTPGet; table.Ready == nil || table.Ready.URL != "http://127.0.0.1:"+strconv.Itoa(port(t, app, "http"))+get.Path {
				t.Errorf("the table asks %+v whether the app is ready, Kubernetes asks %s", table.Ready, get.Path)
			}
			for _, j := range table.Jobs {
				if j.HTTP == nil {
					continue
				}
				if u, err := url.Parse(j.HTTP.URL); err != nil || u.Port() != strconv.Itoa(port(t, app, "http")) {
					t.Errorf("the job %s calls %s; %v", j.Name, j.HTTP.URL, err)
				}
			}
			if f := table.Redis.PasswordFile; m.files(t, sidecar)[f] == "" {
				t.Errorf("there is no password in %s", f)
			}
			for _, e := range m.monitor.Spec.PodMetricsEndpoints {
				port(t, sidecar, *e.Port)
				if !e.HonorLabels {
					t.Error("without honorLabels a job's name is in exported_job")
				}
			}
			for _, in := range m.network.Spec.Ingress {
				for _, p := range in.Ports {
					c := map[string]*core.Container{"http": app, "solotick": sidecar}[p.Port.StrVal]
					if c == nil {
						t.Fatalf("the network policy lets the port %s in", p.Port.String())
					}
					port(t, c, p.Port.StrVal)
					if c == sidecar && len(in.From) == 0 {
						t.Error("anybody may read the metrics")
					}
				}
			}
			var out []string
			for _, e := range m.network.Spec.Egress {
				for _, p := range e.Ports {
					out = append(out, p.Port.String())
				}
			}
			for _, need := range redisPorts(t, &m) {
				if !strings.Contains(" "+strings.Join(out, " ")+" ", " "+need+" ") {
					t.Errorf("the network policy lets the ports %v out, and Redis is at %s", out, need)
				}
			}
		})
	}
}

// redisPorts are those that the sidecar connects to.
func redisPorts(t *testing.T, m *manifests) []string {
	t.Helper()
	r := m.table(t).Redis
	if r.Sentinel == nil {
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		return []string{u.Port()}
	}
	ports := []string{"6379"} // of the master that they name
	for _, addr := range r.Sentinel.Addrs {
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, p)
	}
	return ports
}

func TestThereIsTimeToDrain(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			all := time.Duration(*m.pod().TerminationGracePeriodSeconds) * time.Second
			app := time.Duration(m.app().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if need := app + m.table(t).ShutdownGrace + 10*time.Second; all < need {
				t.Errorf("terminationGracePeriodSeconds is %s: at least %s is needed", all, need)
			}
		})
	}
}

func TestContainersMayDoNothingThatTheyNeedNot(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			s := m.pod().SecurityContext
			if !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("the pod's security context is %s", s)
			}
			if *m.pod().AutomountServiceAccountToken {
				t.Error("the pod gets a token for the API server")
			}
			args := m.sidecar().Args
			if i := slices.Index(args, "--state-dir"); i < 0 || !slices.Contains(m.scratch(m.sidecar()), args[i+1]) {
				t.Errorf("%q keep the last good table in none of the directories %q", args, m.scratch(m.sidecar()))
			}
			if p := m.sidecar().RestartPolicy; p == nil || *p != core.ContainerRestartPolicyAlways {
				t.Error("the sidecar is no native one")
			}
			for _, c := range []*core.Container{m.sidecar(), m.app()} {
				s := c.SecurityContext
				if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || s.Capabilities.Add != nil {
					t.Errorf("the security context of %s is %s", c.Name, s)
				}
				asked, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
				if asked.IsZero() || limit.Cmp(*asked) < 0 || c.Resources.Requests.Cpu().IsZero() || !c.Resources.Limits.Cpu().IsZero() {
					t.Errorf("the resources of %s are %v", c.Name, c.Resources)
				}
			}
			for _, v := range m.pod().Volumes {
				if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
					t.Errorf("the secret's files have the mode %o", *v.Secret.DefaultMode)
				}
			}
		})
	}
}

// What an exec job may take of the memory, all slots taken, must leave room for Solotick itself: or the kernel ends that.
func TestCommandsFitTheContainer(t *testing.T) {
	m := build(t, "overlays/exec")
	table := m.table(t)
	var largest int64
	for _, j := range table.Jobs {
		if j.Exec == nil {
			t.Errorf("the job %s is no command", j.Name)
		}
		largest = max(largest, j.Resources.Memory)
	}
	if limit := m.sidecar().Resources.Limits.Memory().Value(); largest == 0 || int64(table.MaxRunning)*largest+64<<20 > limit {
		t.Errorf("%d commands of %d bytes and Solotick do not fit into %d", table.MaxRunning, largest, limit)
	}
}

// solotick is the program, compiled once for all tests.
func solotick(t *testing.T) string { return compiled(t, rig.Package, "solotick") }

func compiled(t *testing.T, pkg, name string) string {
	t.Helper()
	dir, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	if err := rig.Build(dir, pkg, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheCommandLinesExist(t *testing.T) {
	program := solotick(t)
	for _, k := range kustomizations {
		m := build(t, k)
		for _, args := range [][]string{m.sidecar().Args, m.sidecar().Lifecycle.PreStop.Exec.Command[1:]} {
			if out, err := exec.Command(program, append(args[:len(args):len(args)], "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s: solotick %s: %v\n%s", k, strings.Join(args, " "), err, out)
			}
		}
		if first := m.sidecar().Lifecycle.PreStop.Exec.Command[0]; first != entrypoint(t, "../../../Dockerfile") {
			t.Errorf("%s: preStop runs %s", k, first)
		}
	}
}

// The image for commands is the user's own, with the program where the manifests look for it.
func TestTheImageForCommandsHasSolotick(t *testing.T) {
	file := filepath.Join(root, "overlays/exec/Dockerfile")
	if got := entrypoint(t, file); got != "/solotick" {
		t.Errorf("the entry point is %s", got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	base := build(t, "base")
	for _, want := range []string{"COPY --from=" + base.sidecar().Image + " /solotick /solotick\n", "\nUSER 65532:65532\n", "\nCMD [\"run\"]\n",
		"-t " + buildImage(t) + " ."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q", file, want)
		}
	}
}

func buildImage(t *testing.T) string {
	m := build(t, "overlays/exec")
	return m.sidecar().Image
}

// entrypoint is the program that an image runs.
func entrypoint(t *testing.T, dockerfile string) string {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ENTRYPOINT \["([^"]+)"\]$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no entry point", dockerfile)
	}
	return string(m[1])
}
