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
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/solotick/solotick/internal/testing/rig"
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

// all are the kustomizations and the chart, each with the name of what makes it.
func all(t *testing.T) map[string]manifests {
	t.Helper()
	made := map[string]manifests{"helm": install(t, nil)}
	for _, k := range kustomizations {
		made[k] = build(t, k)
	}
	return made
}

func TestPortsProbesAndAddressesFitTheTable(t *testing.T) {
	for k, m := range all(t) {
		t.Run(k, func(t *testing.T) {
			table := m.table(t)
			sidecar, app := m.sidecar(), m.app()
			if drain := sidecar.Lifecycle.PreStop.Exec.Command; drain[len(drain)-1] != table.Admin {
				t.Errorf("preStop is %q, and the API is on %s", drain, table.Admin)
			}
			if want := ":" + strconv.Itoa(port(t, sidecar, "solotick")); table.Listen != want {
				t.Errorf("the table listens on %s, the port is %s", table.Listen, want)
			}
			if get := sidecar.LivenessProbe.HTTPGet; get.Path != "/healthz" || get.Port.StrVal != "solotick" {
				t.Errorf("a probe asks %s on %s", get.Path, get.Port.String())
			}
			if sidecar.ReadinessProbe != nil || !slices.Contains(sidecar.Args, "--start-anyway") {
				t.Error("Redis or a broken table keeps the app from its Service")
			}
			hung := sidecar.LivenessProbe.TerminationGracePeriodSeconds
			if hung == nil || *hung >= *m.pod().TerminationGracePeriodSeconds {
				t.Error("a sidecar that hangs is waited for as long as one that drains")
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
		})
	}
}

// redisPorts are those that the sidecar connects to.
func redisPorts(t *testing.T, m *manifests) (ports []int) {
	t.Helper()
	r := m.table(t).Redis
	var addrs []string
	if r.Sentinel == nil {
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		addrs = []string{u.Host}
	} else {
		addrs = append(addrs, r.Sentinel.Addrs...)
		addrs = append(addrs, "redis:6379") // the master that they name
	}
	for _, addr := range addrs {
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, n)
	}
	return ports
}

func TestThereIsTimeToDrain(t *testing.T) {
	for k, m := range all(t) {
		t.Run(k, func(t *testing.T) {
			grace := time.Duration(*m.pod().TerminationGracePeriodSeconds) * time.Second
			app := time.Duration(m.app().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if need := app + m.table(t).ShutdownGrace + 10*time.Second; grace < need {
				t.Errorf("terminationGracePeriodSeconds is %s: at least %s is needed", grace, need)
			}
		})
	}
}

func TestContainersMayDoNothingThatTheyNeedNot(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			if *m.pod().AutomountServiceAccountToken {
				t.Error("the pod gets a token for the API server")
			}
			kept := slices.ContainsFunc(m.sidecar().Env, func(v core.EnvVar) bool {
				return v.Name == "SOLOTICK_STATE_DIR" && slices.Contains(m.scratch(m.sidecar()), v.Value)
			})
			if !kept {
				t.Errorf("the last good table is kept in none of the directories %q", m.scratch(m.sidecar()))
			}
			if p := m.sidecar().RestartPolicy; p == nil || *p != core.ContainerRestartPolicyAlways {
				t.Error("the sidecar is no native one")
			}
			// It has all of it itself, because it is put into pods with a security context of their own.
			if s := m.sidecar().SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.RunAsGroup != 65532 ||
				s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("the sidecar's security context is %s", s)
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
			for _, mount := range m.app().VolumeMounts {
				if mount.Name == "solotick-secrets" {
					t.Error("the app can read the password of Redis")
				}
			}
		})
	}
}

// solotick returns the program, compiled once for all tests.
func solotick(t *testing.T) string {
	t.Helper()
	program, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var compiled = sync.OnceValues(func() (string, error) {
	dir, err := rig.Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(programs, "solotick")
	return program, rig.Build(dir, rig.Package, program)
})

// programs is the directory that is removed after all tests.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "solotick-kubernetes-")
	if err != nil {
		panic(err)
	}
	programs = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestTheCommandLinesExist(t *testing.T) {
	program := solotick(t)
	for k, m := range all(t) {
		for _, args := range [][]string{m.sidecar().Args, m.sidecar().Lifecycle.PreStop.Exec.Command[1:]} {
			if out, err := exec.Command(program, append(args[:len(args):len(args)], "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s: solotick %s: %v\n%s", k, strings.Join(args, " "), err, out)
			}
		}
		if first := m.sidecar().Lifecycle.PreStop.Exec.Command[0]; searchPath(t, image)+"/"+first != entrypoint(t, image) {
			t.Errorf("%s: preStop runs %s, which is not on the PATH of the image", k, first)
		}
	}
}

// The image for commands is the user's own, with the program where the manifests look for it.
func TestTheImageForCommandsHasSolotick(t *testing.T) {
	file := filepath.Join(root, "overlays/exec/Dockerfile")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	base := build(t, "base")
	for _, want := range []string{"COPY --from=" + base.sidecar().Image + " " + entrypoint(t, image) + " " + searchPath(t, image) + "/\n",
		"\nENTRYPOINT [\"solotick\"]\n", "\nUSER 65532:65532\n", "\nCMD [\"run\"]\n",
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

// The image of Solotick. The toy app that stands for a service is in it.
const image = repository + "/Dockerfile"

// entrypoint is the program that an image runs.
func entrypoint(t *testing.T, dockerfile string) string {
	t.Helper()
	program := instruction(t, dockerfile, `ENTRYPOINT \["([^"]+)"\]`)
	if program == "" {
		t.Fatalf("%s has no entry point", dockerfile)
	}
	return program
}

// searchPath is the PATH of an image, "" if it sets none.
func searchPath(t *testing.T, dockerfile string) string {
	t.Helper()
	return instruction(t, dockerfile, `ENV PATH=(\S+)`)
}

func instruction(t *testing.T, dockerfile, line string) string {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + line + `$`).FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}
