package convert

import (
	"fmt"
	"slices"
	"strings"
)

// most is how many jobs a line of the summary names.
const most = 5

// Summary returns lines for the user: the number of jobs, each job that was not carried over with the reason, and for
// each kind of note the jobs that have one.
func (r *Result) Summary() []string {
	lines := []string{fmt.Sprintf("note: jobs carried over: %d", r.Jobs)}
	if r.Lost > 0 {
		lines[0] += fmt.Sprintf(", commented out: %d", r.Lost)
	}
	if r.Local > 0 {
		lines = append(lines, fmt.Sprintf("warning: jobs whose times are UTC here, "+
			"and were local times of cron's machine: %d; --time-zone ZONE says which", r.Local))
	}
	var kinds []string
	by := map[string][]string{}
	lost := 0
	for _, n := range r.Notes {
		switch {
		case n.Lost && lost < maxShown:
			line := "warning: " + oneLine(n.At) + ": "
			if n.Job != "" {
				line += fmt.Sprintf("job %q: ", n.Job)
			}
			lines = append(lines, line+n.Text)
			lost++
		case n.Lost:
			lost++
		default:
			if by[n.About] == nil {
				kinds = append(kinds, n.About)
			}
			if names := by[n.About]; len(names) == 0 || names[len(names)-1] != n.Job {
				by[n.About] = append(by[n.About], n.Job)
			}
		}
	}
	if lost > maxShown {
		lines = append(lines, fmt.Sprintf("warning: and %d more", lost-maxShown))
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		names := by[k]
		line := fmt.Sprintf("note: comments on %s: %s", k, strings.Join(names[:min(len(names), most)], ", "))
		if len(names) > most {
			line += fmt.Sprintf(" and %d more", len(names)-most)
		}
		lines = append(lines, line)
	}
	return lines
}

// maxShown bounds the jobs that the summary lists with their reasons. The table has all reasons.
const maxShown = 50
