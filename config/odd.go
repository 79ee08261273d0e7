package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// odd warns of valid settings that are usually a mistake.
func odd(d *strict.Decoder, j *draft) {
	oddSchedule(d, j)
	oddTimeout(d, j)
	oddCommand(d, j)
	oddCodes(d, j)
	oddVariable(d, j.at["http.url"])
}

// unfilled matches what looks like a variable, or a template.
var unfilled = regexp.MustCompile(`\$[A-Z_][A-Z0-9_]+|\{\{`)

// oddVariable warns of a text that the app gets as it is. It may be a secret, so the warning shows nothing of it.
func oddVariable(d *strict.Decoder, t strict.Text) {
	if t.OK() && unfilled.MatchString(t.Node.Value) {
		d.Warn(t.Node, "write ${NAME} for a variable", "%s: $NAME and {{ }} are not filled in", t.Label)
	}
}

// oddSchedule looks at the texts of a valid schedule.
func oddSchedule(d *strict.Decoder, j *draft) {
	if j.Schedule == nil {
		return
	}
	for _, expr := range j.exprs {
		f := strings.Fields(strings.ToUpper(expr.Value))
		if expr.Opaque || len(f) < 5 { // a word such as @daily
			continue
		}
		oddSteps(d, expr, f)
		oddStars(d, expr, f)
		oddDays(d, expr, f)
	}
}

// clockFields are the fields of an expression before the days. One of five fields has no second.
var clockFields = []struct {
	name, short, of string
	size            int
}{{"second", "s", "minute", 60}, {"minute", "m", "hour", 60}, {"hour", "h", "day", 24}}

// oddStars warns of a * before a number: * 2 * * * ticks in each minute of that hour.
func oddStars(d *strict.Decoder, expr strict.Text, f []string) {
	units := clockFields[max(0, 6-len(f)):]
	for i, unit := range units[1:] {
		if _, err := strconv.Atoi(f[i+1]); f[i] != "*" || err != nil {
			continue
		}
		once := with(f, 0, slices.Repeat([]string{"0"}, i+1)...)
		d.Warn(expr.Node, fmt.Sprintf("for one tick then write %q", once),
			"%s: %s \"*\" means %d ticks in %s \"%s\"", expr.Label, units[i].name, units[i].size, unit.name, f[i+1])
	}
}

// with returns an expression with other words in its fields from one on.
func with(f []string, at int, words ...string) string {
	return strings.Join(slices.Concat(f[:at], words, f[at+len(words):]), " ")
}

// oddSteps warns of a step that does not divide its field: */45, or 0/45 in Quartz, does not mean "every 45 minutes".
func oddSteps(d *strict.Decoder, expr strict.Text, f []string) {
	for i, unit := range clockFields[max(0, 6-len(f)):] {
		start, text, ok := strings.Cut(f[i], "/")
		step, err := strconv.Atoi(text)
		if !ok || start != "*" && start != "0" || err != nil || unit.size%step == 0 {
			continue
		}
		hint := ""
		if fixed := f[:i]; allOf(f[i+1:], "*", "?") && allOf(fixed, "0", "*") {
			hint = fmt.Sprintf("for every %d%s write \"@every %d%s\"", step, unit.short, step, unit.short)
		}
		d.Warn(expr.Node, hint, "%s: %s \"%s\" starts again with each %s: there its ticks are %d%s apart, not %d%s",
			expr.Label, unit.name, f[i], unit.of, unit.size%step, unit.short, step, unit.short)
	}
}

func allOf(fields []string, words ...string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return !slices.Contains(words, f) })
}

// weekdays has the weekdays by their number here; Quartz counts from 1.
var weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}

// These find the numbers of days in a field, and those that are 0, but not the n of #n and /n.
var (
	weekdayNumber = regexp.MustCompile(`(^|[-,])[0-9]`)
	sundayZero    = regexp.MustCompile(`(^|[-,])0`)
)

// oddDays warns of Quartz' numbers of weekdays, and of two restricted day fields.
func oddDays(d *strict.Decoder, expr strict.Text, f []string) {
	at := min(len(f), 6) - 3 // of the day of month
	month, week := f[at], f[at+2]
	switch {
	case month == "?" && (week == "L" || weekdayNumber.MatchString(week) && !sundayZero.MatchString(week)):
		here, quartz := named(week, 0), named(week, 1)
		if week == "L" { // the last day of a week
			here, quartz = weekdays[0], weekdays[6]
		}
		d.Warn(expr.Node,
			fmt.Sprintf("if you mean %s, write %q; otherwise %q", quartz, with(f, at+2, quartz), with(f, at+2, here)),
			"%s: day of week \"%s\" is %s here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is %s",
			expr.Label, week, here, quartz)
	case !slices.Contains(anyDay, month) && !slices.Contains(anyDay, week):
		hint := "Solotick cannot require both to match; if either may match, two jobs are easier to read"
		nth := slices.Index([]string{"1-7", "8-14", "15-21", "22-28"}, month)
		if nth >= 0 && !strings.ContainsAny(week, ",-/#L") {
			day := fmt.Sprintf("%s#%d", week, nth+1)
			hint = fmt.Sprintf("for the %s of each month write %q", day, with(f, at, "*", f[at+1], day))
		}
		d.Warn(expr.Node, hint, "%s: day of month and day of week are both restricted: "+
			"a day that matches either of them has a tick", expr.Label)
	}
}

