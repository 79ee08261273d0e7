package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

var theTable = strict.Subject{
	Noun: "a table", Text: "the file", Begin: "begin with service: and jobs:, see docs/table.md",
	Limit: maxSize, Most: "1 MiB", Merge: shareInDefaults,
	TooLarge: "a table holds jobs; keep data that they need in files of their own",
}

const shareInDefaults = "put what jobs share under defaults"

// Load reads and checks the table. A table with problems gives a Problems error that holds all of them, sorted by
// position; any other error means that the file could not be read.
func Load(path string, env Env) (*Table, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, env)
}

// ReadFile reads the file of a table for Parse. If path is a directory, it reads all its files, as one text. It reads
// no more than a few times what Parse accepts, so that Parse refuses a file that is too large.
func ReadFile(path string) ([]byte, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return readDirectory(path)
	}
	return io.ReadAll(io.LimitReader(f, MaxFile))
}

// Parse is Load for bytes; name stands for the file in positions. Its error is always a Problems. It reads the clock
// only for the warning about a schedule whose last tick has passed.
func Parse(name string, data []byte, env Env) (*Table, error) {
	return parse(name, data, env, time.Now())
}

func parse(name string, data []byte, env Env, now time.Time) (*Table, error) {
	t, err := newTableDecoder(env, now).decode(name, data)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// decode returns the table as far as it could be read, and an error with all its problems. The table is nil if the text
// is not YAML.
func (d *decoder) decode(name string, data []byte) (*Table, error) {
	root := d.read(name, data)
	if root == nil {
		return nil, d.Found()
	}
	d.whole(root)
	for _, u := range d.unset {
		d.Warnings = append(d.Warnings, u.warning())
	}
	d.table.Warnings = strict.Tidy(d.Warnings)
	if len(d.Problems) == 0 {
		d.table.Hash = d.hash(root)
	}
	return d.table, d.Found()
}

// hash returns the hash of the table as written: a variable that differs from replica to replica, such as the name of a
// pod, does not change it. So it covers the table as it is read without any variable set, and the unreplaced text of
// the values that have variables.
func (d *decoder) hash(root *yaml.Node) string {
	if len(d.References) == 0 {
		return d.table.hash(nil)
	}
	bare := newTableDecoder(nil, d.now)
	bare.Rules.Unset = bare.leftUnset
	bare.Again(d.Decoder)
	bare.whole(root)
	address := func(r [2]string) bool { return r[0] == "listen" || r[0] == "admin" }
	return bare.table.hash(slices.DeleteFunc(bare.References, address))
}

// read returns the tree of a file, or of all files of a directory.
func (d *decoder) read(name string, data []byte) *yaml.Node {
	files, isDirectory, err := filesOf(name, data)
	if err != nil {
		d.Begin(name)
		d.File("", "%v", err)
		return nil
	}
	if !isDirectory {
		return d.Read(name, data)
	}
	d.Begin(name)
	size := 0
	for _, f := range files {
		size += len(f.Data)
	}
	switch {
	case len(files) == 0:
		d.File("a table in a directory is in files whose names end in .yaml or .yml", "the directory has no table")
	case size > maxSize:
		d.File(d.Subject.TooLarge, "the files together are larger than %s", d.Subject.Most)
	default:
		return d.ReadAll(files, "jobs")
	}
	return nil
}

// decoder fills in a table, or one job.
type decoder struct {
	*strict.Decoder
	now   time.Time
	table *Table

	base  draft  // what defaults says
	draft draft  // of the job that is being decoded: the keys of a job set it
	job   *draft // the draft while a job is being decoded; nil = there is none

	names     map[string]*yaml.Node  // where a job has that name
	at        map[string]strict.Text // the values outside of jobs, by path
	schedules schedule.Pool
	unset     []unsetVariable
	calendars calendars
}

func newDecoder(of strict.Subject, now time.Time) *decoder {
	d := &decoder{
		Decoder: &strict.Decoder{Subject: of}, now: now, names: map[string]*yaml.Node{}, calendars: calendars{},
		base: draft{Job: defaultJob(), at: map[string]strict.Text{}}, at: map[string]strict.Text{},
		table: &Table{Listen: ":9747", Admin: "127.0.0.1:9748", Clock: "redis", ShutdownGrace: 25 * time.Second,
			Redis: Redis{Timeout: 500 * time.Millisecond}},
	}
	d.Rules = strict.Rules{Note: d.note, Remedy: remedy,
		Flawed: func(e strict.Entry) {
			if d.job == nil && e.Path == e.Name { // at the top level
				set(&d.table.Unknown, e.Name, hasProblems)
			}
		},
		Homes:   func(name string) []string { return homes(d.Decoder, d.job != nil, name) },
		Explain: func(e strict.Entry, key string) (string, string) { return explain(d.Decoder, d.job != nil, e, key) },
		Foreign: func(content string, root *yaml.Node) bool { return foreign(d.Decoder, content, root) }}
	return d
}

func newTableDecoder(env Env, now time.Time) *decoder {
	d := newDecoder(theTable, now)
	d.Root, d.Env = d.tableKeys(), env
	return d
}

// begin begins a job with the defaults.
func (d *decoder) begin(scope string) {
	d.draft = draft{Job: d.base.Job, at: maps.Clone(d.base.at), missing: slices.Clone(d.base.missing)}
	d.job, d.Scope = &d.draft, scope
}

// note remembers where a value was written, for the checks that compare several values.
func (d *decoder) note(e strict.Entry, t strict.Text) {
	if d.job == nil {
		d.at[e.Path] = t
		return
	}
	d.job.at[e.Path] = t
	d.job.missing = slices.DeleteFunc(d.job.missing, func(path string) bool { return path == e.Path })
}

// whole decodes the table itself.
func (d *decoder) whole(n *yaml.Node) {
	e := strict.Entry{Key: strict.Key{Type: strict.Mapping(d.Root), Extensible: true}, At: n, Value: n}
	if n.Kind != yaml.MappingNode {
		d.Fail(n, d.Subject.Begin, "the table must be a mapping, not %s", strict.KindOf(n))
		return
	}
	if !d.Plain(e) {
		return
	}
	found := d.Mapping(e)
	if found["service"] == nil {
		d.File("name what the replicas belong to: service: billing", "service is missing")
	}
	if found["jobs"] == nil {
		d.File("a table without jobs says so: jobs: []", "jobs is missing")
	}
	d.checkDefaultRoom()
}
