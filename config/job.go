package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
)

const (
	// LockMargin is how long before its end a replica stops trusting a lock. A ttl that is no longer than it would
	// never be trusted at all. Package lock owns the figure, which stands here again because config needs no lock.
	LockMargin = time.Second

	// maxTTL bounds how long a job can stand still after its replica died.
	maxTTL = time.Hour

	mostRunning = 10_000

	mostStartRetries = 100

	maxRetries = 100
	maxBackoff = 24 * time.Hour
)

// defaultJob is a job of which nothing but the necessary is said.
func defaultJob() Job {
	return Job{
		TimeZone:          "UTC",
		Timeout:           5 * time.Minute,
		Guarantee:         AtMostOnce,
		ConcurrencyPolicy: Forbid,
		Missed:            Latest,
		StartRetries:      5,
		Retry:             Retry{Backoff: 5 * time.Second, MaxBackoff: time.Minute},
		Lock:              Lock{TTL: 15 * time.Second, SafetyDelay: time.Second},
	}
}

func (d *decoder) defaults(e entry) {
	d.job, d.scope = &d.base, "defaults: "
	if e.isNull() || e.val.Kind == yaml.MappingNode {
		e.path = "" // the scope says where
		d.mapping(e)
	} else {
		d.scope = ""
		d.wrongKind(e)
	}
	d.job, d.scope = nil, ""
}

func (d *decoder) jobs(e entry) {
	items, ok := d.list(e)
	if ok && len(items) == 0 && (e.isNull() || len(e.val.Content) == 0) {
		d.warn(e.at, "", "jobs is empty: nothing will run")
	}
	if !ok || len(items) < len(e.val.Content) {
		d.broken("")
	}
	for i, item := range items {
		d.job = d.base.clone()
		d.scope = fmt.Sprintf("jobs[%d]: ", i)
		if name := d.nameOf(item); name != "" {
			d.scope = fmt.Sprintf("job %s: ", quoted(name))
		}
		item.path, item.kind = "", kindMapping
		switch {
		case item.isNull():
			d.fail(item.at, "", "this job is empty")
			d.broken("")
		case item.val.Kind != yaml.MappingNode:
			d.fail(item.val, "write its keys: name, schedule, and http or exec",
				"a job must be a mapping, not %s", kindOf(item.val))
			d.broken("")
		default:
			before := len(d.problems)
			found := d.mapping(item)
			d.finishJob(item.val, found)
			if len(d.problems) == before {
				d.table.Jobs = append(d.table.Jobs, d.job.Job)
			} else {
				d.broken(d.job.Name)
			}
		}
	}
	d.job, d.scope = nil, ""
}

// broken keeps the name of a job that has problems, for callers that run no jobs: replicas may run this job, and it can be
// paused. The name is "" if it cannot be read either.
func (d *decoder) broken(name string) {
	if d.lenient && (name == "" || !slices.ContainsFunc(d.table.Jobs, func(j Job) bool { return j.Name == name })) {
		d.table.Jobs = append(d.table.Jobs, Job{Name: name})
	}
}

// nameOf is a job's name as it was written, so that every message about it can begin with it.
func (d *decoder) nameOf(job entry) string {
	if job.val.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(job.val.Content); i += 2 {
		if name, val := job.val.Content[i], resolved(job.val.Content[i+1]); name.Value == "name" {
			if val.Kind == yaml.ScalarNode && val.Tag == "!!str" && !d.hidden[val] {
				return val.Value
			}
		}
	}
	return ""
}

// finishJob checks what only the whole job tells.
func (d *decoder) finishJob(n *yaml.Node, found map[string]*yaml.Node) {
	for _, k := range []string{"name", "schedule"} {
		if found[k] == nil {
			d.fail(n, "", "%s is missing", k)
		}
	}
	switch h, x := found["http"], found["exec"]; {
	case h == nil && x == nil:
		d.fail(n, "give it http (a request) or exec (a command)", "nothing to run")
	case present(h) && present(x):
		later := h
		if x.Line > h.Line || x.Line == h.Line && x.Column > h.Column {
			later = x
		}
		d.fail(later, "a job has one of them; make two jobs of it", "both http and exec are set")
	}
	d.checkJob()
}

func (d *decoder) checkJob() {
	d.finishSchedule()
	d.checkJitter()
	d.checkBackoff()
	d.checkRoomToRenew()
	d.checkRemote()
	d.checkResources()
	d.checkEffect()
	d.odd()
	d.job.Fingerprint = d.job.fingerprint()
	d.job.Content = d.job.content()
	if d.job.unset(whenKeys...) {
		d.job.Schedule = nil // nobody can tell when it ticks
	}
}

// whenKeys are those that ticks depend on.
var whenKeys = []string{"name", "schedule", "timeZone", "start", "end"}

