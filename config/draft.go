package config

import (
	"slices"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// draft is a job that is being read, with the places of its values.
type draft struct {
	Job
	common  bool                   // it is what defaults says
	at      map[string]strict.Text // by path
	missing []string               // paths of the values that have an unset variable
	exprs   []strict.Text          // of the schedule
}

// fromDefaults marks the values of a job that come from defaults.
const fromDefaults = " (from defaults)"

// own reports whether the job itself sets a key.
func (j *draft) own(path string) bool {
	t, ok := j.at[path]
	return ok && t.OK() && t.Origin == ""
}

// unset reports whether one of the values, or an item of it, has an unset variable. Checks that compare such values are
// skipped.
func (j *draft) unset(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return slices.ContainsFunc(j.missing, within(path)) })
}

// within reports whether a path is another one, or an item of it.
func within(path string) func(string) bool {
	return func(p string) bool { return p == path || strings.HasPrefix(p, path+"[") }
}
