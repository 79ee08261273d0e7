package config

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// MaxSource bounds the definition of one dynamic job or timer, as the API gets it and as Redis keeps it, in bytes.
const MaxSource = 64 << 10

// noAliases is the message for an alias. Redis keeps a job with its aliases expanded, so a few of them could make a
// short text very long.
const noAliases = "an alias (*…) is allowed only in the table"

// dynamicKeys are the keys of a dynamic job.
func (d *decoder) dynamicKeys() []strict.Key {
	var out []strict.Key
	for _, k := range jobKeys(&d.draft, d.calendars) {
		switch {
		case slices.Contains(tableOnly, k.Name):
			continue
		case k.Name == "http":
			k = withoutFiles(k)
		case k.Name == "name":
			k.Decode = d.sameName
		}
		out = append(out, k)
	}
	return out
}

// ParseJob decodes a dynamic job of the given name, in JSON or YAML. It is as strict as the table. The job can have the
// keys of a table's job except those of tableOnly. ${…} is plain text, and the defaults are those
// of an empty table. The error is always a Problems, whose File is "body".
func ParseJob(name string, data []byte) (*Job, error) {
	of := strict.Subject{Noun: "a job", Text: "the body", Begin: "begin with schedule: and http:", Limit: MaxSource,
		Most: "64 KiB", Merge: shareInDefaults, Literal: true, NoAliases: noAliases}
	d := newDecoder(of, time.Now())
	d.Root = d.dynamicKeys()
	d.begin(fmt.Sprintf("job %s: ", strict.Quoted(name)))
	d.job.Name, d.job.Dynamic = name, true
	root, _ := d.document(data, "schedule", "http")
	if why, hint := checkName(name); why != "" {
		d.File(hint, "%sthe name %s", d.Scope, why)
	}
	if root != nil {
		d.checkJob()
	}
	if len(d.Problems) == 0 {
		d.job.Source = d.canonical(root)
	}
	if err := d.Found(); err != nil {
		return nil, err
	}
	j := d.job.Job // by itself, so that it does not keep the decoder
	return &j, nil
}

// sameName reads a name inside the job's text. Files with jobs have one; it must be the name that the caller gave.
func (d *decoder) sameName(_ *strict.Decoder, e strict.Entry) {
	if t := d.Text(e); t.OK() && t.Value != d.job.Name {
		d.Bad(t, "leave it out, or send the job under this name",
			"must be %s, as in the address", strict.Quoted(d.job.Name))
	}
}

// document decodes a text that is one mapping and must have the needed keys. It returns the mapping and the keys that
// it found; a nil mapping means that the problem is recorded.
func (d *decoder) document(data []byte, needed ...string) (*yaml.Node, map[string]*yaml.Node) {
	n := d.Read("body", plainJSON(data))
	if n == nil {
		return nil, nil
	}
	e := strict.Entry{Key: strict.Key{Type: strict.Mapping(d.Root)}, At: n, Value: n}
	if n.Kind != yaml.MappingNode {
		d.Fail(n, d.Subject.Begin, "%s must be a mapping, not %s", d.Subject.Noun, strict.KindOf(n))
		return nil, nil
	}
	if !d.Plain(e) {
		return nil, nil
	}
	found := d.Mapping(e)
	for _, name := range needed {
		if k, _ := strict.Find(d.Root, name); found[name] == nil {
			hint := name + ": " + k.Example
			if k.Keys != nil {
				hint = name + `: {url: "http://127.0.0.1:8080/path"}`
			}
			d.Fail(n, hint, "%s is missing", name)
		}
	}
	return n, found
}

// canonical writes a text that was decoded without a problem as JSON: its keys in the order of their description, each
// value in one form. The same job written in another way gives the same bytes. The fields in first stand at the
// beginning, in place of the keys of the same names. The text has no aliases.
func (d *decoder) canonical(root *yaml.Node, first ...field) []byte {
	fields := object(first)
	for _, f := range canonicalFields(d.Root, root) {
		// The caller knows the name, and at has replaced after.
		if f.name != "name" && f.name != "after" && (len(first) == 0 || f.name != first[0].name) {
			fields = append(fields, f)
		}
	}
	out := encode(fields)
	if len(out) > MaxSource {
		d.File("", "%sas JSON it is larger than 64 KiB", d.Scope)
	}
	return out
}
