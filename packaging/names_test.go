package packaging

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	releases = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)(, not released yet)?$`)
	versions = regexp.MustCompile(`\b(?:v|VERSION=v?|solotick:|newName: ghcr\.io/\S+, newTag: |here )(\d+\.\d+\.\d+)\b`)
	images   = regexp.MustCompile(`ghcr\.io/(\w[\w./-]*\w)`)
)

// text is a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// newest is the version of the newest release of the changelog. Before there is one, it is the first version.
func newest(t *testing.T) string {
	t.Helper()
	all := releases.FindAllStringSubmatch(text(t, "CHANGELOG.md"), -1)
	if len(all) == 0 {
		t.Fatal("CHANGELOG.md has no version")
	}
	if released := slices.IndexFunc(all, func(r []string) bool { return r[2] == "" }); released >= 0 {
		return all[released][1]
	}
	return all[len(all)-1][1]
}

// The changelog has the version, and .goreleaser.yaml the names. All else that people read or copy agrees. The page on
// upgrades shows the next minor version, too.
func TestNamesAndVersionsAreThoseOfTheRelease(t *testing.T) {
	version, p := newest(t), project(t)
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	next, owned := fmt.Sprintf("%d.%d.0", major, minor+1), p.Release.GitHub.Owner+"/"+p.Release.GitHub.Name
	seen := map[string]bool{}
	for _, file := range tree(t, repository) {
		name := filepath.ToSlash(file.Path())
		switch {
		case strings.HasSuffix(name, "_test.go") && name != "docs/commands_test.go",
			strings.Contains(name, "/testdata/"), strings.HasPrefix(name, ".github/"):
			continue
		case !slices.Contains([]string{".go", ".md", ".tpl", ".yaml", ""}, filepath.Ext(name)):
			continue
		}
		content := text(t, name)
		for _, v := range versions.FindAllStringSubmatch(content, -1) {
			if v[1] != version && (v[1] != next || name != "docs/upgrading.md") {
				t.Errorf("%s: %q is not of version %s", name, v[0], version)
			}
			seen[name] = true
		}
		for _, image := range images.FindAllStringSubmatch(content, -1) {
			if image[1] != owned {
				t.Errorf("%s: the image is called %s, want ghcr.io/%s", name, image[0], owned)
			}
			seen[name] = true
		}
	}
	for _, name := range []string{"Dockerfile", "docs/install.md", "docs/kubernetes.md", "docs/upgrading.md",
		"docs/commands_test.go", "examples/helm/solotick/values.yaml", "examples/kubernetes/components/sidecar/sidecar.yaml",
		"examples/kubernetes/overlays/exec/Dockerfile", "examples/kubernetes/overlays/kind/kustomization.yaml"} {
		if !seen[name] {
			t.Errorf("%s has no version and no image", name)
		}
	}
	depends := fmt.Sprintf("  - name: %s\n    version: %d.%d.x\n    repository: file://../%[1]s\n", p.ProjectName, major, minor)
	for name, want := range map[string]string{
		"go.mod": "module github.com/" + owned + "\n",
		"examples/helm/" + p.ProjectName + "/Chart.yaml": fmt.Sprintf("type: library\nversion: %s\nappVersion: %[1]s\n", version),
		"examples/helm/billing/Chart.yaml":               depends,
		"docs/kubernetes.md":                             depends,
		".github/workflows/release.yaml":                 "IMAGE: ghcr.io/${{ github.repository }}\n",
	} {
		if !strings.Contains(text(t, name), want) {
			t.Errorf("%s has no\n%s", name, want)
		}
	}
	if chart := text(t, "examples/helm/"+p.ProjectName+"/Chart.yaml"); !strings.Contains(chart, "\nname: "+p.ProjectName+"\n") {
		t.Errorf("the chart is not called %s:\n%s", p.ProjectName, chart)
	}
}
