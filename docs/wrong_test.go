//go:build linux

package docs_test

import (
	"strings"
	"testing"
)

func TestAWrongCommandLineIsFound(t *testing.T) {
	w := &world{t: t, root: ".."}
	for line, want := range map[string]string{
		"make build":                                "",
		"make buidl":                                `no target "buidl"`,
		"go run ./cmd/solotick version":             "",
		"go run ./lock":                             "is no program",
		"go run ./cmd/nothing":                      "no such file",
		"go test ./lock -run Overlap":               "",
		"go test ./lock -run Overlaip":              "has no test",
		"kubectl apply -k examples/kubernetes/base": "",
		"kubectl apply -k examples/kubernetes/bass": "no such file",
		"kubectl frobnicate pod":                    "the verb is none of",
		"docker build -f examples/kubernetes/overlays/exec/Dockerfile .": "",
		"docker build -f examples/kubernetes/overlays/exec/Dockerfail .": "no such file",
		"frobnicate":      "does not know",
		"sudo frobnicate": "does not know",
		"NAME=value frobnicate --fast # with a reason": "does not know",
	} {
		err := check(w, parts(line)[0])
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestOnlyHarmlessCommandLinesAreRun(t *testing.T) {
	for line, want := range map[string]bool{
		"solotick status": true, "crontab -l | solotick-import - > table.yaml": true, `echo "a | b; rm -rf /"`: true,
		"solotick schema > /etc/table.schema.json": false, "solotick schema > examples/x": false, "rm -rf /": false,
		"solotick status; rm -rf /": false, "solotick status && rm x": false, "kubectl get pods": false, "VERSION=1": false,
	} {
		if got := runs(parts(line)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

func TestOutputIsComparedExceptForWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		line, shown, got string
		want             bool
	}{
		{"solotick why x", "due in 13h12m52s.", "due in 2s.", true},
		{"solotick why x", "due in 13h12m52s.", "due in 1 day.", true},
		{"solotick why x", "due in 13h12m52s.", "due in 3 days.", true},
		{"solotick why x", "run 7720b79d-a6e4-4906-91c3-0dc2576f805f after 1ms", "run 561e9d2e-4825-4c6c-802d-d5651a70d068 after 12 ms", true},
		{"solotick why x", "1 of 2 failing", "0 of 2 failing", false},
		{"solotick why x", "solotick_redis_up 1", "solotick_redis_up 0", false},
		{"solotick why x", "failed on billing-1", "succeeded on billing-1", false},
		{"solotick why x", "a\n…\nb", "a\n1\n2\nb", true},
		{"solotick why x", "a\n…\nb", "a\n1\n2", false},
		{"solotick why x", "a", "a\nb", false},
		{"solotick next -n 1 --from 2027-03-26", "2027-03-26T09:00:00Z", "2027-03-26T09:00:00Z", true},
		{"solotick next -n 1 --from 2027-03-26", "2027-03-26T09:00:00Z", "2027-03-26T10:00:00Z", false},
	} {
		if got := alike(c.line, strings.Split(c.shown, "\n"), strings.Split(c.got, "\n")); got != c.want {
			t.Errorf("%s: %q and %q: %v, want %v", c.line, c.shown, c.got, got, c.want)
		}
	}
}

func TestACommentBelongsToABlock(t *testing.T) {
	all, err := blocks("page.md", "<!-- given a; exit 3 -->\n```console\n$ one\n$ two\nout\n```\n")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if c := all[0].commands(); len(c) != 2 || c[0].exit != 0 || c[1].exit != 3 || c[1].shown[0] != "out" || c[0].given[0] != "a" {
		t.Errorf("%+v", c)
	}
	if all, err = blocks("page.md", "1. Do\n\n   ```console\n   $ one\n   out\n   ```\n"); err != nil || len(all[0].commands()) != 1 {
		t.Errorf("in a list: %+v, %v", all, err)
	}
	for _, text := range []string{"<!-- exit 1 -->\n\nWords.\n", "<!-- exit one -->\n```sh\n```\n", "```sh\nopen\n"} {
		if _, err := blocks("page.md", text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