// anyDay has the forms of a day field that match every day. */2 is not among them, though cron(5) treats it so.
var anyDay = []string{"*", "?", "*/1"}

// named writes the days of a field by name. first is the number of Sunday.
func named(field string, first int) string {
	return weekdayNumber.ReplaceAllStringFunc(field, func(s string) string {
		n := int(s[len(s)-1] - '0')
		return s[:len(s)-1] + weekdays[n-first]
	})
}

// oddTimeout warns of a run that may still go on when the next ticks come due, unless the job sets concurrencyPolicy.
func oddTimeout(d *strict.Decoder, j *draft) {
	_, said := j.at["concurrencyPolicy"]
	if said || j.unset("concurrencyPolicy") || !j.own("timeout") || j.Schedule == nil ||
		j.ConcurrencyPolicy == Allow || j.unset("guarantee") {
		return
	}
	timeout := j.at["timeout"]
	if gap := j.Schedule.MinGap(); gap > 0 && j.Timeout > gap {
		d.Warn(timeout.Node, "if that is intended, write concurrencyPolicy: Forbid",
			"%s: ticks can be %s apart: those that come due while a run takes longer are skipped",
			timeout.Label, strict.ShortDuration(gap))
	}
}

var (
	// shells are programs that can have a shell's operators among their arguments.
	shells = strings.Fields("sh bash dash ash zsh ksh fish busybox env ssh su sudo nsenter chroot cmd pwsh expr test [")

	// operators are words that only a shell understands. A semicolon is not among them: find accepts it.
	operators = []string{"|", "||", "&&", "&", ">", ">>", "<", "2>", "2>&1", "&>", "|&"}
)

// background matches a line for a shell that leaves its last command behind.
var background = regexp.MustCompile(`[^&\\]&\s*$`)

// oddCodes warns about answers in retry.on that never cause a retry.
func oddCodes(d *strict.Decoder, j *draft) {
	on := j.at["retry.on"]
	if !j.own("retry.on") || j.HTTP == nil || j.unset("retry.limit") {
		return
	}
	if _, said := j.at["retry.limit"]; !said && j.Retry.Limit == 0 {
		d.Warn(on.Node, "write retry: {limit: 3, on: …}",
			"retry.on has no effect: nothing is tried again without retry.limit")
		return
	}
	if on.Opaque || j.at["http.successCodes"].Opaque {
		return
	}
	if slices.Contains(j.Retry.On, CodeRange{409, 409}) && !j.HTTP.Succeeds(409) {
		d.Warn(on.Node, "", "retry.on: 409 means that the job already runs, so it is not called again")
	} else if j.Retry.Limit > 0 && !slices.ContainsFunc(j.Retry.On, func(r CodeRange) bool { return r.To >= 500 }) {
		d.Warn(on.Node, "add 500-599",
			"retry.on: these replace 408, 425, 429 and 500-599, so no error of the app is tried again")
	}
}

// oddCommand warns of a command that is written for a shell but starts none, and of a shell that leaves its work
// behind.
func oddCommand(d *strict.Decoder, j *draft) {
	if j.Exec == nil || len(j.Exec.Command) == 0 {
		return
	}
	command := j.Exec.Command
	program := command[0]
	const shell = `write ["sh", "-c", "…"]`
	switch at := j.at["exec.command"]; {
	case !at.OK() || j.unset("exec.command[0]"):
	case slices.Contains(shells, path.Base(program)):
		if len(command) > 2 && command[1] == "-c" && background.MatchString(command[2]) {
			d.Warn(at.Node, "take the & away: then the run lasts as long as the work",
				"exec.command[2]: what \"&\" leaves behind is killed as soon as the shell has ended")
		}
	case strings.ContainsAny(program, " ") && strings.ContainsAny(program, "|&><;"):
		d.Warn(at.Node, shell, "exec.command: the program is a line for a shell, but there is no shell")
	case strings.Contains(program, " ") && !strings.HasPrefix(program, "/"):
		d.Warn(at.Node, `write the program and its arguments as a list: ["/bin/tool", "--fast"]`,
			"exec.command: the program has a space in its name, and there is no shell to split it")
	default:
		for i, word := range command[1:] {
			if slices.Contains(operators, word) {
				d.Warn(at.Node, shell, "exec.command[%d]: %q is passed on as an argument: there is no shell", i+1, word)
				return
			}
		}
	}
}