// finishSchedule parses the schedule once zone and window are known.
func (d *decoder) finishSchedule() {
	j := d.job
	if end := j.at["end"]; end.ok() && !j.Start.IsZero() && !j.End.After(j.Start) {
		d.bad(end, "", "must be after %s", j.at["start"].label)
		j.Start, j.End = time.Time{}, time.Time{}
	}
	expr := j.at["schedule"]
	if !expr.ok() {
		return
	}
	s, err := schedule.Parse(expr.value, schedule.Options{TimeZone: j.TimeZone, Job: j.Name, Start: j.Start, End: j.End})
	if err != nil {
		opaque := expr.opaque
		for _, k := range []string{"timeZone", "start", "end", "name"} {
			opaque = opaque || j.at[k].opaque
		}
		hint := ""
		if !opaque {
			hint = scheduleHint(expr.value, schedule.Options{TimeZone: j.TimeZone, Job: j.Name, Start: j.Start, End: j.End})
		}
		d.badSchedule(expr, err, hint, opaque)
		return
	}
	j.Schedule = s
	if s.Next(d.now).IsZero() && !j.unset(whenKeys...) {
		d.warn(expr.node, "", "%s: its last tick has passed, it will not run again", expr.label)
	}
}

// badSchedule passes on why a schedule cannot be. The reason repeats parts of it, which a variable's value forbids.
func (d *decoder) badSchedule(expr text, err error, hint string, opaque bool) {
	if opaque {
		d.bad(expr, "put the value in place of the variable to see why",
			"with its variables filled in, this is not a valid schedule")
		return
	}
	why := printable(err.Error())
	// The reason may begin as the message does.
	why = strings.TrimPrefix(why, "schedule ")
	why = strings.TrimPrefix(why, fmt.Sprintf("%q: ", strings.TrimSpace(expr.value)))
	d.bad(expr, hint, "%s", why)
}

func (d *decoder) checkJitter() {
	j := d.job
	jitter := j.at["jitter"]
	if !jitter.ok() || j.Jitter == 0 {
		return
	}
	if j.Schedule != nil && j.Jitter >= time.Second && !j.unset(whenKeys...) { // no schedule ticks more often than that
		if gap := j.Schedule.MinGap(); gap > 0 && j.Jitter >= gap {
			d.bad(jitter, "", "must be shorter than the smallest distance of two ticks, %s", shortDuration(gap))
		}
	}
	if dl := j.at["startingDeadline"]; dl.ok() && j.StartingDeadline > 0 && j.StartingDeadline <= j.Jitter {
		d.bad(dl, "", "must be longer than %s, which already delays a tick by that much", jitter.label)
	}
}

func (d *decoder) checkBackoff() {
	j := d.job
	backoff, longest := j.at["retry.backoff"], j.at["retry.maxBackoff"]
	switch {
	case j.Retry.MaxBackoff >= j.Retry.Backoff, j.unset("retry.backoff", "retry.maxBackoff"):
	case longest.ok():
		d.bad(longest, "", "must be at least retry.backoff, %s", shortDuration(j.Retry.Backoff))
	default:
		d.bad(backoff, "set retry.maxBackoff too", "must be at most retry.maxBackoff, %s", shortDuration(j.Retry.MaxBackoff))
	}
}

// checkRoomToRenew asks that a renewal, which begins every third of the ttl, can fail by its timeout and still be
// tried again before the lock ends.
func (d *decoder) checkRoomToRenew() {
	j := d.job
	if ttl := j.at["lock.ttl"]; ttl.ok() && !ttl.common && d.table.Redis.Timeout > j.Lock.TTL/3 && d.table.Unknown["redis.timeout"] == "" {
		d.shortTTL(ttl)
	}
}

// checkDefaultRoom does the same once for all jobs that do not set their own ttl.
func (d *decoder) checkDefaultRoom() {
	if d.table.Redis.Timeout <= d.base.Lock.TTL/3 || d.base.unset("lock.ttl") || d.table.Unknown["redis.timeout"] != "" {
		return
	}
	if ttl := d.base.at["lock.ttl"]; ttl.ok() {
		d.scope = "defaults: "
		d.shortTTL(ttl)
		d.scope = ""
	} else if d.redisTimeout.ok() {
		d.bad(d.redisTimeout, "", "must be at most a third of lock.ttl (%s by default), "+
			"so that a lost renewal can be repeated in time", shortDuration(d.base.Lock.TTL))
	}
}

func (d *decoder) shortTTL(ttl text) {
	timeout := "redis.timeout (500ms by default)"
	if d.redisTimeout.ok() {
		timeout = d.redisTimeout.label
	}
	d.bad(ttl, "", "must be at least three times %s, so that a lost renewal can be repeated in time", timeout)
}

