package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/view"
)

// documented holds the tables of the examples in docs/cli-json.md.
var documented = map[string]string{
	"table.yaml": `service: billing
jobs:
  - name: send-invoices
    schedule: "0 9 * * *"
    timeZone: Europe/Berlin
    exec: {command: ["true"]}
    description: sends the invoices of the day before
    owner: team-billing
    runbook: https://wiki.example.com/invoices#failed
`,
	"bad.yaml": `service: billing
jobs:
  - name: send-invoices
    schedule: "61 * * * *"
    exec: {command: ["true"]}
    timout: 5s
`,
}

// before names the example that must run before another one.
var before = map[string]string{"timer list": "timer set", "timer rm": "timer set", "timer rm --group": "timer set"}

// drainedReplica answers like a replica that was asked to drain.
func drainedReplica(t *testing.T) (admin string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(view.Drained{Drained: true, Replica: "app-1", TookMS: 1204})
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// example is a command line of the document with the output beneath it, and the fields of the tables of its section.
type example struct {
	args   []string
	output any
	fields []string
}

// sharedSection has the fields that several verbs print, and no command line.
const sharedSection = "Fields of several verbs"

func examples(t *testing.T) (all map[string]example, shared []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli-json.md")
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]example{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		verb, _, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(verb, "solotick-import ") { // a test beside that program checks it
			continue
		}
		var e example
		for _, table := range regexp.MustCompile(`(?m)^\| field \| meaning \|\n\| --- \| --- \|\n((?:\|.*\n?)+)`).FindAllString(section, -1) {
			for _, row := range regexp.MustCompile("(?m)^\\| (`\\w+`(?:, `\\w+`)*) \\|").FindAllStringSubmatch(table, -1) {
				e.fields = append(e.fields, strings.Split(strings.Trim(row[1], "`"), "`, `")...)
			}
		}
		if verb == sharedSection {
			shared = e.fields
			continue
		}
		shown := regexp.MustCompile("(?s)\n`solotick (.*?)`\n\n```json\n(.*?)```").FindStringSubmatch(section)
		if shown == nil {
			t.Fatalf("section %q shows no command line with its output", verb)
		}
		e.args = strings.Fields(shown[1])
		if err := json.Unmarshal([]byte(shown[2]), &e.output); err != nil {
			t.Fatalf("section %q: %v", verb, err)
		}
		all[verb] = e
	}
	return all, shared
}

func TestTheDocumentedJSONIsWhatIsPrinted(t *testing.T) {
	all, shared := examples(t)
	want := []string{"backfill", "cancel", "doctor", "drain", "events", "history", "next", "next --explain", "pause", "rerun", "resume", "status",
		"timer list", "timer rm", "timer rm --group", "timer set", "trigger", "try", "validate", "version", "why"}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Fatalf("the document has sections for %v, want %v", got, want)
	}
	dir := t.TempDir()
	for name, text := range documented {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv(configVariable, "table.yaml")
	table := documented["table.yaml"] + fmt.Sprintf("admin: %q\n", drainedReplica(t))
	if err := os.WriteFile("table.yaml", []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args []string, out, errOut io.Writer) int {
		return (&app{out: out, err: errOut, operate: lock.Options{Timeout: patientVerbs.Timeout, Boottime: still}}).commandLine(args)
	}
	times := map[string]int{} // by shared field: how many verbs print it
	for verb, e := range all {
		morningIn(t, "table.yaml")
		var out, errOut bytes.Buffer
		if first := before[verb]; first != "" && run(all[first].args, &bytes.Buffer{}, &errOut) != 0 {
			t.Errorf("%s before %s: %s", first, verb, &errOut)
		}
		run(e.args, &out, &errOut)
		var got any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || errOut.Len() > 0 {
			t.Errorf("%v: %v\n%s%s", e.args, err, out.Bytes(), errOut.Bytes())
			continue
		}
		if verb != "version" && verb != "doctor" && !alike(lasting(e.output), lasting(got)) { // another version, and other round trips everywhere
			t.Errorf("%v prints\n%s\nand not what the document shows", e.args, out.Bytes())
		}
		printed := map[string]bool{}
		fieldsOf(got, printed)
		for name := range printed {
			switch {
			case slices.Contains(e.fields, name):
			case slices.Contains(shared, name):
				times[name]++
			default:
				t.Errorf("%v prints the field %s, which the document does not have", e.args, name)
			}
		}
		for _, name := range e.fields {
			if !printed[name] {
				t.Errorf("%v does not print the field %s of the document", e.args, name)
			}
		}
	}
	for _, name := range shared {
		if times[name] < 2 {
			t.Errorf("%d verbs print the field %s, which several ought to share", times[name], name)
		}
	}
}

// alike reports whether a document is the one that is shown, where "…" stands for any value, and in an array for any
// number of them.
func alike(shown, got any) bool {
	switch s := shown.(type) {
	case string:
		return s == "…" || s == got
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && maps.EqualFunc(s, g, alike)
	case []any:
		g, ok := got.([]any)
		switch {
		case !ok || len(s) == 0:
			return ok && len(g) == 0
		case s[0] == "…":
			return alike(s[1:], g) || len(g) > 0 && alike(s, g[1:])
		}
		return len(g) > 0 && alike(s[0], g[0]) && alike(s[1:], g[1:])
	}
	return shown == got
}

// morningIn connects the command lines to a Redis of their own, with the morning in it.
func morningIn(t *testing.T, table string) {
	t.Helper()
	loaded, err := config.Load(table, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := seed(loaded.Hash)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	t.Setenv(redisVariable, "redis://"+s.mini.Addr()+"/0")
}

// lasting returns a document without the values that differ from one call, or one version, to the next.
func lasting(document any) any {
	switch d := document.(type) {
	case []any:
		for i := range d {
			d[i] = lasting(d[i])
		}
	case map[string]any:
		for name, v := range d {
			switch name {
			case "time", "seen", "id", "table":
				d[name] = ""
			default:
				d[name] = lasting(v)
			}
		}
		if d["sent"] != nil { // of a run of its own
			d["sent"], d["tick"], d["run"], d["durationMs"] = []any{}, "", "", 0.0
		}
		if tick, ok := d["tick"].(string); ok && d["id"] != nil { // of a trigger: the time of the request
			d["tick"] = tick[:len("2006-01-02T15:04:05")]
		}
	}
	return document
}

// fieldsOf collects the names of all fields in a document, except those in the definition of a job, which are keys of the
// table.
func fieldsOf(document any, into map[string]bool) {
	switch d := document.(type) {
	case []any:
		for _, v := range d {
			fieldsOf(v, into)
		}
	case map[string]any:
		for name, v := range d {
			into[name] = true
			if name != "definition" {
				fieldsOf(v, into)
			}
		}
	}
}
