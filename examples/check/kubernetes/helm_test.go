package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solotick/solotick/config"
)

const charts = repository + "/examples/helm"

// chart is a copy of the example, with the library where `helm dependency update` puts it.
func chart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(
		os.CopyFS(dir, os.DirFS(filepath.Join(charts, "billing"))),
		os.RemoveAll(filepath.Join(dir, "charts")), // what somebody's own `helm dependency update` has left
		os.CopyFS(filepath.Join(dir, "charts/solotick"), os.DirFS(filepath.Join(charts, "solotick"))),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// template does what `helm template billing DIR --namespace billing` does.
func template(t *testing.T, dir string, values map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "billing", Namespace: "billing", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// install is what the chart gives to Kubernetes, decoded strictly, beside the Secrets of the base.
func install(t *testing.T, values map[string]any) manifests {
	t.Helper()
	return installed(t, chart(t), values)
}

// installed is what a copy of the chart gives to Kubernetes.
func installed(t *testing.T, dir string, values map[string]any) manifests {
	t.Helper()
	files, err := template(t, dir, values)
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{secrets: build(t, "base").secrets}
	for _, text := range files {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if head.Metadata.Namespace != "billing" {
			t.Errorf("%s %s is in the namespace %q", head.Kind, head.Metadata.Name, head.Metadata.Namespace)
		}
		m.decode(t, head.APIVersion+" "+head.Kind, head.Metadata.Name, []byte(text))
	}
	slices.Sort(m.objects)
	if want := []string{"ConfigMap billing-solotick", "Deployment billing"}; !slices.Equal(m.objects, want) {
		t.Errorf("the chart makes %q, want %q", m.objects, want)
	}
	if m.sidecar() == nil {
		t.Fatal("the chart has no sidecar")
	}
	return m
}

func TestTheChartsPassTheLinter(t *testing.T) {
	for _, dir := range []string{chart(t), filepath.Join(charts, "solotick")} {
		for _, message := range lint.All(dir, nil, "billing", true).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("helm lint %s: %s", dir, message)
			}
		}
	}
}

// There is one sidecar, which kustomize and Helm add alike.
func TestHelmAddsTheSidecarOfTheComponent(t *testing.T) {
	helm, kustomize := install(t, nil), build(t, "base")
	have, want := sorted(*helm.sidecar()), sorted(*kustomize.sidecar())
	if !reflect.DeepEqual(have, want) {
		t.Errorf("Helm's sidecar is\n%s\nand that of the component\n%s", text(t, have), text(t, want))
	}
	volumes := solotickVolumes(helm.pod().Volumes)
	for _, v := range volumes {
		if v.ConfigMap != nil {
			if v.ConfigMap.Name != helm.tables.Name {
				t.Errorf("the table is looked for in the ConfigMap %s, and is in %s", v.ConfigMap.Name, helm.tables.Name)
			}
			v.ConfigMap.Name = "solotick-table"
		}
	}
	if others := solotickVolumes(kustomize.pod().Volumes); !reflect.DeepEqual(volumes, others) {
		t.Errorf("Helm's volumes are\n%s\nand those of the component\n%s", text(t, volumes), text(t, others))
	}
	labels := helm.deployment.Spec.Template.Labels
	if !selects(t, helm.deployment.Spec.Selector, labels) || labels["app.kubernetes.io/name"] != "billing" {
		t.Errorf("the Deployment selects %v, and its pods have %v", helm.deployment.Spec.Selector, labels)
	}
}

