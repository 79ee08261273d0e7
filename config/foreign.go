package config

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// foreign recognizes files of other tools: one problem says more about them than many. It gets either the whole text as
// content, or its tree as root.
func foreign(d *strict.Decoder, content string, root *yaml.Node) bool {
	switch {
	case d.Subject.Literal:
		return false
	case root == nil:
		return crontab(d, content)
	case root.Kind != yaml.MappingNode:
		return false
	}
	values := map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if v := root.Content[i+1]; v.Kind == yaml.ScalarNode {
			values[root.Content[i].Value] = v.Value
		}
	}
	if values["apiVersion"] == "" || values["kind"] == "" {
		return false
	}
	what, hint := "manifest", "a table begins with service: and jobs:, see docs/table.md"
	switch kind := values["kind"]; {
	case slices.Contains([]string{"CronJob", "CronJobList", "List"}, kind):
		what, hint = kind, toImport(d)
	case slices.Contains([]string{"ConfigMap", "Secret"}, kind):
		what, hint = kind, "the table is the text under data: save and check that alone"
	}
	d.File(hint, "this is a Kubernetes %s, not a table", what)
	return true
}

// toImport returns the command that converts the file into a table.
func toImport(d *strict.Decoder) string {
	return "make a table from it: solotick-import " + d.Name() + " > table.yaml"
}

var (
	// cronEntry is a line of a crontab that runs something: five fields, or a word, and what follows them.
	cronEntry = regexp.MustCompile(`^[ \t]*(@(reboot|hourly|daily|midnight|weekly|monthly|yearly|annually)` +
		`|[0-9*][-0-9*,/]*([ \t]+[0-9*][-0-9*,/]*){2}([ \t]+[0-9A-Za-z*][-0-9A-Za-z*,/#]*){2})[ \t]+[^ \t#:]`)

	cronVariable = regexp.MustCompile(`^[ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*=`)
)

// crontab recognizes a crontab: every line is an entry, a variable or a comment. No line of a table looks like an entry
// or a variable.
func crontab(d *strict.Decoder, text string) bool {
	entries := 0
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "", strings.HasPrefix(line, "#"), cronVariable.MatchString(line):
		case cronEntry.MatchString(line):
			entries++
		default:
			return false
		}
	}
	if entries == 0 {
		return false
	}
	d.File(toImport(d), "this is a crontab, not a table")
	return true
}
