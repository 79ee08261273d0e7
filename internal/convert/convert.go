package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// maxInput bounds one file, in bytes: two thousand CronJobs as kubectl prints them.
const maxInput = 16 << 20

// Format is the format of a file.
type Format string

// The formats of files.
const (
	Crontab    Format = "crontab"
	Kubernetes Format = "kubernetes"
)

// Input is one file.
type Input struct {
	Name string // for comments and messages
	Data []byte
}

// Options add what the files do not say. The zero value guesses the formats, and leaves the rest of the table open.
type Options struct {
	From       Format // "" = guessed for each file
	UserColumn *bool  // crontab lines name a user before the command, as in /etc/crontab; nil = guessed for each file
	Service    string // "" = a name to be replaced
	TimeZone   string // the zone of schedules that name none; "" = open, which is UTC
	Redis      string // URL; "" = open
}

// Result is a table, with notes about it.
type Result struct {
	Table []byte
	Jobs  int // in the table
	Lost  int // in it as commented-out blocks
	Local int // of Jobs, those of crontabs for which no zone is known
	Notes []Note
}

// Note is one difference between a job in the file and in the table.
type Note struct {
	At    string // file:line
	Job   string
	About string // a few words, the same for all notes of the kind
	Text  string // the whole note
	Lost  bool   // the job is commented out
}

// Error says why a file cannot be read at all.
type Error struct{ File, Why, Hint string }

func (e *Error) Error() string { return e.File + ": " + e.Why }

// Convert makes one table from all files.
func Convert(files []Input, o Options) (*Result, error) {
	var all []job
	kinds := map[Format]bool{}
	for _, f := range files {
		jobs, kind, err := read(f, o)
		if err != nil {
			return nil, err
		}
		kinds[kind] = true
		all = append(all, jobs...)
	}
	if len(all) > maxTable/leastJob {
		return nil, tooLarge(len(all))
	}
	nameAll(all)
	r := &Result{}
	for i := range all {
		j := &all[i]
		j.settle(o)
		if j.lost != "" {
			r.Lost++
			r.Notes = append(r.Notes, Note{At: j.at, Job: j.name, About: "not carried over", Text: j.lost, Lost: true})
		} else {
			r.Jobs++
			if j.was == "" && j.timeZone == "" && o.TimeZone == "" {
				r.Local++
			}
		}
		for _, n := range j.notes {
			r.Notes = append(r.Notes, Note{At: j.at, Job: j.name, About: n.about, Text: n.text})
		}
	}
	r.Table = write(all, files, kinds, o)
	return r, check(r)
}

func read(f Input, o Options) ([]job, Format, error) {
	if err := isText(f); err != nil {
		return nil, "", err
	}
	kind := cmp.Or(o.From, guess(f.Data))
	var jobs []job
	var err error
	if kind == Kubernetes {
		jobs, err = readManifests(f)
	} else {
		jobs, err = readCrontab(f, o.UserColumn)
	}
	return jobs, kind, err
}

// isText refuses binary files. It accepts single bytes that are not UTF-8; the reader of the line deals with them.
func isText(f Input) error {
	switch {
	case len(f.Data) > maxInput:
		return &Error{f.Name, fmt.Sprintf("the file is larger than %d MiB", maxInput>>20), "import it in parts"}
	case bytes.HasPrefix(f.Data, []byte("\xff\xfe")), bytes.HasPrefix(f.Data, []byte("\xfe\xff")):
		return &Error{f.Name, "the file is UTF-16", "save it as UTF-8"}
	case bytes.IndexByte(f.Data, 0) >= 0:
		return &Error{f.Name, "the file is not text", "is this the right file? crontabs and manifests are text"}
	}
	return nil
}

// guess returns the format of a file: manifests name theirs in the first lines, and any other text is a crontab.
func guess(data []byte) Format {
	if text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff"))); bytes.HasPrefix(text, []byte("{")) {
		return Kubernetes
	}
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("apiVersion:")) || bytes.HasPrefix(line, []byte("kind:")) {
			return Kubernetes
		}
	}
	return Crontab
}

// check parses the table as Solotick will. It can only fail because the table is too large, or because of the options.
func check(r *Result) error {
	if len(r.Table) > maxTable {
		return tooLarge(r.Jobs + r.Lost)
	}
	anything := func(string) (string, bool) { return "1", true } // only the options can have variables
	t, err := config.Parse("the table", r.Table, anything)
	var problems config.Problems
	switch {
	case err == nil && len(t.Jobs) != r.Jobs:
		return fmt.Errorf("writing the table: it has %d jobs instead of %d; this is a fault of the import",
			len(t.Jobs), r.Jobs)
	case errors.As(err, &problems):
		return &Error{"the table", problems[0].Message, problems[0].Hint}
	}
	return err
}

const (
	maxTable = 1 << 20 // bytes of the largest table that package config reads
	leastJob = 64      // bytes that a job takes in it at least
)

func tooLarge(jobs int) error {
	return &Error{"the table", fmt.Sprintf("%d jobs make it larger than a table may be, 1 MiB", jobs),
		"import fewer files at once, each for a service of its own"}
}

// zoneKnown reports whether package schedule knows a time zone.
func zoneKnown(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && !strings.EqualFold(name, "local")
}
