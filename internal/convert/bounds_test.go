package convert

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"testing"
	"time"
)

// refused expects an error that a user can read, within reasonable time.
func refused(t *testing.T, data []byte, o Options, want string) {
	t.Helper()
	began := time.Now()
	r, err := Convert([]Input{{"file", data}}, o)
	var unreadable *Error
	if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), want) {
		t.Errorf("got a table: %v, and %v, want an error that says %q", r != nil, err, want)
	}
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestWhatIsNotTextIsRefused(t *testing.T) {
	junk := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(junk)
	for _, from := range []Format{"", Crontab, Kubernetes} {
		refused(t, junk, Options{From: from}, "the file is not text")
		refused(t, []byte("\xff\xfe0\x00 \x00"), Options{From: from}, "UTF-16")
		refused(t, bytes.Repeat([]byte("\x80\x91\xa2 \xb3\n"), 20_000), Options{From: from}, "")
		refused(t, bytes.Repeat([]byte("#\n"), 9<<20), Options{From: from}, "larger than 16 MiB")
	}
}

func TestATableThatWouldBeTooLargeIsRefused(t *testing.T) {
	var crontab, manifests strings.Builder
	refused(t, []byte(strings.Repeat("0 0 * * * a\n", 17_000)), Options{}, "17000 jobs make it larger than a table may be, 1 MiB")
	for i := 0; crontab.Len() < 2<<20; i++ {
		fmt.Fprintf(&crontab, "%d %d * * * /usr/bin/job-%d %s\n", i%60, i%24, i, strings.Repeat("x", 500))
	}
	refused(t, []byte(crontab.String()), Options{}, "larger than a table may be, 1 MiB")
	for i := 0; manifests.Len() < 2<<20; i++ {
		fmt.Fprintf(&manifests, "---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: job-%d}\n"+
			"spec: {schedule: \"%d * * * *\", jobTemplate: {spec: {template: {spec: {containers: [{image: x, command: [a, %s]}]}}}}}\n",
			i, i%60, strings.Repeat("x", 500))
	}
	refused(t, []byte(manifests.String()), Options{}, "larger than a table may be, 1 MiB")
}

// Two megabytes that make a small table are not too much.
func TestALargeFileWithFewJobsIsRead(t *testing.T) {
	comments := strings.Repeat("# a line of a comment that makes the file large\n", 2<<20/48)
	r, err := Convert([]Input{{"file", []byte(comments + "\n0 1 * * * echo one\n")}}, Options{})
	if err != nil || r.Jobs != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	manifest := "apiVersion: v1\nkind: List\nmetadata:\n  note: |\n" + strings.Repeat("    a line that makes the file large\n", 2<<20/35) +
		"items:\n- {apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: \"0 * * * *\", jobTemplate: {spec: {template: {spec: {containers: [{command: [a]}]}}}}}}\n"
	if r, err = Convert([]Input{{"file", []byte(manifest)}}, Options{}); err != nil || r.Jobs != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestAliasesThatStandForTooMuchAreRefused(t *testing.T) {
	const bomb = "its aliases stand for more than can be read"
	text := strings.Repeat("x", 1<<16)
	args := strings.Repeat("*text,", 1000)
	jobs := strings.Repeat("- *job\n", 1000)
	job := "job: &job {apiVersion: batch/v1, kind: CronJob, spec: {schedule: \"0 * * * *\", jobTemplate: {spec: {template: {spec: {containers: [{command: [%s]}]}}}}}}\n"
	refused(t, []byte("kind: List\ntext: &text "+text+"\n"+fmt.Sprintf(job, args)+"items:\n"+jobs), Options{From: Kubernetes}, bomb)
	// A mapping with many keys that is looked into again and again.
	var keys strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&keys, "k%d: x, ", i)
	}
	refused(t, []byte("kind: List\njob: &job {"+keys.String()+"apiVersion: batch/v1, kind: CronJob}\nitems:\n"+jobs), Options{From: Kubernetes}, bomb)
	refused(t, []byte("kind: List\nitems: &items [{kind: List, items: *items}]\n"), Options{From: Kubernetes}, "")
	refused(t, []byte(strings.Repeat("[", 100_000)), Options{From: Kubernetes}, "")
	refused(t, []byte(strings.Repeat("{a: ", 1000)), Options{From: Kubernetes}, "nested too deep")
}

func TestManyLinesThatAreNoEntriesMakeItSomethingElse(t *testing.T) {
	refused(t, []byte("0 1 * * * echo one\n"+strings.Repeat("what is this about, and why so long\n", 2000)), Options{}, "it is no crontab: line 2: ")
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	entry := []byte("0 1 * * * echo one\n")
	refused(t, entry, Options{Service: "No Service"}, "the table: service \"No Service\": must be lower-case letters")
	refused(t, entry, Options{Redis: "http://redis"}, "redis.url")
}

// TestVariablesCostNoMoreThanTheirFile: each would copy all before it.
func TestVariablesCostNoMoreThanTheirFile(t *testing.T) {
	var lines, env strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&lines, "V%d=x\n", i)
		fmt.Fprintf(&env, "{name: V%d, value: x}, ", i)
	}
	manifest := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: \"0 1 * * *\", jobTemplate: {spec: {template: {spec: " +
		"{containers: [{name: a, command: [a], env: [" + env.String() + "]}]}}}}}\n"
	for _, text := range []string{lines.String() + "0 1 * * * echo one\n", manifest} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Convert([]Input{{"file", []byte(text)}}, Options{})
		runtime.ReadMemStats(&after)
		if err != nil || !bytes.Contains(r.Table, []byte("it has 1000 variables; any more would be left out")) {
			t.Fatalf("%v", err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 2<<30 {
			t.Errorf("%d MiB were taken for a file of %d KiB", got>>20, len(text)>>10)
		}
	}
}
