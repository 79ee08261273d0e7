package config

import (
	"maps"
	"slices"

	"github.com/solotick/solotick/config/strict"
)

// draft is a job that is being read, with the places of its values.
type draft struct {
	Job
	at      map[string]strict.Text // by path
	missing []string               // paths of the values that have an unset variable
	exprs   []strict.Text          // of the schedule
}

// fromDefaults marks the values of a job that come from defaults.
const fromDefaults = " (from defaults)"

// note remembers where a value of the job was written, for the checks that compare several values.
func (d *decoder) note(e strict.Entry, t strict.Text) {
	if d.job != nil {
		d.job.at[e.Path] = t
		d.job.missing = slices.DeleteFunc(d.job.missing, func(path string) bool { return path == e.Path })
	}
}

// noteMapping remembers that a mapping was written.
func (d *decoder) noteMapping(e strict.Entry) {
	d.note(e, strict.Text{Node: e.At, Label: e.Path})
}

// own says whether the job itself sets a key.
func (j *draft) own(path string) bool {
	t, ok := j.at[path]
	return ok && t.OK() && t.Origin == ""
}

// clone is a new job that begins with the defaults.
func (j *draft) clone() *draft {
	return &draft{Job: j.Job, at: maps.Clone(j.at), missing: slices.Clone(j.missing)}
}
