package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

func execKeys(to *Exec) []strict.Key {
	env := func(d *strict.Decoder, e strict.Entry) {
		d.TextMap(e, checkEnvName, func(name *yaml.Node, t strict.Text) { set(&to.Env, name.Value, t.Value) }, nil)
	}
	return []strict.Key{
		{Name: "command", Type: program(&to.Command), Default: strict.Required,
			Example: `["/bin/tool", "--fast"]`, Form: programForm, Show: strict.ShownFirst, Also: "cmd args run",
			Doc: "the program and its arguments, started without a shell"},
		{Name: "env", Type: strict.Type{Kind: strict.KindTextMap, Decode: env}, Example: `{LEVEL: "5"}`,
			Form: strict.Form{Names: variableNames}, Show: strict.ShownNames, Also: "environment",
			Doc: "variables on top of Solotick's own (without `SOLOTICK_REDIS_URL` and `TRACEPARENT`); " +
				"cannot set `SOLOTICK_*` and `TRACEPARENT`"},
		{Name: "dir", Type: strict.NonEmpty(&to.Dir), Example: "/data", Form: filledForm, Show: strict.Shown,
			Also: "cwd workdir workingDir", Doc: "directory to run it in, by default Solotick's own"},
	}
}

// program is a list of a program and its arguments.
func program(to *[]string) strict.Type {
	return strict.Type{Kind: strict.KindTextList, Decode: func(d *strict.Decoder, e strict.Entry) {
		d.NoteWhole(e)
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
	}}
}

var envName = regexp.MustCompile(variableNames)

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
