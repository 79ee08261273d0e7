package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// edit replaces text in a file: all places where it stands.
type edit struct{ file, text, instead string }

// apply gives a file's text as the edits of it leave it.
func apply(t *testing.T, file string, edits []edit) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, e := range edits {
		if !strings.Contains(text, e.text) {
			t.Fatalf("%s has no %q any more: make the change where its work is done now", e.file, e.text)
		}
		text = strings.ReplaceAll(text, e.text, e.instead)
	}
	return text
}

// build makes a test binary of this package over the module's sources with edits, and copies of others that are
// quicker.
func build(t *testing.T, edits []edit) string {
	t.Helper()
	root, err := filepath.Abs("../..") // of the product, whose sources are changed
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for file, all := range byFile(edits) {
		at := filepath.Join(root, file)
		replace[at] = filepath.Join(dir, fmt.Sprintf("%d%s", len(replace), filepath.Ext(file)))
		write(t, replace[at], apply(t, at, all))
	}
	faults := filepath.Join(dir, "fault.go")
	write(t, faults, faultSource)
	replace[filepath.Join(root, "internal/testing/fault/fault.go")] = faults
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	write(t, list, string(overlay))
	goes(t, ".", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s", "-modfile", quick(t, filepath.Join(root, "proof")), "-overlay", list, "-o", binary, ".")
	return binary
}

// scriptsEnv holds, for a binary built with editable, whole scripts and what takes their place, in turn, with sep
// between them.
const (
	scriptsEnv = "SOLOTICK_SIM_SCRIPTS"
	sep        = "\x1f"
)

// editable lets one binary play the faults of all scripts.
var editable = []edit{
	{"internal/rds/script.go", "import (", "import (\n\"os\""},
	{"internal/rds/script.go", "func NewScript(source string, confirm Confirm) *Script {",
		`func NewScript(source string, confirm Confirm) *Script {
	if pairs := os.Getenv("` + scriptsEnv + `"); pairs != "" {
		source = strings.NewReplacer(strings.Split(pairs, "\x1f")...).Replace(source)
	}`},
}

// changedScripts is what scriptsEnv has to hold for edits of scripts.
func changedScripts(t *testing.T, edits []edit) string {
	t.Helper()
	var pairs []string
	for file, all := range byFile(edits) {
		at := filepath.Join("../..", file)
		whole, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, string(whole), apply(t, at, all))
	}
	return strings.Join(pairs, sep)
}

func byFile(edits []edit) map[string][]edit {
	by := map[string][]edit{}
	for _, e := range edits {
		by[e.file] = append(by[e.file], e)
	}
	return by
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goes runs the go command, and gives what it said.
func goes(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as all programs of the tests, which share what is compiled
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// changed are changes to other modules. Two cost half of a seed's time: miniredis makes a Lua state with all its
// libraries for every script, and gocron spins while it waits for its jobs. And a subscription of go-redis holds its
// lock while it connects: whoever closes it meanwhile waits in a way that bubbles do not know, and stops their time for
// ever, once in some thousand seeds. None of them does anything else than before.
var changed = map[string][]edit{
	"github.com/alicebob/miniredis/v2": {
		{"cmd_scripting.go", "parsedScripts = sync.Map{}", "parsedScripts = sync.Map{}\n\tusedStates sync.Pool"},
		{"cmd_scripting.go", "	l := lua.NewState(lua.Options{SkipOpenLibs: true})\n	defer l.Close()\n", `
	l, used := usedStates.Get().(*lua.LState)
	if !used {
		l = lua.NewState(lua.Options{SkipOpenLibs: true})
`},
		{"cmd_scripting.go", `	requireGlobal(l, "cjson", "json")` + "\n", `	requireGlobal(l, "cjson", "json")
	}
`},
		{"cmd_scripting.go", `	l.RegisterModule("os", mkLuaOS())` + "\n\n	_ = doScript(l, protectGlobals)\n", `
	if !used {
		l.RegisterModule("os", mkLuaOS())
		_ = doScript(l, protectGlobals)
	}
`},
		{"cmd_scripting.go", "	luaToRedis(l, c, l.Get(1))\n", "	luaToRedis(l, c, l.Get(1))\n	l.SetTop(0)\n	usedStates.Put(l)\n"},
		{"lua.go", "bufio.NewWriter(buf)", "bufio.NewWriterSize(buf, 256)"},
		{"lua.go", "bufio.NewReader(buf)", "bufio.NewReaderSize(buf, 256)"},
	},
	"github.com/redis/go-redis/v9": {
		{"pubsub.go", "	mu        sync.Mutex\n", "	mu        passage\n"},
		{"pubsub.go", "func (c *PubSub) init() {\n", `
type passage chan struct{}

func (p passage) Lock()   { p <- struct{}{} }
func (p passage) Unlock() { <-p }

func (c *PubSub) init() {
	c.mu = make(passage, 1)
`},
	},
	"github.com/go-co-op/gocron/v2": {
		{"executor.go", "import (\n", "import (\n\t\"runtime\"\n"},
		{"executor.go", "				count++\n			default:\n", "				count++\n			default:\n				runtime.Gosched()\n"},
	},
}

// copies are the modules as changed has them, and a go.mod that has them instead of the others: made once.
var copies struct {
	sync.Mutex
	mod string
}

// quick gives that go.mod.
func quick(t *testing.T, root string) string {
	t.Helper()
	copies.Lock()
	defer copies.Unlock()
	if copies.mod != "" {
		return copies.mod
	}
	dir, err := os.MkdirTemp("", "solotick-sim-")
	if err != nil {
		t.Fatal(err)
	}
	mod := filepath.Join(dir, "go.mod")
	write(t, mod, apply(t, filepath.Join(root, "go.mod"), nil))
	write(t, filepath.Join(dir, "go.sum"), apply(t, filepath.Join(root, "go.sum"), nil))
	for module, edits := range changed {
		from := strings.TrimSpace(goes(t, root, "list", "-m", "-f", "{{.Dir}}", module))
		to := filepath.Join(dir, strings.ReplaceAll(module, "/", "_"))
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for _, e := range edits {
			write(t, filepath.Join(to, e.file), apply(t, filepath.Join(to, e.file), []edit{e}))
		}
		goes(t, root, "mod", "edit", "-replace", module+"="+to, mod)
	}
	copies.mod = mod
	return mod
}

// TestMain removes the copies.
func TestMain(m *testing.M) {
	code := m.Run()
	if copies.mod != "" {
		_ = os.RemoveAll(filepath.Dir(copies.mod))
	}
	os.Exit(code)
}
