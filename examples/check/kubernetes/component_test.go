package kubernetes

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// theirs is a Deployment of somebody who has never heard of Solotick.
const theirs = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      serviceAccountName: shop
      terminationGracePeriodSeconds: 120
      securityContext: {runAsUser: 1000, fsGroup: 2000}
      initContainers:
        - name: migrate
          image: shop:1
          args: [migrate]
          env: [{name: POD_NAME, value: theirs}]
          volumeMounts: [{name: table, mountPath: /etc/solotick}]
      containers:
        - name: shop
          image: shop:1
          ports: [{name: http, containerPort: 8080}]
          livenessProbe:
            httpGet: {path: /healthz, port: http}
          volumeMounts: [{name: table, mountPath: /etc/solotick}]
      volumes:
        - name: table
          emptyDir: {}
`

// A copy of the component's directory is enough, and it adds to a pod without any change to what was there.
func TestTheComponentAddsTheSidecarToSomebodyElsesPods(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "sidecar"), os.DirFS(filepath.Join(root, "components/sidecar"))); err != nil {
		t.Fatal(err)
	}
	flow, err := yaml.YAMLToJSON([]byte(strings.Replace(theirs, "name: shop}", "name: flow}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	both := theirs + "---\n" + strings.Replace(theirs, "kind: Deployment", "kind: StatefulSet", 1) + "---\n" + string(flow)
	var made [2][]core.PodTemplateSpec
	for i, kustomization := range []string{"resources: [theirs.yaml]\n", "resources: [theirs.yaml]\ncomponents: [sidecar]\n"} {
		for name, text := range map[string]string{"theirs.yaml": both, "kustomization.yaml": kustomization} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all.Resources() {
			text, err := r.AsYAML()
			if err != nil {
				t.Fatal(err)
			}
			var workload apps.Deployment // what both have in common is all that there is
			if err := yaml.UnmarshalStrict(text, &workload); err != nil {
				t.Fatal(err)
			}
			made[i] = append(made[i], workload.Spec.Template)
		}
	}
	m := build(t, "base")
	want := *m.sidecar()
	want.Env = slices.DeleteFunc(slices.Clone(want.Env), func(e core.EnvVar) bool { return e.Name == "BILLING_TOKEN" })
	if want.TerminationMessagePolicy != core.TerminationMessageFallbackToLogsOnError {
		t.Error("kubectl describe does not say why the sidecar ended")
	}
	if len(made[1]) != 3 {
		t.Fatalf("there are %d pod templates", len(made[1]))
	}
	for i, with := range made[1] {
		if got := sidecar(&with.Spec); !reflect.DeepEqual(got, &want) {
			t.Errorf("the sidecar is\n%s\nand that of the base\n%s", text(t, got), text(t, want))
		}
		if got := solotickVolumes(with.Spec.Volumes); !reflect.DeepEqual(got, solotickVolumes(m.pod().Volumes)) {
			t.Errorf("its volumes are\n%s", text(t, got))
		}
		with.Spec.InitContainers = slices.DeleteFunc(with.Spec.InitContainers, func(c core.Container) bool { return c.Name == "solotick" })
		with.Spec.Volumes = slices.DeleteFunc(with.Spec.Volumes, func(v core.Volume) bool { return len(solotickVolumes([]core.Volume{v})) > 0 })
		if !reflect.DeepEqual(with, made[0][i]) {
			t.Errorf("besides the sidecar there is\n%s\nand there was\n%s", text(t, with), text(t, made[0][i]))
		}
	}
}

// solotickVolumes are those that the sidecar brings.
func solotickVolumes(all []core.Volume) (own []core.Volume) {
	for _, v := range all {
		if slices.Contains([]string{"solotick-table", "solotick-state", "solotick-secrets"}, v.Name) {
			own = append(own, v)
		}
	}
	return own
}

func text(t *testing.T, what any) string {
	t.Helper()
	out, err := yaml.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The monitor is for all services of a namespace, so it finds the sidecars by their port alone.
func TestTheMonitorScrapesTheSidecars(t *testing.T) {
	m := build(t, "overlays/monitoring")
	if s := m.monitor.Spec.Selector; len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		t.Errorf("the monitor selects %v alone", s)
	}
	if len(m.monitor.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("the monitor scrapes %d endpoints", len(m.monitor.Spec.PodMetricsEndpoints))
	}
	e := m.monitor.Spec.PodMetricsEndpoints[0]
	port(t, m.sidecar(), *e.Port)
	if numbers(m.pod().Containers)[*e.Port] != 0 {
		t.Errorf("the app has the port %s, too", *e.Port)
	}
	if !e.HonorLabels {
		t.Error("without honorLabels a job's name is in exported_job")
	}
}
