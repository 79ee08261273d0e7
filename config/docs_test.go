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

// sections of the reference, and the keys that each lists.
func sections() []struct {
	name string
	keys []strict.Key
} {
	return []struct {
		name string
		keys []strict.Key
	}{
		{"the table", blank.tableKeys()},
		{"ready", blank.readyKeys()},
		{"busy", blank.busyKeys()},
		{"links", blank.linkKeys()},
		{"calendars", blank.calendarKeys()},
		{"redis", blank.redisKeys()},
		{"redis.sentinel", blank.sentinelKeys()},
		{"redis.cluster", blank.clusterKeys()},
		{"redis.identity", blank.identityKeys()},
		{"redis.identity.aws", blank.awsKeys()},
		{"redis.tls", blank.tlsKeys(nil)},
		{"jobs", blank.jobKeys()},
		{"jobs.every", blank.everyKeys()},
		{"jobs.http", blank.httpKeys()},
		{"jobs.http.headers", blank.headerFileKeys(nil)},
		{"jobs.http.tls", blank.httpTLSKey().Keys},
		{"jobs.http.sign", blank.signKeys()},
		{"jobs.http.async", blank.asyncKeys()},
		{"jobs.exec", blank.execKeys()},
		{"jobs.retry", blank.retryKeys()},
		{"jobs.lock", blank.lockKeys()},
		{"jobs.trigger", blank.triggerKeys()},
		{"jobs.resources", blank.resourceKeys()},
		{"jobs.notify", blank.notifyKeys()},
		{"jobs.notify.change", blank.changeKeys()},
	}
}

// rows writes the keys as the reference has them.
func rows(name string, keys []strict.Key) string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning | example |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range keys {
		def := k.Default
		if def != strict.Required && def != strict.None && !strings.Contains(def, " ") && !strings.Contains(def, "`") {
			def = "`" + def + "`"
		}
		mark := ""
		if k.Common && name == "jobs" {
			mark = " *d*"
		}
		example := k.Example
		if example != "" {
			example = "`" + example + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s |\n", k.Name, mark, k.Kind, def, k.Doc, example)
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
	for _, s := range sections() {
		begin := "<!-- keys of " + s.name + " -->\n"
		before, rest, ok := strings.Cut(doc, begin)
		got, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("%s has no place for the keys of %s", referenceFile, s.name)
		}
		want := rows(s.name, s.keys)
		listed += len(s.keys)
		if *update {
			doc = before + begin + want + "<!-- end -->" + after
		} else if got != want {
			t.Errorf("keys of %s: run the test with -update\n got %s\nwant %s", s.name, got, want)
		}
	}
	if all := count(blank.tableKeys()) - count(blank.commonKeys()); listed != all {
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
		exec  = "    exec: {command: [a]}\n"
	)
	tried := 0
	check := func(top, job string, keys []strict.Key) {
		t.Helper()
		write := func(line string) *Table {
			return parsed(t, fmt.Sprintf(table, strings.ReplaceAll(top, "LINE", line), strings.ReplaceAll(job, "LINE", line)))
		}
		want := write("")
		for _, k := range keys {
			if k.Default == strict.Required || k.Default == strict.None || strings.Contains(k.Default, " ") || k.Keys != nil {
				continue
			}
			tried++
			if got := write(k.Name + ": " + strings.Trim(k.Default, "`") + "\n"); got.Hash != want.Hash {
				t.Errorf("%s: the default is not %s", k.Name, k.Default)
			}
		}
	}
	check("LINE", http, blank.tableKeys())
	check("redis:\n  passwordCommand: [a]\n  LINE\n", http, blank.redisKeys())
	check("redis:\n  username: a\n  identity:\n    aws:\n      cluster: a\n      LINE\n", http, blank.awsKeys())
	check("ready:\n  tcp: localhost:1\n  LINE\n", http, blank.readyKeys())
	check("", http+"    LINE", blank.jobKeys())
	check("", http+"    lock:\n      LINE", blank.lockKeys())
	check("", http+"    retry:\n      LINE", blank.retryKeys())
	check("", http+"    notify:\n      change:\n        urlFile: /f\n        LINE", blank.changeKeys())
	check("", http+"      LINE", blank.httpKeys())
	check("", exec+"    resources:\n      LINE", blank.resourceKeys())
	if tried < 29 {
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
	text := examples("", blank.tableKeys()) +
		"redis:\n" + examples("  ", slices.DeleteFunc(blank.redisKeys(), func(k strict.Key) bool { return strings.HasPrefix(k.Name, "passwordF") })) + "  tls:\n" + examples("    ", blank.tlsKeys(nil)) +
		"ready:\n" + examples("  ", blank.readyKeys()[2:]) + "busy:\n" + examples("  ", blank.busyKeys()) + "links:\n" + examples("  ", blank.linkKeys()) +
		"calendars:\n  holidays:\n" + examples("    ", blank.calendarKeys()) +
		"  tradingDays: {cron: \"* * * * MON-FRI\"}\n" +
		"defaults:\n" + examples("  ", blank.commonKeys()) +
		"jobs:\n  -\n" + examples("    ", blank.jobKeys()) + "    http:\n" + examples("      ", blank.httpKeys()) +
		"    every:\n" + examples("      ", blank.everyKeys()[1:]) +
		"    lock:\n" + examples("      ", blank.lockKeys()) + "    retry:\n" + examples("      ", blank.retryKeys()) +
		"    notify:\n" + examples("      ", blank.notifyKeys()) + "      change:\n" + examples("        ", blank.changeKeys()[1:]) +
		"  - name: other\n    schedule: \"@daily\"\n    exec:\n" + examples("      ", blank.execKeys()) +
		"    resources:\n" + examples("      ", blank.resourceKeys())
	table, err := parse("table.yaml", []byte(text), env, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Jobs) != 2 {
		t.Errorf("%d jobs", len(table.Jobs))
	}
	for _, k := range blank.readyKeys()[:2] {
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
