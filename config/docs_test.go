package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/solotick/solotick/config/strict"
)

const referenceFile = "../docs/table.md"

// blank is asked for its descriptions of keys alone.
var blank = newTableDecoder(nil, testNow)

// keysOf are the keys of a mapping of the table, and of what may stand in place of its texts.
func keysOf(path ...string) []strict.Key {
	keys := blank.Root
	for _, name := range path {
		k, _ := strict.Find(keys, name)
		if keys = k.Keys; k.Each != nil {
			keys = k.Each.Keys
		}
	}
	return keys
}

// sections of the reference are named by the mappings whose keys they list.
var sections = strings.Fields(`ready calendars
	redis redis.sentinel redis.cluster redis.identity redis.identity.aws redis.tls
	jobs jobs.every jobs.http jobs.http.headers jobs.http.sign jobs.http.async jobs.exec jobs.retry jobs.lock
	jobs.notify jobs.notify.change`)

// asIn are mappings that have the keys of another one, and no section of their own.
var asIn = map[string]string{"jobs.http.tls": "redis.tls", "jobs.claim": "jobs.http.async"}

// plainKinds have values that need no example, as do those with words of their own.
var plainKinds = []string{strict.KindBool, strict.KindNumber, strict.KindDuration}

// rows writes the keys as the reference has them.
func rows(name string, keys []strict.Key) string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning | example |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range keys {
		def := k.Default
		if def != strict.Required && def != "" && !strings.Contains(def, " ") && !strings.Contains(def, "`") {
			def = "`" + def + "`"
		}
		mark := ""
		if k.Common && name == "jobs" {
			mark = " *d*"
		}
		example := ""
		if k.Example != "" && k.Form.Words == nil && !slices.Contains(plainKinds, k.Kind) {
			example = "`" + k.Example + "`"
		}
		row := fmt.Sprintf("| `%s`%s | %s | %s | %s | %s |\n", k.Name, mark, k.Kind, def, k.Doc, example)
		b.WriteString(strings.ReplaceAll(row, "|  |", "| |"))
	}
	return b.String()
}

// TestReferenceListsTheKeysThatAreRead fails when a key, its type, default or meaning is in the decoder or in the
// reference alone.
func TestReferenceListsTheKeysThatAreRead(t *testing.T) {
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, listed := string(data), 0
	for _, name := range append([]string{"the table"}, sections...) {
		keys := blank.Root
		if name != "the table" {
			keys = keysOf(strings.Split(name, ".")...)
		}
		begin := "<!-- keys of " + name + " -->\n"
		before, rest, ok := strings.Cut(doc, begin)
		got, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("%s has no place for the keys of %s", referenceFile, name)
		}
		want := rows(name, keys)
		listed += len(keys)
		if *update {
			doc = before + begin + want + "<!-- end -->" + after
		} else if got != want {
			t.Errorf("keys of %s: run the test with -update\n got %s\nwant %s", name, got, want)
		}
	}
	for name, as := range asIn {
		keys, want := keysOf(strings.Split(name, ".")...), keysOf(strings.Split(as, ".")...)
		listed += len(keys)
		if got, want := rows(name, keys), rows(as, want); got != want {
			t.Errorf("%s has not the keys of %s:\n got %s\nwant %s", name, as, got, want)
		}
	}
	if all := count(blank.Root) - count(keysOf("defaults")); listed != all {
		t.Errorf("the sections list %d keys of %d", listed, all)
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// count counts keys and the keys under them.
func count(keys []strict.Key) int {
	n := len(keys)
	for _, k := range keys {
		n += count(k.Keys)
		if k.Each != nil {
			n += count(k.Each.Keys)
		}
	}
	return n
}

// TestDefaultsAreThoseOfTheReference writes each documented default into a table: it must change nothing.
func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	const (
		table = "service: s\n%sjobs:\n  - name: a\n    schedule: \"@daily\"\n%s"
		http  = "    http:\n      url: http://127.0.0.1/x\n"
	)
	tried := 0
	check := func(top, job string, keys []strict.Key) {
		t.Helper()
		write := func(line string) *Table {
			return parsed(t, fmt.Sprintf(table, strings.ReplaceAll(top, "LINE", line), strings.ReplaceAll(job, "LINE", line)))
		}
		want := write("")
		for _, k := range keys {
			if k.Default == strict.Required || k.Default == "" || strings.Contains(k.Default, " ") || k.Keys != nil {
				continue
			}
			tried++
			if got := write(k.Name + ": " + strings.Trim(k.Default, "`") + "\n"); got.Hash != want.Hash {
				t.Errorf("%s: the default is not %s", k.Name, k.Default)
			}
		}
	}
	check("LINE", http, blank.Root)
	check("redis:\n  passwordCommand: [a]\n  LINE\n", http, keysOf("redis"))
	check("redis:\n  username: a\n  identity:\n    aws:\n      cluster: a\n      LINE\n", http, keysOf("redis", "identity", "aws"))
	check("ready:\n  tcp: localhost:1\n  LINE\n", http, keysOf("ready"))
	check("", http+"    LINE", keysOf("jobs"))
	check("", http+"    lock:\n      LINE", keysOf("jobs", "lock"))
	check("", http+"    retry:\n      LINE", keysOf("jobs", "retry"))
	check("", http+"    notify:\n      change:\n        urlFile: /f\n        LINE", keysOf("jobs", "notify", "change"))
	check("", http+"      LINE", keysOf("jobs", "http"))
	if tried < 28 {
		t.Errorf("only %d defaults were tried", tried)
	}
}

