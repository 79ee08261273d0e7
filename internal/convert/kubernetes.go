package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// readManifests reads the CronJobs of a file and skips other objects.
func readManifests(f Input) ([]job, error) {
	m := &manifests{file: f.Name, left: budget, other: map[string]int{}}
	err := m.documents(f.Data, func(o object) error { return m.object(o, 0) })
	if err == nil && m.left < 0 {
		err = errBomb
	}
	switch {
	case err != nil:
		e := &Error{File: f.Name, Why: err.Error()}
		if strings.Contains(e.Why, "template") {
			e.Hint = "render it first: helm template, or kubectl get cronjob -o yaml"
		}
		return nil, e
	case len(m.jobs) == 0:
		why := "it holds no CronJob"
		if len(m.other) > 0 {
			kinds := slices.Sorted(maps.Keys(m.other))
			why += ", but " + strings.Join(kinds[:min(len(kinds), 5)], ", ")
		}
		return nil, &Error{f.Name, why, readable}
	}
	return m.jobs, nil
}

// object reads one object, or the items of a list.
func (m *manifests) object(o object, depth int) error {
	kind := o.get("kind").text()
	switch {
	case m.left < 0 || depth > maxDepth:
		return errBomb
	case !o.is():
		return nil // an empty document, as between two ---
	case kind == "CronJob":
		group, _, _ := strings.Cut(o.get("apiVersion").text(), "/")
		if group != "batch" {
			m.other["CronJob of another API than batch"]++
			return nil
		}
		m.cronJob(o)
		return nil
	case strings.HasSuffix(kind, "List"):
		for _, item := range o.get("items").items() {
			// Within a CronJobList the API leaves out the kind of the items.
			if kind == "CronJobList" && !item.get("kind").is() {
				m.cronJob(item)
				continue
			}
			if err := m.object(item, depth+1); err != nil {
				return err
			}
		}
		return nil
	case kind == "":
		return fmt.Errorf("line %d: no object of Kubernetes: it has no kind", o.node.Line)
	}
	m.other[oneLine(kind)]++
	return nil
}
