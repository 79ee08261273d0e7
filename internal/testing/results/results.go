// Package results keeps what a long proof says of its last run, in one file for each proof. docs/proof.md is made of
// these files, so none of its figures is typed.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variable is the environment variable that names the directory of the records, by an absolute path: each test runs in
// a directory of its own. Where it is not set, no record is written.
const Variable = "SOLOTICK_PROOF_RESULTS"

// Run is one run of a proof.
type Run struct {
	Proof   string    `json:"proof"`
	Began   time.Time `json:"began"`
	Seconds int       `json:"seconds"`
	Commit  string    `json:"commit"` // with a "+" where the sources had changes besides
	Again   string    `json:"again"`  // the command that runs it again
	Failed  bool      `json:"failed"`
	Figures []Figure  `json:"figures"`
	// Details are for the reader of the file alone.
	Details any `json:"details,omitempty"`

	dir string
}

// Figure is a count of something: 300 seeds.
type Figure struct {
	Count int    `json:"count"`
	Of    string `json:"of"`
}

// Begin begins the record of a proof.
func Begin(proof, again string) *Run {
	r := &Run{Proof: proof, Began: time.Now().UTC().Truncate(time.Second), Again: again, dir: os.Getenv(Variable)}
	if r.dir != "" {
		r.Commit = commit()
	}
	return r
}

// Of begins the record of a test, which ends with the test and its subtests.
func Of(t testing.TB, again string) *Run {
	r := Begin(t.Name(), again)
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		if err := r.End(t.Failed()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Add adds a figure.
func (r *Run) Add(count int, of string) { r.Figures = append(r.Figures, Figure{count, of}) }

// End writes the record, in place of that of the run before.
func (r *Run) End(failed bool) error {
	if r.dir == "" {
		return nil
	}
	if !filepath.IsAbs(r.dir) {
		return fmt.Errorf("%s is %q, and must be an absolute path", Variable, r.dir)
	}
	r.Failed, r.Seconds = failed, int(time.Since(r.Began).Seconds())
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, r.Proof+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Read reads the record of a proof; nil if there is none.
func Read(dir, proof string) (*Run, error) {
	text, err := os.ReadFile(filepath.Join(dir, proof+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("the record of %s: %w", proof, err)
	}
	return r, nil
}

// commit names the sources that are run. It ignores records and pages, which each proof changes.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(head))
	changes, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(top,exclude)proof/results",
		":(top,exclude)docs").Output()
	if err != nil || len(changes) > 0 {
		id += "+"
	}
	return id
}
