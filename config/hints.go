package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/solotick/solotick/config/schedule"
)

// otherWords are what other tools call the words of a key, or people say.
var otherWords = map[string]map[string]string{
	"guarantee": {"once": "at-most-once", "every": "every-replica", "all": "every-replica"},
	"missed": {"none": "skip", "no": "skip", "never": "skip", "ignore": "skip", "donothing": "skip",
		"last": "latest", "once": "latest", "newest": "latest", "fireonce": "latest", "every": "all"},
	"concurrencyPolicy": {"skip": "Forbid", "deny": "Forbid", "no": "Forbid", "parallel": "Allow", "wait": "Queue", "serial": "Queue",
		"cancel": "Replace", "kill": "Replace"},
}

// wordHint is what somebody may have meant who wrote a word that a key does not know; "" when nobody can tell.
func wordHint(name, value string, words []string) string {
	if name == "guarantee" && plainName(value) == "exactlyonce" {
		return "no scheduler can promise that: at-most-once never runs a tick twice, at-least-once repeats a run that was cut short"
	}
	near := otherWords[name][plainName(value)]
	if near == "" {
		near = Nearest(value, words)
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// filled is how a mapping is written of which somebody wrote only the value that matters most.
var filled = map[string]string{
	"exec": `{command: ["/bin/tool", "--fast"]}`, "retry": "{limit: 3}", "lock": "{ttl: 30s}", "resources": "{memory: 128Mi}",
	"sentinel": "{master: mymaster, addrs: [sentinel-0:26379]}", "cluster": "{addrs: [redis-0:6379]}", "tls": "{caFile: /etc/tls/ca.pem}",
	"defaults": "{timeout: 10m}",
}

// scheduleHint is the schedule that somebody meant who wrote one that is none, if it can be told.
func scheduleHint(expr string, o schedule.Options) string {
	better := daysOfEvery(reversedRanges(wordsOfDays(expr)))
	if _, err := schedule.Parse(better, o); err != nil {
		return ""
	}
	return fmt.Sprintf("write %q", better)
}

var letters = regexp.MustCompile(`[A-Za-z]{3,}`)

// wordsOfDays cuts the names of months and weekdays: THURSDAY, THURS and THR are THU.
func wordsOfDays(expr string) string {
	if strings.HasPrefix(expr, "@") {
		return expr
	}
	known := strings.Fields("SUN MON TUE WED THU FRI SAT JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	return letters.ReplaceAllStringFunc(expr, func(word string) string {
		upper := strings.ToUpper(word)
		switch {
		case upper == "THR":
			return "THU"
		case upper == "WEN", upper == "WDS":
			return "WED"
		case slices.Contains(known, upper[:3]):
			return upper[:3]
		}
		return word
	})
}

var timeRange = regexp.MustCompile(`^([0-9]+|[A-Za-z]{3})-([0-9]+|[A-Za-z]{3})$`)

// reversedRanges takes ranges that go on behind the end of their field apart: 22-6 is 22-23,0-6.
func reversedRanges(expr string) string {
	f := strings.Fields(expr)
	ends := [][2]string{{"0", "59"}, {"0", "59"}, {"0", "23"}, {"1", "31"}, {"1", "12"}, {"0", "6"}}
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
			if m == nil {
				continue
			}
			low, err := strconv.Atoi(m[1])
			high, err2 := strconv.Atoi(m[2])
			first, last := end[0], end[1]
			switch {
			case err == nil && err2 == nil && low <= high:
				continue
			case err != nil && err2 != nil && i == len(ends)-1:
				first, last = "SUN", "SAT"
			case err != nil && err2 != nil && i == len(ends)-2:
				first, last = "JAN", "DEC"
			case err != nil || err2 != nil:
				continue
			}
			if err != nil && schedules(i, len(ends), part) {
				continue
			}
			parts[k] = span(m[1], last) + "," + span(first, m[2])
		}
		f[i] = strings.Join(parts, ",")
	}
	return strings.Join(f, " ")
}

// schedules says whether a range of names stands in its order.
func schedules(place, places int, part string) bool {
	f := strings.Fields("0 0 * * *")
	f[place+5-places] = part
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

// daysOfEvery writes days and weeks in hours.
func daysOfEvery(expr string) string {
	m := daysOrWeeks.FindStringSubmatch(strings.TrimSpace(expr))
	if m == nil {
		return expr
	}
	n, _ := strconv.Atoi(m[1])
	return fmt.Sprintf("@every %dh", n*map[string]int{"d": 24, "w": 7 * 24}[m[2]])
}

var fixedOffset = regexp.MustCompile(`(?i)^(?:utc|gmt)?\s*([-+])0?([0-9]{1,2})(?::?00)?$`)

// offsetZone is the zone that has always the same distance to UTC, as UTC+1 has; "" when there is none. POSIX counts it the
// other way round.
func offsetZone(name string) string {
	m := fixedOffset.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	sign := map[string]string{"+": "-", "-": "+"}[m[1]]
	hours, _ := strconv.Atoi(m[2])
	zone := fmt.Sprintf("Etc/GMT%s%d", sign, hours)
	if !isZone(zone) {
		return ""
	}
	return zone
}
