package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the commands into docs/cli.md anew")

// explained are the flags that the page explains once, for all verbs.
var explained = []string{"by", "config", "help", "output", "reason", "redis", "service"}

// rows are the rows of the page for a command and those below it: how it is called, what it does, and the flags that
// neither the call nor the page names.
func rows(c *cobra.Command) (all []string) {
	for _, sub := range c.Commands() {
		all = append(all, rows(sub)...)
	}
	if all != nil {
		return all
	}
	call := strings.ReplaceAll(strings.TrimPrefix(c.UseLine(), "solotick "), " [flags]", "")
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if named := slices.Contains(explained, f.Name) || strings.Contains(call, "--"+f.Name+" "); !named {
			flags = append(flags, "`--"+f.Name+"`")
		}
	})
	// A bar would end the cell.
	return []string{fmt.Sprintf("| `%s` | %s | %s |", strings.ReplaceAll(call, "|", `\|`), c.Short, strings.Join(flags, " "))}
}

func TestThePageListsTheCommands(t *testing.T) {
	const page = "../../docs/cli.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- commands -->\n.*?\n\| --- \|.*?\n).*?(<!-- end -->)`)
	if !table.Match(text) {
		t.Fatal("docs/cli.md has no table between <!-- commands --> and <!-- end -->")
	}
	listed := strings.Join(rows((&app{out: io.Discard, err: io.Discard}).root()), "\n") + "\n"
	want := table.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(listed, "$", "$$")+"${2}")
	if string(text) == want {
		return
	}
	if *update {
		err = os.WriteFile(page, []byte(want), 0o644)
	} else {
		err = fmt.Errorf("docs/cli.md does not list the commands as they are: run go test ./cmd/solotick -run %s -update", t.Name())
	}
	if err != nil {
		t.Error(err)
	}
}