// sorted is the container with its variables in the order of their names: kustomize puts patches first.
func sorted(c core.Container) core.Container {
	c.Env = slices.SortedFunc(slices.Values(c.Env), func(a, b core.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func TestTheTableOfTheChartArrivesAsItIs(t *testing.T) {
	m := install(t, nil)
	written, err := os.ReadFile(filepath.Join(charts, "billing/table.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.tables.Data["table.yaml"]; got != string(written) {
		t.Errorf("the table in the ConfigMap is\n%s", got)
	}
	m.table(t)
	without := chart(t)
	if err := os.Remove(filepath.Join(without, "table.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := template(t, without, nil); err == nil || !strings.Contains(err.Error(), "needs the file table.yaml") {
		t.Errorf("a chart without a table: %v", err)
	}
}

func TestATableOfSeveralFilesArrivesAsADirectory(t *testing.T) {
	dir := chart(t)
	written, err := os.ReadFile(filepath.Join(dir, "table.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	head, jobs, _ := strings.Cut(string(written), "\njobs:\n")
	files := map[string]string{"00-service.yaml": head + "\n", "jobs.yml": "jobs:\n" + jobs}
	for name, text := range map[string]string{"00-service.yaml": files["00-service.yaml"], "jobs.yml": files["jobs.yml"], "README.md": "no table"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "cron"), 0o755), os.WriteFile(filepath.Join(dir, "cron", name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "table.yaml")); err != nil {
		t.Fatal(err)
	}
	m := installed(t, dir, map[string]any{"solotick": map[string]any{"tableDirectory": "cron"}})
	if !reflect.DeepEqual(m.tables.Data, files) {
		t.Fatalf("the ConfigMap has\n%v", m.tables.Data)
	}
	env, mounted := m.environment(t, m.sidecar(), "billing-0"), t.TempDir()
	for name, text := range m.files(t, m.sidecar()) {
		if filepath.Dir(name) == env["SOLOTICK_CONFIG"] {
			if err := os.WriteFile(filepath.Join(mounted, filepath.Base(name)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	table, err := config.Read(mounted, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	one := install(t, nil)
	if whole := one.table(t); len(table.Jobs) != len(whole.Jobs) || table.Service != whole.Service {
		t.Errorf("the directory has %d jobs of %s, and one file has %d of %s", len(table.Jobs), table.Service, len(whole.Jobs), whole.Service)
	}
	if _, err := template(t, dir, map[string]any{"solotick": map[string]any{"tableDirectory": "charts"}}); err == nil || !strings.Contains(err.Error(), "in the directory charts of your chart") {
		t.Errorf("a directory without a table: %v", err)
	}
}

// Each value that the library documents does what it says.
func TestEachValueOfTheLibraryHasItsEffect(t *testing.T) {
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(`
image: {repository: ghcr.io/shop/solotick, tag: "7", pullPolicy: Always}
redisPassword: {secretName: shop-redis, key: password}
env: [{name: PGHOST, value: postgres}]
admin: "127.0.0.1:7001"
port: 7000
tableDirectory: tables
resources: {limits: {memory: 512Mi}}
volumeMounts: [{name: tmp, mountPath: /tmp}]
`), &values); err != nil {
		t.Fatal(err)
	}
	documented, err := chartutil.ReadValuesFile(filepath.Join(charts, "solotick/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range documented {
		if values[name] == nil {
			t.Errorf("the value %s is not tried out", name)
		}
	}
	dir := chart(t)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "tables"), 0o755), os.Rename(filepath.Join(dir, "table.yaml"), filepath.Join(dir, "tables/all.yaml"))); err != nil {
		t.Fatal(err)
	}
	m := installed(t, dir, map[string]any{"solotick": values})
	c := m.sidecar()
	var secret *core.SecretVolumeSource
	for _, v := range m.pod().Volumes {
		if v.Secret != nil {
			secret = v.Secret
		}
	}
	for what, ok := range map[string]bool{
		"image":          c.Image == "ghcr.io/shop/solotick:7" && c.ImagePullPolicy == core.PullAlways,
		"redisPassword":  secret.SecretName == "shop-redis" && secret.Items[0].Key == "password" && secret.Items[0].Path == "redis-password",
		"env":            slices.Contains(c.Env, core.EnvVar{Name: "PGHOST", Value: "postgres"}),
		"admin":          c.Lifecycle.PreStop.Exec.Command[3] == "127.0.0.1:7001",
		"port":           c.Ports[0].ContainerPort == 7000,
		"tableDirectory": slices.Contains(c.Env, core.EnvVar{Name: "SOLOTICK_CONFIG", Value: "/etc/solotick"}),
		"resources":      c.Resources.Limits.Memory().String() == "512Mi" && c.Resources.Requests.Memory().String() == "32Mi",
		"volumeMounts":   slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.Name == "tmp" }) && len(c.VolumeMounts) == 4,
	} {
		if !ok {
			t.Errorf("the value %s is not in force:\n%s", what, text(t, c))
		}
	}
}
