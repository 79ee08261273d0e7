package convert

import (
	"cmp"
	"fmt"
	"github.com/solotick/solotick/config/strict"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/solotick/solotick/config/schedule"
)

// job is one job of the table while it is read.
type job struct {
	at       string   // file:line
	was      string   // its name there; "" = none
	comments []string // the file's comments above it
	notes    []note
	lost     string   // why it cannot be carried over; "" = it can
	wish     []string // possible names, best first

	name        string
	schedule    string
	timeZone    string
	command     []string
	env         []variable
	dir         string
	timeout     time.Duration // 0 = no limit
	guarantee   string        // "" = the default
	concurrency string        // "" = Allow
	deadline    time.Duration // starting deadline; 0 = none
	retries     int
	jitter      time.Duration
	suspend     bool
}

type variable struct{ name, value string }

// maxVariables is more than a command has. Those that come after them are left out.
const maxVariables = 1000

// with returns variables with another one, as a list of its own.
func with(env []variable, v variable) []variable {
	if len(env) == maxVariables {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(o variable) bool { return o.name == v.name })
	return append(env, v)
}

type note struct{ about, text string }

// unlimited stands for "no limit", which a timeout cannot express.
const unlimited = 24 * time.Hour

// Kubernetes' waits between attempts.
const (
	podBackoff    = 10 * time.Second
	maxPodBackoff = 6 * time.Minute
)

func (j *job) note(about, format string, args ...any) {
	j.notes = append(j.notes, note{about, oneLine(fmt.Sprintf(format, args...))})
}

// lose records why the job cannot be carried over; the first reason counts.
func (j *job) lose(format string, args ...any) {
	if j.lost == "" {
		j.lost = oneLine(fmt.Sprintf(format, args...))
	}
}

// settle makes the checks that need the whole job, as package config will.
func (j *job) settle(o Options) {
	zone := cmp.Or(j.timeZone, o.TimeZone)
	if len(j.env) == maxVariables {
		j.note("environment", "it has %d variables; any more would be left out", maxVariables)
	}
	texts := append([]string{zone, j.dir}, j.command...)
	for _, v := range j.env {
		texts = append(texts, v.value)
	}
	switch all := strings.Join(texts, ""); {
	case j.lost != "":
		return
	case !utf8.ValidString(all):
		j.lose("it holds text that is not UTF-8")
		return
	case strings.ContainsRune(all, 0):
		j.lose("it holds a NUL character")
		return
	}
	if zone != "" && !zoneKnown(zone) {
		j.lose("time zone %q is unknown here", zone)
		return
	}
	s, err := schedule.Parse(j.schedule, schedule.Options{TimeZone: zone, Job: j.name})
	switch {
	case err != nil:
		j.lose("schedule %q: %v", j.schedule, err)
		return
	case len(j.command) == 0 || strings.TrimSpace(j.command[0]) == "":
		j.lose("there is no command")
		return
	}
	if j.jitter == 0 {
		return
	}
	if gap := s.MinGap(); gap > 0 && j.jitter >= gap {
		j.note("random delay",
			"a random delay of up to %s is longer than its ticks are apart; set jitter to less than %s",
			strict.ShortDuration(j.jitter), strict.ShortDuration(gap))
		j.jitter = 0
	}
}

// oneLine makes text safe for a comment: it escapes characters that would end the line or act on a terminal.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r == '\n':
			b.WriteString(`\n`)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