func (d *decoder) checkRemote() {
	j := d.job
	if url := j.at["http.url"]; url.ok() && !j.AllowRemote && !isLocal(j.HTTP.URL) && !j.unset("allowRemote") {
		hint := "if the job is meant to call another host, give it allowRemote: true"
		if d.of.api {
			hint = "only a job of the table can call another host"
		}
		d.bad(url, hint, "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket")
	}
}

// checkEffect warns of keys that the job's other keys make meaningless.
func (d *decoder) checkEffect() {
	j := d.job
	for _, k := range []string{"lock", "concurrencyPolicy", "missed", "startRetries"} {
		if j.own(k) && j.Guarantee == EveryReplica {
			d.warn(j.at[k].node, "", "%s has no effect: with guarantee every-replica there is no lock", k)
		}
	}
	if j.own("allowRemote") && j.Exec != nil && j.HTTP == nil {
		d.warn(j.at["allowRemote"].node, "", "allowRemote has no effect on exec")
	}
	if j.own("retry.on") && j.Exec != nil && j.HTTP == nil {
		d.warn(j.at["retry.on"].node, "", "retry.on has no effect on exec: a command is tried again after any exit code other than 0")
	}
	if j.Reserved && d.table.MaxRunning == 0 && d.table.Unknown["maxRunning"] == "" {
		d.warn(j.at["reserved"].node, "", "reserved has no effect: without maxRunning every job has room")
	}
}

var nameSyntax = regexp.MustCompile(nameForm.pattern)

// identifier reads the name of a service or job.
func (d *decoder) identifier(e entry, to *string) text {
	t := d.text(e)
	if !t.ok() {
		return text{}
	}
	if why, hint := checkName(t.value); why != "" {
		if t.opaque {
			hint = ""
		}
		d.bad(t, hint, "%s", why)
		return text{}
	}
	*to = t.value
	d.noteText(e, t)
	return t
}

// IsName says whether a service or job can have that name.
func IsName(name string) bool {
	why, _ := checkName(name)
	return why == ""
}

// checkName says what is wrong with the name of a service or job, and what to write instead.
func checkName(name string) (why, hint string) {
	switch {
	case len(name) > nameForm.length:
		return fmt.Sprintf("must have at most %d characters", nameForm.length), ""
	case !nameSyntax.MatchString(name):
		better := strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-"), "-.")
		if nameSyntax.MatchString(better) {
			hint = fmt.Sprintf("write %q", better)
		}
		return "must be lower-case letters, digits, - and ., and begin and end with a letter or digit", hint
	}
	return "", ""
}

func (d *decoder) name(e entry) {
	t := d.identifier(e, &d.job.Name)
	if !t.ok() {
		return
	}
	if line, taken := d.names[t.value]; taken {
		d.bad(t, "", "there is a job of that name already, in line %d", line)
		return
	}
	d.names[t.value] = t.node.Line
}

func (d *decoder) schedule(e entry) {
	t := d.text(e)
	if t.ok() && strings.TrimSpace(t.value) == "" {
		d.bad(t, `write five fields, "0 9 * * MON-FRI", or @hourly, @every 30s, …`, "must not be empty")
		return
	}
	d.noteText(e, t)
}

// timeZone is checked by itself, so that its problem points at it and not at the schedule.
func (d *decoder) timeZone(e entry) {
	const form = "write an IANA name, as UTC or Europe/Berlin"
	t := d.text(e)
	if !t.ok() {
		return
	}
	if isZone(t.value) {
		d.job.TimeZone = t.value
		d.noteText(e, t)
		return
	}
	hint := form
	if near := nearestZone(t.value); near != "" && !t.opaque {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if fixed := offsetZone(t.value); fixed != "" && !t.opaque {
		hint = fmt.Sprintf("write %s, with the sign reversed; or a place such as Europe/Berlin, for daylight saving", fixed)
	}
	switch {
	case strings.EqualFold(t.value, "local") && !t.opaque:
		d.bad(t, form, "means another zone on each machine")
	default:
		d.bad(t, hint, "there is no such time zone")
	}
}

// nearestZone finds a zone written in another case or with a space; "" when there is none.
func nearestZone(name string) string {
	titled := []rune(strings.ToLower(strings.TrimSpace(name)))
	for i, r := range titled {
		if r == ' ' {
			titled[i] = '_'
		}
		if i == 0 || titled[i-1] == '/' || titled[i-1] == '_' || titled[i-1] == '-' {
			titled[i] = []rune(strings.ToUpper(string(titled[i])))[0]
		}
	}
	for _, try := range []string{string(titled), strings.ToUpper(string(titled))} {
		if isZone(try) && try != "LOCAL" {
			return try
		}
	}
	return ""
}

func isZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && name != "Local"
}

func (d *decoder) ttl(e entry) {
	d.duration(e, &d.job.Lock.TTL, func(v time.Duration) string {
		if v <= LockMargin {
			return "must be longer than 1s: a replica stops trusting its lock that long before it ends"
		}
		return between(0, maxTTL)(v)
	})
}
