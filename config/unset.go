package config

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config/strict"
)

// Read is Load for callers that run no jobs: operators and CI do not need a job's secrets. An unset variable is a
// warning, and the value with it counts as absent. If the table has problems, Read returns both Problems and a Table
// with everything that could be read; its Unknown lists the rest. A job with problems is in the table with nothing but
// its name.
func Read(path string, env Env) (*Table, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReadText(path, data, env)
}

// ReadText is Read for bytes; name stands for the file in positions.
func ReadText(name string, data []byte, env Env) (*Table, error) {
	return readTable(name, data, env, time.Now())
}

// ReadFrom is Read for what is no file of its own, such as standard input; name stands for the file in positions.
func ReadFrom(name string, in io.Reader, env Env) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	return ReadText(name, data, env)
}

func readTable(name string, data []byte, env Env, now time.Time) (*Table, error) {
	d := newTableDecoder(env, now)
	d.Rules.Unset = d.leftUnset
	t, err := d.decode(name, data)
	if t == nil {
		t = salvage(name, data, env, now, "service", "redis", "listen", "admin", "clock")
	}
	all := len(t.Jobs)
	if t.Jobs = slices.DeleteFunc(t.Jobs, func(j Job) bool { return j.Name == "" }); len(t.Jobs) < all {
		set(&t.Unknown, Names, "the name of a job cannot be read")
	}
	return t, err
}

// topLevel matches the beginning of a line with a key of the table itself.
var topLevel = regexp.MustCompile(`^["']?([A-Za-z][A-Za-z0-9_.-]*)["']?[ \t]*:`)

// salvage reads these keys out of a file that is not YAML as a whole, or else the first two. A replica cannot change
// them while it runs, and the first two are all that operators need to see the replicas and to pause a job.
func salvage(name string, data []byte, env Env, now time.Time, keys ...string) *Table {
	text := ""
	files, _, _ := filesOf(name, data)
	for _, f := range files {
		if len(f.Data) <= maxSize {
			text += string(f.Data) + "\n"
		}
	}
	var kept strings.Builder
	keep := false
	for line := range strings.Lines(text) {
		if m := topLevel.FindStringSubmatch(line); m != nil {
			keep = slices.Contains(keys, m[1])
		} else if strings.Trim(line[:1], " \t#\r\n") != "" {
			keep = false
		}
		if keep {
			kept.WriteString(line)
		}
	}
	d := newTableDecoder(env, now)
	d.Rules.Unset = d.leftUnset
	t, _ := d.decode(name, []byte(kept.String()))
	switch {
	case t == nil && len(keys) > 2:
		return salvage(name, data, env, now, keys[:2]...)
	case t == nil:
		t = d.table
		set(&t.Unknown, "service", unreadable)
		set(&t.Unknown, "redis", unreadable)
	}
	set(&t.Unknown, "jobs", unreadable)
	set(&t.Unknown, Names, unreadable)
	t.Hash = ""
	return t
}

// Reasons why a key of the table is unknown.
const (
	hasProblems = "it has problems"
	unreadable  = "the file cannot be read there"
	noTable     = "there is no table"
)

// Names is the key of Unknown under which it says why the table may have more jobs than its Jobs holds.
const Names = "jobs.name"

// leftUnset notes a value whose variable is not set.
func (d *decoder) leftUnset(e strict.Entry, missing strict.MissingError, warning func(hint string) Problem) {
	if d.job != nil {
		d.job.missing = append(d.job.missing, e.Path)
		delete(d.job.at, e.Path)
	} else {
		set(&d.table.Unknown, e.Path, missing.Error())
	}
	if i := slices.Index(d.table.Unset, missing.Name); i >= 0 {
		d.unset[i].more++
		return
	}
	d.table.Unset = append(d.table.Unset, missing.Name)
	hint := fmt.Sprintf("solotick run needs it, or a default: ${%s:-…}", missing.Name)
	d.unset = append(d.unset, unsetVariable{first: warning(hint)})
}

// unsetVariable is the warning about a variable that is not set, at its first place.
type unsetVariable struct {
	first Problem
	more  int // further places
}

func (u unsetVariable) warning() Problem {
	p := u.first
	switch {
	case u.more == 1:
		p.Message += "; one more value uses it"
	case u.more > 1:
		p.Message += fmt.Sprintf("; %d more values use it", u.more)
	}
	return p
}

// NoTable returns a stand-in for a table that is not at hand. It holds the name of the service and nothing else.
func NoTable(service string) (*Table, error) {
	if why, _ := checkName(service); why != "" {
		return nil, fmt.Errorf("the name of a service %s", why)
	}
	t := newDecoder(theTable, time.Time{}).table
	t.Service = service
	set(&t.Unknown, "jobs", noTable)
	set(&t.Unknown, Names, noTable)
	return t, nil
}
