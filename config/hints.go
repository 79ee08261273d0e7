package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

// otherWords has the words that other tools, or people, use for the words of a key: what it is here, or a whole hint.
var otherWords = map[string]map[string]string{
	"guarantee": {"once": "at-most-once", "every": "every-replica", "all": "every-replica",
		"exactlyonce": "no scheduler can promise that: at-most-once never runs a tick twice, " +
			"at-least-once repeats a run that was cut short"},
	"format": {"mattermost": "slack", "discord": "write slack, and /slack at the end of the URL"},
	"missed": {"none": "skip", "no": "skip", "never": "skip", "ignore": "skip", "donothing": "skip",
		"last": "latest", "once": "latest", "newest": "latest", "fireonce": "latest", "every": "all",
		"run": "latest"},
	"concurrencyPolicy": {"skip": "Forbid", "deny": "Forbid", "no": "Forbid", "parallel": "Allow", "wait": "Queue",
		"serial": "Queue", "cancel": "Replace", "kill": "Replace"},
}

// wordHint suggests a word of a key for one that it does not have; "" if none is near.
func wordHint(name, value string, words []string) string {
	if name == "on" && (value == string(StartedLate) || value == string(TakesTooLong)) {
		return fmt.Sprintf("it needs a duration: write %s: 5m beside on", value)
	}
	near := cmp.Or(otherWords[name][strict.PlainName(value)], strict.Nearest(value, words))
	if near == "" || strings.Contains(near, " ") {
		return near
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// filled has the full form of mappings for which users write only the most important value.
var filled = map[string]string{
	"exec": `{command: ["/bin/tool", "--fast"]}`, "retry": "{limit: 3}", "lock": "{ttl: 30s}",
	"sentinel": "{master: mymaster, addrs: [sentinel-0:26379]}", "cluster": "{addrs: [redis-0:6379]}",
	"tls": "{caFile: /etc/tls/ca.pem}", "sign": "{secretFile: /run/secrets/whsec}",
	"defaults": "{timeout: 10m}",
}

// otherKeys has the hints for keys of other tools, below the mapping in which people write them.
var otherKeys = map[string]map[string]string{
	"a job": {"shell": inAShell, "run": inAShell, "script": inAShell, "on": `write schedule: "0 2 * * *"`,
		"dependson": "no job waits for another: let the first one start the second, with solotick trigger",
		"resources": noLimits, "limits": noLimits, "memory": noLimits, "nice": noLimits},
	"": {"on": `each job has its own: write schedule: "0 2 * * *" in it`,
		"timezone": "write timeZone in a job or under defaults"},
	"redis": {"db": inTheURL, "database": inTheURL},
}

const (
	inAShell = `write exec: {command: ["sh", "-c", "…"]}`
	noLimits = "limit the container, or write prlimit or nice before the command"
	inTheURL = "write it at the end of url: redis://redis:6379/1"
)

// spoken has schedules of other tools, and in words, with what they are here.
var spoken = []struct{ form, here string }{
	{`cron\((\S+ \S+ \S+ \S+ [^\d ]+ \S+)\)`, "0 $1"}, // of AWS, with a year; its Sunday is day 1
	{`(?:every )?(hour|week|month|year)(?:ly)?`, "@${1}ly"},
	{`every day|daily`, "@daily"},
	{`every minute`, "* * * * *"},
	{`(?:@?every |rate\()?(\d+) ?(s|m|h|d|w)(?:ecs?|econds?|ins?|inutes?|rs?|ours?|ays?|eeks?)?\)?`, "@every $1$2"},
	{`@every ([1-5]?\d)`, "@every ${1}m"},
	{`@every (\d+)`, "@every ${1}s"},
	{`(?:(?:every day|daily) )?(?:at )?0?(1?\d|2[0-3]):0?([1-5]?\d)`, "$2 $1 * * *"},
	{`(?:every day|daily) at 0?(1?\d|2[0-3])`, "0 $1 * * *"},
}

// inFields writes a spoken schedule as it is here.
func inFields(expr string) string {
	low := strings.ToLower(strings.TrimSpace(expr))
	for _, s := range spoken {
		if re := regexp.MustCompile("^(?:" + s.form + ")$"); re.MatchString(low) {
			return re.ReplaceAllString(low, s.here)
		}
	}
	return expr
}

// ScheduleHint suggests a valid schedule for an invalid one: `write "0 22-23,0-6 * * *"`. It is "" if it cannot tell.
func ScheduleHint(expr string, o schedule.Options) string {
	better := daysOfEvery(reversedRanges(inFields(expr)))
	if _, err := schedule.Parse(better, o); err != nil {
		return ""
	}
	return fmt.Sprintf("write %q", better)
}

// timeRange is a range of numbers, or one of names.
var timeRange = regexp.MustCompile(`^(?:([0-9]+)-([0-9]+)|([A-Za-z]{3})-([A-Za-z]{3}))$`)

// reversedRanges splits ranges that continue after the end of their field: 22-6 becomes 22-23,0-6.
func reversedRanges(expr string) string {
	f := strings.Fields(expr)
	ends := [][]string{{"0", "59"}, {"0", "59"}, {"0", "23"}, {"1", "31"}, {"1", "12", "JAN", "DEC"},
		{"0", "6", "SUN", "SAT"}}
	switch len(f) {
	case 5:
		ends = ends[1:]
	case 6, 7:
	default:
		return expr
	}
	for i, end := range ends {
		parts := strings.Split(f[i], ",")
		for k, part := range parts {
			m := timeRange.FindStringSubmatch(part)
			switch {
			case m == nil || fits(i-len(ends), part):
			case m[1] != "":
				parts[k] = span(m[1], end[1]) + "," + span(end[0], m[2])
			case len(end) > 2:
				parts[k] = span(m[3], end[3]) + "," + span(end[2], m[4])
			}
		}
		f[i] = strings.Join(parts, ",")
	}
	return strings.Join(f, " ")
}

// fits reports whether a part is valid in a field. The last field, the day of week, is -1.
func fits(place int, part string) bool {
	f := strings.Fields("0 0 0 * * *")
	f[len(f)+place] = part
	_, err := schedule.Parse(strings.Join(f, " "), schedule.Options{})
	return err == nil
}

func span(from, to string) string {
	if strings.EqualFold(from, to) {
		return from
	}
	return from + "-" + to
}

var daysOrWeeks = regexp.MustCompile(`^@every ([0-9]{1,3})\s*(d|w)(ays?|eeks?)?$`)

// daysOfEvery converts days and weeks into hours.
func daysOfEvery(expr string) string {
	m := daysOrWeeks.FindStringSubmatch(strings.TrimSpace(expr))
	if m == nil {
		return expr
	}
	n, _ := strconv.Atoi(m[1])
	return fmt.Sprintf("@every %dh", n*map[string]int{"d": 24, "w": 7 * 24}[m[2]])
}

// remedy returns the hint for a value of the wrong kind.
func remedy(e strict.Entry) string {
	scalar := e.Value.Kind == yaml.ScalarNode
	switch {
	case scalar && (e.Name == "exclude" || e.Name == "include"):
		return fmt.Sprintf("write a list of calendars: %s: [holidays]", e.Name)
	case e.Kind == strict.KindTextList && scalar:
		return `write a list: ["/bin/tool", "--fast"], or for a shell ["sh", "-c", "…"]`
	case e.Kind == kindJobs:
		return "begin each job with a dash: - name: …"
	case e.Kind == strict.KindTextMap:
		return "write a mapping: {NAME: value}"
	case e.Kind == strict.KindMapping:
		if k, ok := strict.Find(e.Keys, "url"); ok && scalar {
			return fmt.Sprintf("write %s: {%s: …}", e.Name, k.Name)
		} else if example := filled[e.Name]; example != "" {
			return fmt.Sprintf("write %s: %s", e.Name, example)
		}
	case e.Kind == strict.KindCodes && scalar:
		return "write a list: [200-299, 404]"
	case e.Name == "body" && !scalar:
		return `a body is text: put it in quotes, '{"dry": false}'`
	}
	return ""
}

// word is one of the words of a key's form.
//
//go:noinline
func word[T ~string](to *T) strict.Type {
	return strict.Accepted(strict.KindText, func(d *strict.Decoder, e strict.Entry, t strict.Text) bool {
		words := e.Form.Words
		if slices.Contains(words, t.Value) {
			*to = T(t.Value)
			return true
		}
		return d.Bad(t, t.IfShown(wordHint(e.Name, t.Value, words)), "must be %s", strings.Join(words, " or "))
	}, "!!str")
}

// tableOnly are keys of a job that a timer cannot have. With some of them the API could reach beyond the app beside the
// replica; claim is for apps that the table knows. The others name calendars, which a table has and Redis does not
// keep.
var tableOnly = []string{"exec", "claim", "allowRemote", "notify", "exclude", "include", "onExcluded"}

// fileKeys are the keys of http that name files. Timers cannot have them: with them the API could have
// every file that the replica may read sent to a listener of the caller's.
var fileKeys = []string{"tls", "sign"}

const toTheTable = "put a job that needs it into the table"

// inAJob names the place of a job's own keys, ofDefaults begins what is said of keys under defaults.
const inAJob, ofDefaults = "in a job", "defaults: "

// homes returns the places where a key of that name is known, in words for the user. While a job is decoded, only
// places in a job count: inJob is true then.
func homes(d *strict.Decoder, inJob bool, name string) []string {
	inJob = inJob && !d.Subject.Literal
	var out []string
	elsewhere := []string{"redis", "ready", "calendars"}
	var walk func(keys []strict.Key, under string)
	walk = func(keys []strict.Key, under string) {
		for _, k := range keys {
			if k.Name == name && !slices.Contains(out, under) {
				out = append(out, under)
			}
			switch place := "under " + k.Name; {
			case k.Name == "jobs":
				walk(k.Keys, inAJob)
			case k.Name == "defaults", inJob && slices.Contains(elsewhere, k.Name): // defaults has no keys of its own
			case d.Scope == ofDefaults && (under == inAJob && !k.Common || strings.HasSuffix(under, " "+inAJob)):
				walk(k.Keys, place+" "+inAJob) // defaults cannot have it
			default:
				walk(k.Keys, place)
			}
		}
	}
	walk(d.Root, "at the top level")
	if defaults, ok := strict.Find(d.Root, "defaults"); ok && !inJob {
		if _, ok := strict.Find(defaults.Keys, name); ok {
			out = append(out, "under defaults")
		}
	}
	if len(out) > 1 { // few tables have messages, and nobody looks for another key there
		out = slices.DeleteFunc(out, func(home string) bool { return home == "under change" })
	}
	return out
}

// explain says why a key that the table knows cannot stand in e.
func explain(d *strict.Decoder, inJob bool, e strict.Entry, name string) (message, hint string) {
	place := e.Path
	if inJob && place == "" {
		place = "a job"
	}
	other := otherKeys[place][strict.PlainName(name)]
	switch {
	case other != "" && e.Name != "defaults": // where it would be wrong, too
		return fmt.Sprintf("unknown key %q", name), other
	case d.Subject.Literal && (e.Path == "" && slices.Contains(tableOnly, name) ||
		e.Path == "http" && slices.Contains(fileKeys, name)):
		return fmt.Sprintf("%q is for jobs of the table alone", name), toTheTable
	case e.Name == "calendars" && slices.Contains([]string{"file", "ics", "path"}, name):
		return "a calendar has its days in the table", "solotick-import calendar holidays.ics prints them"
	case e.Name == "defaults" && slices.Contains(homes(d, inJob, name), inAJob):
		return fmt.Sprintf("%q cannot have a default", name),
			"each job sets its own; allowed here: " + strings.Join(strict.Names(e.Keys), ", ")
	}
	return "", ""
}
