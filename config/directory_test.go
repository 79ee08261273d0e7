package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// folder is a directory with files, by name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tables")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, dir, name, text)
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	aService = "service: billing\nredis: {url: redis://redis:6379/0}\ndefaults: {timeZone: Europe/Berlin}\n"
	aJob     = "x-shared: &at '0 9 * * *'\njobs:\n  - {name: NAME, schedule: *at, exec: {command: [x]}}\n"
)

func job(name string) string { return strings.Replace(aJob, "NAME", name, 1) }

// TestTheFilesOfADirectoryAreOneTable: in the order of their names. Keys for extensions, with their anchors, belong to
// each file.
func TestTheFilesOfADirectoryAreOneTable(t *testing.T) {
	dir := folder(t, map[string]string{"20-b.yaml": job("b"), "00-service.yaml": aService, "10-a.yml": job("a"), "30-none.yaml": "jobs:\n",
		".hidden.yaml": "nonsense", "notes.txt": "nonsense", "b.yaml~": "nonsense"})
	got, err := Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 2 || got.Jobs[0].Name != "a" || got.Jobs[1].Name != "b" || got.Jobs[1].TimeZone != "Europe/Berlin" ||
		got.Service != "billing" || got.Redis.URL == "" {
		t.Errorf("%+v", got)
	}
	one, err := Parse("table.yaml", []byte(aService+strings.ReplaceAll(job("a"), "*at", "'0 9 * * *'")+
		"  - {name: b, schedule: '0 9 * * *', exec: {command: [x]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !one.Equal(got) {
		t.Errorf("the same table in one file is another one: %s and %s", one.Hash, got.Hash)
	}
}

// TestProblemsOfADirectoryNameTheirFile: each with its line there, sorted by file; what stands twice, with both places.
func TestProblemsOfADirectoryNameTheirFile(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a job twice": {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "# of another team\n" + job("a")}, `
DIR/b.yaml:4:12: job "a": name "a": there is a job of that name already, in DIR/a.yaml:6:12
     4 |   - {name: a, schedule: *at, exec: {command: [x]}}
       |            ^`},
		"a key twice": {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "redis: {url: redis://other}\n"}, `
DIR/b.yaml:1:1: duplicate key "redis": it is already set in DIR/a.yaml:2:1
     1 | redis: {url: redis://other}
       | ^~~~~`},
		"in two files": {map[string]string{"a.yaml": aService + "jobs: [{name: a, schedule: '61 * * * *', exec: {command: [x]}}]\n", "b.yaml": "job: []\n"}, `
DIR/a.yaml:4:28: job "a": schedule "61 * * * *": minute "61": 61 is out of range: allowed are 0-59
     4 | jobs: [{name: a, schedule: '61 * * * *', exec: {command: [x]}}]
       |                            ^~~~~~~~~~~~
DIR/b.yaml:1:1: unknown key "job"
     1 | job: []
       | ^~~
  hint: did you mean "jobs"?`},
		"not YAML": {map[string]string{"a.yaml": aService + "jobs: []\n", "b.yaml": "jobs: [\n", "c.yaml": ""}, `
DIR/b.yaml:1:8: `},
		"no list":      {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "jobs: 5\n"}, "\nDIR/b.yaml:1:7: jobs must be a list, not a number"},
		"no mapping":   {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "- a\n"}, "\nDIR/b.yaml:1:1: a table must be a mapping, not a list"},
		"a crontab":    {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "0 9 * * * /bin/true\n"}, "\nDIR/b.yaml: "},
		"missing":      {map[string]string{"a.yaml": job("a")}, "\nDIR: service is missing"},
		"no file":      {map[string]string{"a.txt": job("a")}, "\nDIR: the directory has no table"},
		"too large":    {map[string]string{"a.yaml": aService + job("a"), "b.yaml": "#" + strings.Repeat("x", 600_000), "c.yaml": "#" + strings.Repeat("x", 600_000)}, "\nDIR: the files together are larger than 1 MiB"},
		"hostile name": {map[string]string{"a.yaml": aService + job("a"), "b\n\x1b[1m -- \"q\" 5.yaml": "jobs: 5\n"}, "\nDIR/b\\n\\x1b[1m -- \"q\" 5.yaml:1:7: jobs must be"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			_, err := Load(dir, nil)
			if !errors.As(err, new(Problems)) {
				t.Fatalf("%v", err)
			}
			if got, want := "\n"+err.Error(), strings.ReplaceAll(c.want, "DIR", dir); !strings.HasPrefix(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if got, err := Read(dir, nil); name != "no file" && name != "missing" && (got == nil || got.Service != "billing") {
				t.Errorf("for operators: %+v, %v", got, err)
			}
		})
	}
}

// TestWhatIsNoFileInADirectoryIsAnError: a pipe would wait for its writer for ever.
func TestWhatIsNoFileInADirectoryIsAnError(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": aService + job("a")})
	if err := syscall.Mkfifo(filepath.Join(dir, "b.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, nil); err == nil || errors.As(err, new(Problems)) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}

// TestADamagedCopyOfADirectoryIsRefused: the copy is what a replica keeps for a restart.
func TestADamagedCopyOfADirectoryIsRefused(t *testing.T) {
	data, err := ReadFile(folder(t, map[string]string{"a.yaml": aService, "b.yaml": job("a")}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse("copy", data, nil); err != nil || len(got.Jobs) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, cut := range []int{len(data) - 1, len(directoryHead) + 5} {
		if _, err := Parse("copy", data[:cut], nil); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestEachChangeOfADirectoryIsReported(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": "a", "b.yaml": "b"})
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		go Watch(t.Context(), dir, time.Second, func() { reports.Add(1) })
		expect := func(what string, want int64) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := reports.Swap(0); n != want {
				t.Errorf("%s: %d reports, want %d", what, n, want)
			}
		}
		expect("at the start", 1)
		expect("nothing", 0)
		put(t, dir, "b.yaml", "changed")
		expect("a file is changed", 1)
		put(t, dir, "c.yaml", "c")
		expect("a file is added", 1)
		put(t, dir, "notes.txt", "c")
		put(t, dir, ".c.yaml.swp", "c")
		expect("what is no table is added", 0)
		if err := os.Remove(filepath.Join(dir, "c.yaml")); err != nil {
			t.Fatal(err)
		}
		expect("a file is removed", 1)
		if err := os.Rename(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "0.yaml")); err != nil {
			t.Fatal(err)
		}
		expect("a file has another name", 1)
		if err := os.Rename(filepath.Join(dir, "0.yaml"), filepath.Join(dir, "1.yaml")); err != nil {
			t.Fatal(err)
		}
		expect("a file has another name, in the same place of the order", 1)
	})
}

// TestTheSwapOfAConfigMapWithManyFilesIsReportedOnce does what the kubelet does.
func TestTheSwapOfAConfigMapWithManyFilesIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	version := func(name, text string) {
		must(os.Mkdir(filepath.Join(dir, name), 0o700))
		put(t, filepath.Join(dir, name), "a.yaml", "a")
		put(t, filepath.Join(dir, name), "b.yaml", text)
		must(os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", "old")
	for _, name := range []string{"a.yaml", "b.yaml"} {
		must(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		go Watch(t.Context(), dir, time.Second, func() { reports.Add(1) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		version("..2", "new")
		must(os.RemoveAll(filepath.Join(dir, "..1")))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := reports.Load(); n != 2 {
			t.Errorf("%d reports, want one at the start and one of the swap", n)
		}
	})
}
