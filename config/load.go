package config

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v4"
)

// subject is what is decoded, for what is said of it as a whole.
type subject struct {
	noun     string // "a table"
	text     string // what holds it: "the file"
	begin    string // hint for an empty one
	limit    int    // bytes
	most     string // the same in words
	tooLarge string // hint for a larger one
	api      bool   // from the API: no variables, and less is allowed
}

var theTable = subject{
	noun: "a table", text: "the file", begin: "begin with service: and jobs:, see docs/table.md",
	limit: maxSize, most: "1 MiB", tooLarge: "a table holds jobs; keep data that they need in files of their own",
}

// maxSize is the size of the largest table that is read: a thousand jobs need a quarter of it.
const maxSize = 1 << 20

// Load reads and checks the table. A table with problems gives a Problems error that holds all of them, sorted by
// position; any other error means that the file could not be read.
func Load(path string, env Env) (*Table, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, env)
}

// ReadFile reads the file of a table for Parse. Of a file that is too large it reads one byte more than Parse accepts, so that
// Parse refuses it.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	return data, nil
}

// Parse is Load for bytes; name stands for the file in positions. Its error is always a Problems. It looks at the clock
// for one thing only, the warning about a schedule whose last tick has passed.
func Parse(name string, data []byte, env Env) (*Table, error) {
	return parse(name, data, env, time.Now())
}

func parse(name string, data []byte, env Env, now time.Time) (*Table, error) {
	d := newDecoder(theTable, tableKeys(), now)
	d.env = env
	t, err := d.decode(name, data)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// decode gives the table as far as it could be read, and an error with all its problems. There is no table when the text is
// not YAML.
func (d *decoder) decode(name string, data []byte) (*Table, error) {
	root := d.read(name, data)
	if root == nil {
		return nil, d.found()
	}
	d.whole(root)
	for _, u := range d.unset {
		d.table.Warnings = append(d.table.Warnings, u.warning())
	}
	d.table.Warnings = tidy(d.table.Warnings)
	if len(d.problems) == 0 {
		d.table.Hash = d.hash(root)
	}
	return d.table, d.found()
}

func newDecoder(of subject, root []key, now time.Time) *decoder {
	return &decoder{
		of: of, root: root, now: now, names: map[string]int{}, hidden: map[*yaml.Node]bool{},
		base: draft{Job: defaultJob(), at: map[string]text{}},
		table: &Table{
			Listen:        ":9747",
			Admin:         "127.0.0.1:9748",
			Clock:         "redis",
			ShutdownGrace: 25 * time.Second,
			Redis:         Redis{Timeout: 500 * time.Millisecond},
		},
	}
}

// found gives the problems as an error; nil when there are none.
func (d *decoder) found() error {
	if len(d.problems) >= maxProblems {
		more := fmt.Sprintf("there may be more than these %d problems", maxProblems)
		d.problems = append(d.problems, Problem{File: d.src.name, Message: more})
	}
	if len(d.problems) == 0 {
		return nil
	}
	return Problems(tidy(d.problems))
}

// whole decodes the table itself.
func (d *decoder) whole(n *yaml.Node) {
	e := entry{key: key{kind: kindMapping, keys: d.root}, at: n, val: n}
	if n.Kind != yaml.MappingNode {
		d.fail(n, d.of.begin, "the table must be a mapping, not %s", kindOf(n))
		return
	}
	if !d.plain(e) {
		return
	}
	found := d.mapping(e)
	if found["service"] == nil {
		d.file("name what the replicas belong to: service: billing", "service is missing")
	}
	if found["jobs"] == nil {
		d.file("a table without jobs says so: jobs: []", "jobs is missing")
	}
	d.checkDefaultRoom()
}

// file records a problem of the file as a whole.
func (d *decoder) file(hint, format string, args ...any) {
	d.problem(0, 0, 0, hint, fmt.Sprintf(format, args...))
}