// TestExamplesOfKeysMakeATable puts the examples of all keys together.
func TestExamplesOfKeysMakeATable(t *testing.T) {
	examples := func(indent string, keys []strict.Key) string {
		var b strings.Builder
		for _, k := range keys {
			if k.Keys == nil {
				b.WriteString(indent + k.Name + ": " + k.Example + "\n")
			}
		}
		return b.String()
	}
	env := func(name string) (string, bool) { return "x", true }
	text := examples("", blank.Root) +
		"redis:\n" + examples("  ", slices.DeleteFunc(slices.Clone(keysOf("redis")), func(k strict.Key) bool { return strings.HasPrefix(k.Name, "passwordF") })) + "  tls:\n" + examples("    ", keysOf("redis", "tls")) +
		"ready:\n" + examples("  ", keysOf("ready")[2:]) +
		"calendars:\n  holidays:\n" + examples("    ", keysOf("calendars")) +
		"  tradingDays: {cron: \"* * * * MON-FRI\"}\n" +
		"defaults:\n" + examples("  ", keysOf("defaults")) +
		"jobs:\n  -\n" + examples("    ", keysOf("jobs")) + "    http:\n" + examples("      ", keysOf("jobs", "http")) +
		"    every:\n" + examples("      ", keysOf("jobs", "every")[1:]) +
		"    lock:\n" + examples("      ", keysOf("jobs", "lock")) + "    retry:\n" + examples("      ", keysOf("jobs", "retry")) +
		"    notify:\n" + examples("      ", keysOf("jobs", "notify")) + "      change:\n" + examples("        ", keysOf("jobs", "notify", "change")[1:]) +
		"  - name: other\n    schedule: \"@daily\"\n    exec:\n" + examples("      ", keysOf("jobs", "exec"))
	table, err := parse("table.yaml", []byte(text), env, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Jobs) != 2 {
		t.Errorf("%d jobs", len(table.Jobs))
	}
	for _, k := range keysOf("ready")[:2] {
		parsed(t, "service: s\njobs: []\nready: {"+k.Name+": "+k.Example+"}\n")
	}
}

// TestExampleOfTheReferenceIsATable loads the YAML in the reference.
func TestExampleOfTheReferenceIsATable(t *testing.T) {
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(data), "```yaml\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok {
		t.Fatal("no example")
	}
	env := func(name string) (string, bool) { return name, name == "INVOICE_TOKEN" }
	table, err := parse("docs/table.md", []byte(example), env, testNow)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(table.Jobs) < 3 || len(table.Warnings) > 0 {
		t.Errorf("%d jobs, warnings %v", len(table.Jobs), table.Warnings)
	}
}

// TestProblemOfTheReferenceLooksLikeThat keeps the message at the top of the reference true.
func TestProblemOfTheReferenceLooksLikeThat(t *testing.T) {
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	table := "service: billing\n\njobs:\n  - name: send-invoices\n    http:\n      url: http://127.0.0.1:8080/x\n" +
		"    schedule: \"61 * * * *\"\n"
	if want := "```\n" + problemsOf(t, table).Error() + "\n```"; !strings.Contains(string(data), want) {
		t.Errorf("the reference does not show\n%s", want)
	}
}

func TestTheTableOfTheReadmeIsATable(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("README.md shows no table")
	}
	table, err := Parse("README.md", []byte(text), func(name string) (string, bool) { return "x", name == "INVOICE_TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Jobs) != 2 || len(table.Warnings) != 0 {
		t.Errorf("%d jobs, warnings %v", len(table.Jobs), table.Warnings)
	}
}
