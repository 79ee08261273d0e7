// Package kubernetes shows that examples/kubernetes and examples/helm are what Kubernetes, the Prometheus operator and
// Solotick understand: built by kustomize and by Helm, decoded strictly, each reference followed, and one of the pods
// run.
package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

const (
	repository = "../../.."
	root       = repository + "/examples/kubernetes"
)

// inBase is what the base makes, and each overlay with it.
var inBase = []string{
	"ConfigMap solotick-table", "Deployment billing", "NetworkPolicy billing", "PodDisruptionBudget billing", "Secret billing", "Secret solotick",
}

// more is what an overlay makes besides. Only one needs types that the cluster itself does not have.
var more = map[string][]string{
	"base":                nil,
	"overlays/exec":       nil,
	"overlays/sentinel":   nil,
	"overlays/monitoring": {"PodMonitor solotick", "PrometheusRule solotick"},
	"overlays/kind":       {"Namespace billing", "NetworkPolicy redis", "Service redis", "StatefulSet redis"},
}

// kustomizations are all that can be applied.
var kustomizations = slices.Sorted(maps.Keys(more))

// manifests are what a kustomization or a chart makes.
type manifests struct {
	objects    []string // kind and name of all
	deployment apps.Deployment
	tables     core.ConfigMap
	secrets    []core.Secret
	budget     policy.PodDisruptionBudget
	networks   []networking.NetworkPolicy
	monitor    monitoring.PodMonitor
	alerts     monitoring.PrometheusRule
	namespace  core.Namespace
	redis      apps.StatefulSet
	service    core.Service
}

// build has kustomize make the manifests, and decodes them.
func build(t *testing.T, kustomization string) manifests {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, kustomization))
	if err != nil {
		t.Fatal(err)
	}
	var m manifests
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetNamespace() != "billing" && r.GetKind() != "Namespace" {
			t.Errorf("%s: %s %s is in the namespace %q", kustomization, r.GetKind(), r.GetName(), r.GetNamespace())
		}
		m.decode(t, r.GetApiVersion()+" "+r.GetKind(), r.GetName(), text)
	}
	slices.Sort(m.objects)
	if want := slices.Sorted(slices.Values(append(more[kustomization], inBase...))); !slices.Equal(m.objects, want) {
		t.Errorf("%s makes\n%q\nwant\n%q", kustomization, m.objects, want)
	}
	if m.sidecar() == nil {
		t.Fatalf("%s has no sidecar", kustomization)
	}
	return m
}

// decode takes one object in. A field that Kubernetes does not know is an error.
func (m *manifests) decode(t *testing.T, kind, name string, text []byte) {
	t.Helper()
	var into any
	switch kind {
	case "v1 Secret":
		m.secrets = append(m.secrets, core.Secret{})
		into = &m.secrets[len(m.secrets)-1]
	case "networking.k8s.io/v1 NetworkPolicy":
		m.networks = append(m.networks, networking.NetworkPolicy{})
		into = &m.networks[len(m.networks)-1]
	default:
		into = map[string]any{
			"apps/v1 Deployment": &m.deployment, "v1 ConfigMap": &m.tables, "policy/v1 PodDisruptionBudget": &m.budget,
			"monitoring.coreos.com/v1 PodMonitor": &m.monitor, "monitoring.coreos.com/v1 PrometheusRule": &m.alerts,
			"v1 Namespace": &m.namespace, "apps/v1 StatefulSet": &m.redis, "v1 Service": &m.service,
		}[kind]
	}
	if into == nil {
		t.Fatalf("%s %s is of a kind that no test looks at", kind, name)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Errorf("%s %s: %v", kind, name, err)
	}
	_, short, _ := strings.Cut(kind, " ")
	m.objects = append(m.objects, short+" "+name)
}

func (m *manifests) pod() *core.PodSpec   { return &m.deployment.Spec.Template.Spec }
func (m *manifests) app() *core.Container { return &m.pod().Containers[0] }

func (m *manifests) sidecar() *core.Container { return sidecar(m.pod()) }

// sidecar is the one of a pod, nil if there is none.
func sidecar(pod *core.PodSpec) *core.Container {
	for i := range pod.InitContainers {
		if pod.InitContainers[i].Name == "solotick" {
			return &pod.InitContainers[i]
		}
	}
	return nil
}

// secret is what the Secret of that name has under the key, "" if nothing.
func (m *manifests) secret(name, key string) string {
	for _, s := range m.secrets {
		if s.Name == name {
			return s.StringData[key]
		}
	}
	return ""
}

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
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			env[e.Name] = "billing"
		case from.SecretKeyRef != nil && m.secret(from.SecretKeyRef.Name, from.SecretKeyRef.Key) != "":
			env[e.Name] = m.secret(from.SecretKeyRef.Name, from.SecretKeyRef.Key)
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
			case v.Secret != nil:
				for _, item := range v.Secret.Items {
					files[filepath.Join(mount.MountPath, item.Path)] = m.secret(v.Secret.SecretName, item.Key)
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
			selectors := map[string]map[string]string{
				"the Deployment": m.deployment.Spec.Selector.MatchLabels, "the budget": m.budget.Spec.Selector.MatchLabels,
				"the network policy": m.networks[0].Spec.PodSelector.MatchLabels,
			}
			for _, c := range m.pod().TopologySpreadConstraints {
				selectors["the spread over "+c.TopologyKey] = c.LabelSelector.MatchLabels
			}
			if len(selectors) != 5 {
				t.Errorf("the pods are not spread over nodes and zones: there are only the selectors %v", selectors)
			}
			for what, selected := range selectors {
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
	file := filepath.Join(root, "components/monitoring/alerts.yaml")
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
