package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/solotick/solotick/"

// A rule says what a package, and those below it, must not import, by prefix, and why.
type rule struct {
	from  string
	never []string
	why   string
}

var rules = []rule{
	{from: "config", never: []string{module, "os/exec", "github.com/redis", "github.com/prometheus"},
		why: "a table is checked without a network, and by tools that run no job"},
	{from: "config/strict", never: []string{module, "os", "net", "context"},
		why: "it decodes strict YAML and knows no job, no file and no network"},
	{from: "config/schedule", never: []string{module, "os", "net", "context"},
		why: "schedules are pure: no clock, no file, no network"},
	{from: "internal/convert", never: []string{module + "lock", module + "sidecar", "os", "net", "github.com/redis"},
		why: "a table is made of what the files say, on any machine alike"},
	{from: "internal/compare", never: []string{module + "lock", module + "sidecar", "os", "net", "github.com/redis"},
		why: "ticks are compared by what the tables say, on any machine alike"},
	{from: "internal/model", never: []string{module + "lock", module + "sidecar", "github.com/redis"},
		why: "the model is a twin of the scripts, and would prove nothing of them if it shared their code; lock's tests replay it"},
	{from: "proof/nemesis", never: []string{module + "config", module + "lock", module + "sidecar", module + "cmd"},
		why: "it judges from the outside, by arithmetic that shares nothing with the product"},
	{from: "examples/adapters", never: []string{module},
		why: "users copy the file into apps without this module"},
	{from: "internal/testing/rig", never: []string{module},
		why: "it knows the product by its command line, its table and its headers alone"},
	{from: "lock", never: []string{module, "github.com/prometheus", "log/slog", "os"},
		why: "the lock is useful alone; it knows keys, tokens and ticks, not cron words"},
	{from: "internal/file", never: []string{module, "net", "log/slog"},
		why: "a file is opened as safely for all"},
	{from: "internal/instance", never: []string{module, "net", "log/slog"},
		why: "it knows a directory and the processes that held it, and neither replicas nor their runs"},
	{from: "internal/rds", never: []string{module + "lock", module + "sidecar", module + "config", "log/slog", "os"},
		why: "it carries requests to Redis, and knows neither ticks nor jobs"},
	{from: "sidecar/execute", never: []string{module + "lock", module + "sidecar", "github.com/redis"},
		why: "a job does not know that it is locked"},
	{from: "sidecar/execute/call", never: []string{module + "sidecar/execute/command", "os"},
		why: "a call starts no process, and reads no file except through internal/credentials"},
	{from: "sidecar/callback", never: []string{module + "lock", module + "sidecar", "log/slog", "os"},
		why: "an app reports on its run, and neither of them knows that it is locked"},
	{from: "internal/credentials", never: []string{module + "lock", module + "sidecar", "net/http", "log/slog"},
		why: "it knows files and what is made of them, and neither jobs nor requests"},
	{from: "sidecar/execute/command", never: []string{module + "sidecar/execute/call", "net"},
		why: "a command is run without a network"},
	{from: "sidecar/notify", never: []string{module + "lock"},
		why: "a ping tells how a run went, not how it was locked"},
	{from: "sidecar/service", never: []string{module + "sidecar", "net/http", "os", "log/slog"},
		why: "its rules hold for the command line and the API alike: it knows neither flags nor HTTP"},
	{from: "sidecar", never: []string{"github.com/redis", module + "cmd", "os/signal", "github.com/spf13"},
		why: "only lock, service and cmd talk to Redis; only cmd knows flags and signals"},
}

// Within the module these edges are allowed although a rule's prefix would forbid them.
var allowed = map[string][]string{
	"config":                  {"config/schedule", "config/strict", "internal/beat"},
	"internal/instance":       {"internal/file"},
	"lock":                    {"internal/rds", "internal/beat"}, // the one way to Redis, and how all wait
	"lock/gocronlock":         {"lock"},
	"sidecar/service":         {"github.com/redis/go-redis/v9"},        // whose pipelines it reads with
	"sidecar/execute/call":    {"sidecar/execute", "sidecar/callback"}, // the contract that both of them keep; runs that apps end
	"sidecar/execute/command": {"sidecar/execute"},
	"sidecar/callback":        {"sidecar/execute"},
}

func TestCallsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			if !below(p.path, r.from) {
				continue
			}
			for _, i := range p.imports {
				for _, n := range r.never {
					if below(i, n) && !slices.Contains(allowed[p.path], strings.TrimPrefix(i, module)) {
						t.Errorf("%s imports %s: %s", p.path, i, r.why)
					}
				}
			}
		}
	}
}

// go-redis stays behind the lock and the service: everything else asks one of their Stores.
func TestOnlyLockServiceAndCmdImportGoRedis(t *testing.T) {
	may := map[string]bool{"lock": true, "sidecar/service": true, "cmd/solotick": true, "examples/embed": true}
	for _, p := range packages(t) {
		for _, i := range p.imports {
			if below(i, "github.com/redis") && !may[p.path] && !below(p.path, "internal") && !below(p.path, "proof") {
				t.Errorf("%s imports %s: only lock, service and cmd may", p.path, i)
			}
		}
	}
}

func below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

// listed is a package by its path below the module, and what its files import, those of its tests left out.
type listed struct {
	path    string
	imports []string
}

// packages lists those of the product's module and of the proof's. It reads the files itself, those for other systems
// included, so that go test knows when its last result is out of date.
func packages(t *testing.T) []listed {
	t.Helper()
	const root = "../.."
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || otherModule(name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		for _, i := range f.Imports {
			imports[dir] = append(imports[dir], strings.Trim(i.Path.Value, `"`))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for path, of := range imports {
		all = append(all, listed{filepath.ToSlash(path), of})
	}
	for _, want := range []string{"lock", "proof/sim"} {
		if !slices.ContainsFunc(all, func(p listed) bool { return p.path == want }) {
			t.Fatalf("%d packages, and not %s", len(all), want)
		}
	}
	return all
}

// otherModule reports whether dir is a module, and not that of the proof.
func otherModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && filepath.Base(dir) != "proof"
}
