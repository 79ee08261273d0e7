// Package kubernetes shows that examples/kubernetes is what Kubernetes, the Prometheus operator and Solotick understand: built
// by kustomize, decoded strictly, each reference followed, and one of its pods run.
package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/solotick/solotick/config"
)

const root = "../../kubernetes"

// kustomizations are all that can be applied.
var kustomizations = []string{"base", "overlays/exec", "overlays/sentinel"}

// manifests are what a kustomization makes.
type manifests struct {
	deployment apps.Deployment
	tables     core.ConfigMap
	secret     core.Secret
	budget     policy.PodDisruptionBudget
	network    networking.NetworkPolicy
	monitor    monitoring.PodMonitor
	alerts     monitoring.PrometheusRule
}

// build has kustomize make the manifests, and decodes them: what Kubernetes does not know is an error.
func build(t *testing.T, kustomization string) manifests {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, kustomization))
	if err != nil {
		t.Fatal(err)
	}
	var m manifests
	into := map[string]any{
		"apps/v1 Deployment": &m.deployment, "v1 ConfigMap": &m.tables, "v1 Secret": &m.secret,
		"policy/v1 PodDisruptionBudget": &m.budget, "networking.k8s.io/v1 NetworkPolicy": &m.network,
		"monitoring.coreos.com/v1 PodMonitor": &m.monitor, "monitoring.coreos.com/v1 PrometheusRule": &m.alerts,
	}
	for _, r := range made.Resources() {
		kind := r.GetApiVersion() + " " + r.GetKind()
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if into[kind] == nil {
			t.Fatalf("%s: there is a %s %s too many", kustomization, kind, r.GetName())
		}
		if err := yaml.UnmarshalStrict(text, into[kind]); err != nil {
			t.Errorf("%s: %s %s: %v", kustomization, kind, r.GetName(), err)
		}
		if r.GetNamespace() != "billing" {
			t.Errorf("%s: %s %s is in the namespace %q", kustomization, kind, r.GetName(), r.GetNamespace())
		}
		delete(into, kind)
	}
	for kind := range into {
		t.Errorf("%s: there is no %s", kustomization, kind)
	}
	return m
}

func (m *manifests) pod() *core.PodSpec       { return &m.deployment.Spec.Template.Spec }
func (m *manifests) sidecar() *core.Container { return &m.pod().InitContainers[0] }
func (m *manifests) app() *core.Container     { return &m.pod().Containers[0] }

// environment is what a container gets in the pod of that name.
func (m *manifests) environment(t *testing.T, c *core.Container, pod string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			env[e.Name] = e.Value
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
			env[e.Name] = pod
		case from.SecretKeyRef != nil && from.SecretKeyRef.Name == m.secret.Name && m.secret.StringData[from.SecretKeyRef.Key] != "":
			env[e.Name] = m.secret.StringData[from.SecretKeyRef.Key]
		default:
			t.Errorf("%s: the variable %s comes from nowhere", c.Name, e.Name)
		}
	}
	return env
}

// files are what a container finds in its volumes, by path.
func (m *manifests) files(t *testing.T, c *core.Container) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, mount := range c.VolumeMounts {
		if mount.SubPath != "" || mount.SubPathExpr != "" {
			t.Errorf("%s: %s is mounted by subPath, which never changes", c.Name, mount.MountPath)
		}
		found := false
		for _, v := range m.pod().Volumes {
			if v.Name != mount.Name {
				continue
			}
			found = true
			switch {
			case v.ConfigMap != nil && v.ConfigMap.Name == m.tables.Name:
				for name, text := range m.tables.Data {
					files[filepath.Join(mount.MountPath, name)] = text
				}
			case v.Secret != nil && v.Secret.SecretName == m.secret.Name:
				for _, item := range v.Secret.Items {
					files[filepath.Join(mount.MountPath, item.Path)] = m.secret.StringData[item.Key]
				}
			case v.EmptyDir != nil:
			default:
				t.Errorf("the volume %s is of nothing that is there", v.Name)
			}
		}
		if !found {
			t.Errorf("%s: there is no volume %s", c.Name, mount.Name)
		}
	}
	return files
}

// scratch are the directories of a container that are empty at first, and its own to write to.
func (m *manifests) scratch(c *core.Container) (paths []string) {
	for _, mount := range c.VolumeMounts {
		for _, v := range m.pod().Volumes {
			if v.Name == mount.Name && v.EmptyDir != nil && !mount.ReadOnly {
				paths = append(paths, mount.MountPath)
			}
		}
	}
	return paths
}

// tablePath is where solotick looks for its table when nobody says where.
const tablePath = "/etc/solotick/table.yaml"

// table is the one that the sidecar reads, as it reads it.
func (m *manifests) table(t *testing.T) *config.Table {
	t.Helper()
	env := m.environment(t, m.sidecar(), "billing-0")
	text, ok := m.files(t, m.sidecar())[tablePath]
	if !ok {
		t.Fatalf("there is no %s in the sidecar", tablePath)
	}
	table, err := config.Parse(tablePath, []byte(text), func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range table.Warnings {
		t.Errorf("the table has a warning: %s", w.Message)
	}
	return table
}

func TestManifestsAreWhatTheirSelectorsLookFor(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			labels := m.deployment.Spec.Template.Labels
			for what, selected := range map[string]map[string]string{
				"the Deployment": m.deployment.Spec.Selector.MatchLabels, "the budget": m.budget.Spec.Selector.MatchLabels,
				"the network policy": m.network.Spec.PodSelector.MatchLabels, "the monitor": m.monitor.Spec.Selector.MatchLabels,
			} {
				if len(selected) == 0 {
					t.Errorf("%s selects everything", what)
				}
				for name, value := range selected {
					if labels[name] != value {
						t.Errorf("%s selects %s=%s, and the pods have %v", what, name, value, labels)
					}
				}
			}
			if n := *m.deployment.Spec.Replicas; n < 2 || m.budget.Spec.MaxUnavailable.IntValue() >= int(n) {
				t.Errorf("of %d replicas %s may be gone", n, m.budget.Spec.MaxUnavailable)
			}
			if m.table(t).Service != m.deployment.Spec.Template.Labels["app.kubernetes.io/name"] {
				t.Errorf("the alerts' label `service` is %q, and the table calls it %q", labels["app.kubernetes.io/name"], m.table(t).Service)
			}
		})
	}
}

// The Prometheus operator takes rules as a manifest. It is the tested file, moved in by two columns.
func TestTheOperatorGetsTheTestedRules(t *testing.T) {
	rules, err := os.ReadFile("../../prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "base/alerts.yaml")
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(have), "\nspec:\n")
	_, groups, found := strings.Cut(string(rules), "\ngroups:\n")
	if !ok || !found {
		t.Fatal("there is no spec in alerts.yaml, or no groups in rules.yaml")
	}
	var want strings.Builder
	fmt.Fprintf(&want, "%s\nspec:\n  groups:\n", head)
	for line := range strings.Lines(groups) {
		if line != "\n" {
			want.WriteString("  ")
		}
		want.WriteString(line)
	}
	if *update {
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want.String() != string(have) {
		t.Errorf("%s is not that of rules.yaml any more: run the test with -update", file)
	}
}
