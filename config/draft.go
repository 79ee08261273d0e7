package config

import "maps"

// draft is a job while it is read, with where its values were written.
type draft struct {
	Job
	at map[string]text // by path
}

// noteText remembers where a value of the job was written, for the checks that compare several values.
func (d *decoder) noteText(e entry, t text) {
	if d.job != nil {
		t.common = d.job == &d.base
		d.job.at[e.path] = t
	}
}

// note remembers that a mapping was written.
func (d *decoder) note(e entry) {
	d.noteText(e, text{node: e.at, label: e.path})
}

// own says whether the job itself sets a key.
func (j *draft) own(path string) bool {
	t, ok := j.at[path]
	return ok && t.ok() && !t.common
}

// clone is a new job that begins with the defaults.
func (j *draft) clone() *draft {
	return &draft{Job: j.Job, at: maps.Clone(j.at)}
}
