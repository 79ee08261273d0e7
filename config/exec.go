package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

func (d *decoder) exec(e strict.Entry) {
	d.job.Exec = &Exec{}
	if found := d.Mapping(e); found["command"] == nil && (e.IsNull() || e.Value.Kind == yaml.MappingNode) {
		d.Fail(e.At, `command: ["/bin/tool", "--fast"]`, "exec.command is missing")
	}
}

func (d *decoder) command(e strict.Entry) {
	d.noteMapping(e)
	d.program(e, &d.job.Exec.Command)
}

// program reads a list of a program and its arguments.
func (d *decoder) program(e strict.Entry, to *[]string) {
	items, ok := d.List(e)
	if ok && (e.IsNull() || len(e.Value.Content) == 0) {
		d.Fail(e.At, `write the program and its arguments: ["/bin/tool", "--fast"]`, "%s must not be empty", e.Path)
	}
	for i, item := range items {
		t := d.Text(item)
		if i == 0 && t.OK() && strings.TrimSpace(t.Value) == "" {
			d.Bad(t, "", "the program must not be empty")
		}
		*to = append(*to, t.Value)
	}
}

var envName = regexp.MustCompile(variableNames)

func (d *decoder) environment(e strict.Entry) {
	d.TextMap(e, checkEnvName, func(name *yaml.Node, t strict.Text) { set(&d.job.Exec.Env, name.Value, t.Value) })
}

func checkEnvName(name string) (why, hint string) {
	switch {
	case !envName.MatchString(name):
		return "not the name of a variable", "write a mapping: {NAME: value}"
	case name == "TRACEPARENT":
		return oneTrace, ""
	case strings.HasPrefix(name, "SOLOTICK_"):
		return "this variable is set by Solotick itself", ""
	}
	return "", ""
}
