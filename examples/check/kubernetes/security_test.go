package kubernetes

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	admission "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// restricted fails if Kubernetes' strictest pod security standard refuses the pod, by Kubernetes' own check.
func restricted(t *testing.T, labels map[string]string, pod *core.PodSpec) {
	t.Helper()
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := admission.LevelVersion{Level: admission.LevelRestricted, Version: admission.LatestVersion()}
	for _, result := range e.EvaluatePod(level, &meta.ObjectMeta{Labels: labels}, pod) {
		if !result.Allowed {
			t.Errorf("the standard %q refuses the pod: %s (%s)", level.Level, result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

func TestPodsKeepToTheRestrictedStandard(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			restricted(t, m.deployment.Spec.Template.Labels, m.pod())
			if k != "overlays/kind" {
				return
			}
			restricted(t, m.redis.Spec.Template.Labels, &m.redis.Spec.Template.Spec)
			if level := m.namespace.Labels[admission.EnforceLevelLabel]; level != string(admission.LevelRestricted) {
				t.Errorf("the namespace enforces %q", level)
			}
		})
	}
}
