package command

import (
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

func TestASuccessfulCommandHasNoReason(t *testing.T) {
	e := New(config.Exec{Command: []string{"sh", "-c", "echo fine"}}, Options{})
	if res := e.Execute(t.Context(), aRun()); res.Reason != "" {
		t.Errorf("the reason is %q", res.Reason)
	}
}

func TestTheReasonOfAFailedCommandIsItsLastLineThatIsNoStackFrame(t *testing.T) {
	for want, said := range map[string]string{
		"disk full":               "starting\ndisk full\n",
		"no newline":              "starting\nno newline",
		"2: disk full":            "two problems:\n  1: no db\n  2: disk full\n",
		"table.yaml:3: bad value": "checking\n  table.yaml:3: bad value\n",
		"done: 3 of 4":            "done: 3 of 4\n\n  \n}\n",
		"Caused by: java.io.IOE: closed": "Exception in thread \"main\" a.B: boom\n\tat Foo.x(Foo.java:1)\n" +
			"Caused by: java.io.IOE: closed\n\tat java.base/Foo\n\t... 12 more\n",
		"TypeError: x is not a function": "/app/x.js:3\n    x();\n    ^\n\nTypeError: x is not a function\n" +
			"    at Object.<anonymous> (/app/x.js:3:1)\n    at node:internal/main:12\n\nNode.js v22.1.0\n",
		"x.rb:1:in 'f': boom (RuntimeError)": "x.rb:1:in 'f': boom (RuntimeError)\n\tfrom x.rb:3:in '<main>'\n",
		"panic: boom": "starting\npanic: boom\n\ngoroutine 1 [running]:\nmain.f(0x1, {0xc000, 0x2})\n\t/tmp/x.go:4 +0x1d\nmain.main()\n" +
			"\t/tmp/x.go:8 +0x1d\ncreated by main.main in goroutine 1\n\t/tmp/x.go:7 +0x2\nexit status 2\n",
		"ValueError: no invoices": "Traceback (most recent call last):\n" +
			"  File \"/app/x.py\", line 3, in <module>\n    f()\nValueError: no invoices\n",
		"thread 'main' panicked at src/main.rs:2:5: boom": "thread 'main' panicked at src/main.rs:2:5: boom\n   0: std::panicking\n" +
			"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
		"Error: connect ECONNREFUSED 127.0.0.1:5432": "Error: connect ECONNREFUSED 127.0.0.1:5432\n" +
			"    at TCPConnectWrap.afterConnect (node:net:1611:16) {\n" +
			"  errno: -111,\n  code: 'ECONNREFUSED',\n  syscall: 'connect',\n  address: '127.0.0.1',\n  port: 5432\n}\n\nNode.js v20.1.0\n",
		"PHP Fatal error: Uncaught Exception: no db in /app/x.php:3": "PHP Fatal error:  Uncaught Exception: no db in /app/x.php:3\n" +
			"Stack trace:\n#0 {main}\n  thrown in /app/x.php on line 3\n",
		"panic: runtime error: nil pointer dereference": "panic: runtime error: nil pointer dereference\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48f0a2]\n\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/x.go:8 +0x1d\n",
		"no db": "thread 'main' panicked at src/main.rs:2:5:\nno db\nstack backtrace:\n   0: rust_begin_unwind\n" +
			"             at /rustc/x/panicking.rs:647:5\n" +
			"note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n",
		"** (RuntimeError) no db": "** (RuntimeError) no db\n    x.exs:1: (file)\n    (elixir 1.16.0) lib/code.ex:1435: Code.require_file/2\n",
		"at Foo.x(Foo.java:1)":    "\tat Foo.x(Foo.java:1)\n\tat Bar.y(Bar.java:2)\n",
		"long trace":              "long trace\n" + strings.Repeat("\tat com.example.Service.call(Service.java:123)\n", 2*execute.MaxOutput/40),
	} {
		e := New(config.Exec{Command: []string{"sh", "-c", `printf %s "$SAID"; exit 3`}, Env: map[string]string{"SAID": said}}, Options{})
		res := e.Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Failed)
		if res.Reason != want {
			t.Errorf("%q: the reason is %q, want %q", said[:min(len(said), 200)], res.Reason, want)
		}
	}
}
