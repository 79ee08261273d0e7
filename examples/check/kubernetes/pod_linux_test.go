package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	core "k8s.io/api/core/v1"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// insideVariable marks the process that has a network of its own, and names the programs that were compiled for it.
const insideVariable = "KUBERNETES_TEST_INSIDE"

// alone runs the test once more in a network of its own, in which all the ports of the manifests are free. True in
// there.
func alone(t *testing.T) (binary string, inside bool) {
	t.Helper()
	if binary := os.Getenv(insideVariable); binary != "" {
		bringUpLoopback(t)
		return binary, true
	}
	needs.Root(t)
	needs.Program(t, "redis-server")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"="+solotick(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return "", false
}

func bringUpLoopback(t *testing.T) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		t.Fatalf("bringing up the loopback interface: %v", errno)
	}
}

// ask is a kubelet's probe, or Prometheus'.
func ask(port int, path string) (code int, body string) {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	if err := rig.Until(patience, what, so); err != nil {
		t.Fatal(err)
	}
}

// expanded returns arguments with their variables, written $(NAME), put in as the kubelet does.
func expanded(args []string, environment map[string]string) []string {
	args = slices.Clone(args)
	for name, value := range environment {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$("+name+")", value)
		}
	}
	return args
}

// redisCommand is that of the overlay's Redis, with its variables put in as the kubelet does, and a directory of the
// test instead of its volume.
func redisCommand(t *testing.T, m *manifests) []string {
	t.Helper()
	c := &m.redis.Spec.Template.Spec.Containers[0]
	args := expanded(slices.Concat(c.Command, c.Args), m.environment(t, c, "redis-0"))
	dir := slices.Index(args, c.VolumeMounts[0].MountPath)
	if dir < 0 {
		t.Fatalf("%q keep nothing in the volume", args)
	}
	args[dir] = t.TempDir()
	return args
}

// A pod of the overlay for kind, from its start to its end: the manifest's commands, ports, files, variables and
// graces, with a real Redis where the table looks for one, run as the overlay says.
func TestAPodLivesAndIsReplacedAsTheManifestSays(t *testing.T) {
	binary, inside := alone(t)
	if !inside {
		return
	}
	m := build(t, "overlays/kind")
	redis, err := rig.Launch("redis", t.TempDir()+"/redis.log", nil, redisCommand(t, &m)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	sidecar := create(t, &m, m.sidecar(), "billing-0", image, binary)
	app := create(t, &m, m.app(), "billing-0", image, binary)
	metrics := port(t, m.sidecar(), "solotick")
	probed := func(p *core.Probe) func() bool {
		return func() bool { code, _ := ask(metrics, p.HTTPGet.Path); return code == http.StatusOK }
	}
	shows := func(line string) func() bool {
		re := regexp.MustCompile(`(?m)^` + line + `$`)
		return func() bool { _, text := ask(metrics, "/metrics"); return re.MatchString(text) }
	}

	// The sidecar is there first; without the app it is ready and takes no ticks.
	sidecar.start()
	await(t, "the sidecar to live", probed(m.sidecar().LivenessProbe))
	await(t, "the sidecar to be ready", func() bool { code, _ := ask(metrics, "/readyz"); return code == http.StatusOK })
	await(t, "Redis to be up", shows("solotick_redis_up 1"))
	await(t, "Redis to be fit for locks", shows("solotick_redis_fit 1"))
	await(t, "the app not to be ready", shows("solotick_app_ready 0"))
	app.start()
	await(t, "the app to be ready", shows("solotick_app_ready 1"))

	// Somebody looks into the pod.
	for _, command := range [][]string{{"status"}, {"trigger", "refresh-rates", "--wait"}, {"history", "refresh-rates"}} {
		if out, err := sidecar.exec(append([]string{"solotick"}, command...)...); err != nil {
			t.Errorf("solotick %s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}

	// The ConfigMap changes: to a new table, to a broken one, and to a good one.
	text := m.tables.Data["table.yaml"]
	sidecar.project("/etc/solotick", "table.yaml", text+"  - {nome: slow}\n")
	await(t, "the broken table to be refused", shows("solotick_table_last_reload_successful 0"))
	text += `  - name: slow
    schedule: "@yearly"
    http: {url: "http://127.0.0.1:8080/jobs/slow?take=8s", headers: {Authorization: "Bearer ${BILLING_TOKEN}"}}
`
	sidecar.project("/etc/solotick", "table.yaml", text)
	await(t, "the new table", shows(`solotick_fires_total{job="slow"} 0`))
	await(t, "the new table to be well", shows("solotick_table_last_reload_successful 1"))

	// A job runs when the pod is to end, for longer than the app's preStop.
	if out, err := sidecar.exec("solotick", "trigger", "slow"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	await(t, "the job to run", shows(`solotick_running{job="slow"} 1`))
	replaced(t, &m, sidecar, app, metrics)
}

// replaced ends the pod in the kubelet's order: all preStop at once, SIGTERM for the app after its own, and for the
// sidecar when the app is gone.
func replaced(t *testing.T, m *manifests, sidecar, app *container, metrics int) {
	t.Helper()
	until := time.Now().Add(time.Duration(*m.pod().TerminationGracePeriodSeconds) * time.Second)
	var hooks sync.WaitGroup
	hooks.Go(func() {
		if out, err := sidecar.exec(sidecar.spec.Lifecycle.PreStop.Exec.Command...); err != nil {
			t.Errorf("preStop: %v\n%s", err, out)
		}
		if code, why := ask(metrics, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(why, "draining") {
			t.Errorf("after preStop /readyz says %d %s", code, why)
		}
		if _, text := ask(metrics, "/metrics"); !strings.Contains(text, `solotick_runs_total{job="slow",outcome="succeeded"} 1`) {
			t.Error("drain did not wait for the job, or the app did not finish it")
		}
	})
	slept := time.NewTimer(time.Duration(app.spec.Lifecycle.PreStop.Sleep.Seconds) * time.Second)
	<-slept.C
	app.terminate(until)
	hooks.Wait()
	sidecar.terminate(until)
	if !strings.Contains(sidecar.log.String(), `"msg":"stopped"`) {
		t.Error("the sidecar did not end in order")
	}
	for _, c := range []*container{sidecar, app} {
		if secret := m.secret("billing", "token"); strings.Contains(c.log.String(), secret) {
			t.Errorf("the log of %s has the token", c.spec.Name)
		}
	}
}
