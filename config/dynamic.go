package config

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// MaxSource bounds what the API is given for one job or timer, and what Redis keeps of it, in bytes.
const MaxSource = 64 << 10

// tableOnly are keys that only who may write the table can use: with them the API would reach beyond the app beside it.
var tableOnly = []string{"exec", "allowRemote", "resources", "notify"}

const toTheTable = "put a job that needs it into the table"

// dynamicKeys are the keys of a job that is made through the API.
func dynamicKeys() []key {
	var out []key
	for _, k := range jobKeys() {
		switch {
		case slices.Contains(tableOnly, k.name):
			continue
		case k.name == "name":
			k.decode = (*decoder).sameName
		}
		out = append(out, k)
	}
	return out
}

// ParseJob decodes a job that the API was given under a name, in JSON or YAML. It is as strict as the table, with the
// keys of a table's job but exec, allowRemote, resources and notify; ${…} is no variable but text, and there are no
// defaults but those of an empty table. Its error is always a Problems, whose File is "body".
func ParseJob(name string, data []byte) (*Job, error) {
	of := subject{noun: "a job", text: "the body", begin: "begin with schedule: and http:", limit: MaxSource, most: "64 KiB", api: true}
	d := newDecoder(of, dynamicKeys(), time.Now())
	d.begin("job", name)
	d.job.Name, d.job.Dynamic = name, true
	root, _ := d.document(data, "schedule", "http")
	if why, hint := checkName(name); why != "" {
		d.file(hint, "%sthe name %s", d.scope, why)
	}
	if root != nil {
		d.checkJob()
	}
	if len(d.problems) == 0 {
		d.job.Source = d.canonical(root)
	}
	if err := d.found(); err != nil {
		return nil, err
	}
	return &d.job.Job, nil
}

// sameName reads a name that the address has already: it may be there, since files with jobs have it.
func (d *decoder) sameName(e entry) {
	if t := d.text(e); t.ok() && t.value != d.job.Name {
		d.bad(t, "leave it out, or send the job under this name", "must be %s, as in the address", quoted(d.job.Name))
	}
}

// begin makes room for the one job that is decoded.
func (d *decoder) begin(what, name string) {
	d.job = d.base.clone()
	d.scope = fmt.Sprintf("%s %s: ", what, quoted(name))
}

// document decodes the mapping that is all of the text, asks for some of its keys and says which were there. A nil node means
// that the problem is recorded.
func (d *decoder) document(data []byte, needed ...string) (*yaml.Node, map[string]*yaml.Node) {
	n := d.read("body", plainJSON(data))
	if n == nil {
		return nil, nil
	}
	e := entry{key: key{kind: kindMapping, keys: d.root}, at: n, val: n}
	if n.Kind != yaml.MappingNode {
		d.fail(n, d.of.begin, "%s must be a mapping, not %s", d.of.noun, kindOf(n))
		return nil, nil
	}
	if !d.plain(e) {
		return nil, nil
	}
	found := d.mapping(e)
	for _, name := range needed {
		if k, _ := find(d.root, name); found[name] == nil {
			hint := name + ": " + k.example
			if k.keys != nil {
				hint = name + `: {url: "http://127.0.0.1:8080/path"}`
			}
			d.fail(n, hint, "%s is missing", name)
		}
	}
	return n, found
}
