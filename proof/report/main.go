// Report makes docs/proof.md of the records in proof/results: what is proved how, and what the last run of each proof
// said.
//
//	go -C proof run ./report
//
// With -stores it first writes the record of the tests on other servers, of which it reads one line each.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/solotick/solotick/internal/testing/results"
	"github.com/solotick/solotick/internal/testing/rig"
)

//go:embed proof.md.tmpl
var document string

func main() {
	stores := flag.Int64("stores", 0, "write the record of the tests on other servers, which began at this Unix `time`")
	flag.Parse()
	var err error
	if *stores != 0 {
		err = ofStores(os.Stdin, time.Unix(*stores, 0))
	} else {
		err = write()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// ofStores writes that record.
func ofStores(servers io.Reader, began time.Time) error {
	run := results.Begin("stores", "make stores")
	run.Began = began.UTC()
	var names []string
	for in := bufio.NewScanner(servers); in.Scan(); {
		names = append(names, strings.Trim(in.Text(), "| "))
	}
	run.Add(len(names), "servers")
	run.Details = names
	return run.End(false)
}

// write makes the page.
func write() error {
	root, err := rig.Root()
	if err != nil {
		return err
	}
	text, err := page(filepath.Join(root, "proof", "results"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "proof.md"), []byte(text), 0o644)
}

// page is docs/proof.md, by the records in a directory.
func page(dir string) (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"last": func(proof string) (string, error) {
		run, err := results.Read(dir, proof)
		if err != nil || run == nil {
			return "not run yet | |", err
		}
		return last(run), nil
	}}).Parse(document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, nil)
	return b.String(), err
}

// last is two cells: when, on which sources, for how long and by which command a proof ran, and what it said.
func last(run *results.Run) string {
	var said []string
	if run.Failed {
		said = append(said, "**failed**")
	}
	for _, f := range run.Figures {
		said = append(said, grouped(f.Count)+" "+f.Of)
	}
	lasted := time.Duration(run.Seconds) * time.Second
	return fmt.Sprintf("[%s](../proof/results/%s.json), %s, %s: `%s` | %s |",
		run.Began.Format(time.DateOnly), run.Proof, run.Commit, lasted, run.Again, strings.Join(said, ", "))
}

// grouped writes a number with a comma before each three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
