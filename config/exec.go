package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (d *decoder) exec(e entry) {
	d.job.Exec = &Exec{}
	if found := d.mapping(e); found["command"] == nil && (e.isNull() || e.val.Kind == yaml.MappingNode) {
		d.fail(e.at, `command: ["/bin/tool", "--fast"]`, "exec.command is missing")
	}
}

func (d *decoder) command(e entry) {
	d.note(e)
	d.program(e, &d.job.Exec.Command)
}

// program reads a list of a program and its arguments.
func (d *decoder) program(e entry, to *[]string) {
	items, ok := d.list(e)
	if ok && (e.isNull() || len(e.val.Content) == 0) {
		d.fail(e.at, `write the program and its arguments: ["/bin/tool", "--fast"]`, "%s must not be empty", e.path)
	}
	for i, item := range items {
		t := d.text(item)
		if i == 0 && t.ok() && strings.TrimSpace(t.value) == "" {
			d.bad(t, "", "the program must not be empty")
		}
		*to = append(*to, t.value)
	}
}

var envName = regexp.MustCompile(variableNames)

func (d *decoder) environment(e entry) {
	d.textMap(e, checkEnvName, func(name *yaml.Node, t text) { set(&d.job.Exec.Env, name.Value, t.value) })
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
