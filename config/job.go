package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

const (
	// LockMargin is how long before the end of a lock its replica stops trusting it. With a ttl of at most this, a
	// replica would never trust its lock. Package lock owns the value; config repeats it because it does not import
	// lock.
	LockMargin = time.Second

	// maxTTL bounds how long a job can stand still after its replica died.
	maxTTL = time.Hour

	mostRunning = 10_000

	mostStartRetries = 100
	mostConcurrency  = 1000
	mostPriority     = 100

	maxRetries = 100
	maxBackoff = 24 * time.Hour
)

// defaultJob returns a job with all defaults.
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

func (d *decoder) defaults(e strict.Entry) {
	d.job, d.Scope = &d.base, "defaults: "
	if e.IsNull() || e.Value.Kind == yaml.MappingNode {
		e.Path = "" // the scope says where
		d.Mapping(e)
	} else {
		d.Scope = ""
		d.WrongKind(e)
	}
	for path, t := range d.base.at {
		t.Origin = fromDefaults
		d.base.at[path] = t
	}
	d.job, d.Scope = nil, ""
}

func (d *decoder) jobs(e strict.Entry) {
	items, ok := d.List(e)
	if ok && len(items) == 0 && (e.IsNull() || len(e.Value.Content) == 0) {
		d.Warn(e.At, "", "jobs is empty: nothing will run")
	}
	if !ok || len(items) < len(e.Value.Content) {
		d.broken("")
	}
	d.table.Jobs = slices.Grow(d.table.Jobs, len(items))
	for i, item := range items {
		d.job = d.base.clone()
		d.Scope = fmt.Sprintf("jobs[%d]: ", i)
		if name := d.nameOf(item); name != "" {
			d.Scope = fmt.Sprintf("job %s: ", strict.Quoted(name))
		}
		item.Path, item.Kind = "", strict.KindMapping
		switch {
		case item.IsNull():
			d.Fail(item.At, "", "this job is empty")
			d.broken("")
		case item.Value.Kind != yaml.MappingNode:
			d.Fail(item.Value, "write its keys: name, schedule, and http or exec",
				"a job must be a mapping, not %s", strict.KindOf(item.Value))
			d.broken("")
		default:
			before := len(d.Problems)
			found := d.Mapping(item)
			d.finishJob(item.Value, found)
			if len(d.Problems) == before {
				d.table.Jobs = append(d.table.Jobs, d.job.Job)
			} else {
				d.broken(d.job.Name)
			}
		}
	}
	d.job, d.Scope = nil, ""
}

// broken keeps the name of a job that has problems, for callers that run no jobs: replicas may run this job, and it can
// be paused. The name is "" if it cannot be read either.
func (d *decoder) broken(name string) {
	if d.Rules.Unset != nil && (name == "" || !slices.ContainsFunc(d.table.Jobs, func(j Job) bool { return j.Name == name })) {
		d.table.Jobs = append(d.table.Jobs, Job{Name: name})
	}
}

// nameOf returns a job's name as it was written, so that every message about the job can begin with it.
func (d *decoder) nameOf(job strict.Entry) string {
	if job.Value.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(job.Value.Content); i += 2 {
		if name, val := job.Value.Content[i], strict.Resolved(job.Value.Content[i+1]); name.Value == "name" {
			if val.Kind == yaml.ScalarNode && val.Tag == "!!str" && !d.IsHidden(val) {
				return val.Value
			}
		}
	}
	return ""
}

// finishJob makes the checks that need the whole job.
func (d *decoder) finishJob(n *yaml.Node, found map[string]*yaml.Node) {
	for _, k := range []string{"name", "schedule"} {
		if found[k] == nil {
			d.Fail(n, "", "%s is missing", k)
		}
	}
	switch h, x := found["http"], found["exec"]; {
	case h == nil && x == nil:
		d.Fail(n, "give it http (a request) or exec (a command)", "nothing to run")
	case strict.Present(h) && strict.Present(x):
		later := h
		if x.Line > h.Line || x.Line == h.Line && x.Column > h.Column {
			later = x
		}
		d.Fail(later, "a job has one of them; make two jobs of it", "both http and exec are set")
	}
	d.checkJob()
}

func (d *decoder) checkJob() {
	d.finishSchedule()
	d.checkJitter()
	d.checkBackoff()
	d.checkRoomToRenew()
	d.checkRemote()
	d.checkCredentials()
	d.checkAsync()
	d.checkResources()
	d.checkEffect()
	d.finishChange()
	d.odd()
	d.job.Fingerprint = d.job.fingerprint()
	d.job.Content = d.job.content()
	if d.job.unset(whenKeys...) {
		d.job.Schedule = nil // its ticks are not known
	}
}

// whenKeys are the keys that ticks depend on.
var whenKeys = []string{"name", "schedule", "timeZone", "start", "end", "every.weeks", "every.days", "every.from", "exclude", "include", "onExcluded"}

// finishSchedule parses the schedule when zone and window are known.
func (d *decoder) finishSchedule() {
	j := d.job
	if end := j.at["end"]; end.OK() && !j.Start.IsZero() && !j.End.After(j.Start) {
		d.Bad(end, "", "must be after %s", j.at["start"].Label)
		j.Start, j.End = time.Time{}, time.Time{}
	}
	expr := j.at["schedule"]
	rules, known := d.finishDays()
	if !expr.OK() || !known {
		return
	}
	o := schedule.Options{TimeZone: j.TimeZone, Job: j.Name, Start: j.Start, End: j.End, Rules: rules}
	s, err := d.parseSchedule(o)
	if err != nil {
		if one := d.wrongExpression(o); one.OK() {
			expr = one
		}
		opaque := slices.ContainsFunc(j.exprs, func(t strict.Text) bool { return t.Opaque })
		for _, k := range whenKeys[2:] {
			opaque = opaque || j.at[k].Opaque
		}
		opaque = opaque || j.at["name"].Opaque
		hint := ""
		if !opaque && expr.Value != "" {
			hint = ScheduleHint(expr.Value, o)
		}
		d.badSchedule(expr, err, hint, opaque)
		return
	}
	j.Schedule = s
	if s.Next(d.now).IsZero() && !j.unset(whenKeys...) {
		d.Warn(expr.Node, "", "%s: its last tick has passed, it will not run again", expr.Label)
	}
}

// badSchedule records why a schedule is invalid. It leaves out the reason if the schedule has a variable, because the
// reason repeats parts of the value.
func (d *decoder) badSchedule(expr strict.Text, err error, hint string, opaque bool) {
	if opaque {
		d.Bad(expr, "put the value in place of the variable to see why",
			"with its variables filled in, this is not a valid schedule")
		return
	}
	why := strict.Printable(err.Error())
	// The reason may begin like the message.
	why = strings.TrimPrefix(why, "schedule ")
	why = strings.TrimPrefix(why, fmt.Sprintf("%q: ", strings.TrimSpace(expr.Value)))
	d.Bad(expr, hint, "%s", why)
}

func (d *decoder) checkJitter() {
	j := d.job
	jitter := j.at["jitter"]
	if !jitter.OK() || j.Jitter == 0 {
		return
	}
	if j.Schedule != nil && j.Jitter >= time.Second && !j.unset(whenKeys...) { // no schedule ticks more often than that
		if gap := j.Schedule.MinGap(); gap > 0 && j.Jitter >= gap {
			d.Bad(jitter, "", "must be shorter than the period, %s (the shortest time between two ticks)", strict.ShortDuration(gap))
		}
	}
	if dl := j.at["startingDeadline"]; dl.OK() && j.StartingDeadline > 0 && j.StartingDeadline <= j.Jitter {
		d.Bad(dl, "", "must be longer than %s, which already delays a tick by that much", jitter.Label)
	}
}

func (d *decoder) checkBackoff() {
	j := d.job
	backoff, longest := j.at["retry.backoff"], j.at["retry.maxBackoff"]
	switch {
	case j.Retry.MaxBackoff >= j.Retry.Backoff, j.unset("retry.backoff", "retry.maxBackoff"):
	case longest.OK():
		d.Bad(longest, "", "must be at least retry.backoff, %s", strict.ShortDuration(j.Retry.Backoff))
	default:
		d.Bad(backoff, "set retry.maxBackoff too", "must be at most retry.maxBackoff, %s", strict.ShortDuration(j.Retry.MaxBackoff))
	}
}

// checkRoomToRenew checks that a replica can repeat a lost renewal before the lock ends. A renewal begins every third
// of the ttl and can last until its timeout.
func (d *decoder) checkRoomToRenew() {
	j := d.job
	if ttl := j.at["lock.ttl"]; ttl.OK() && ttl.Origin == "" && d.table.Redis.Timeout > j.Lock.TTL/3 && d.table.Unknown["redis.timeout"] == "" {
		d.shortTTL(ttl)
	}
}

// checkDefaultRoom does the same, once, for all jobs without a ttl of their own.
func (d *decoder) checkDefaultRoom() {
	if d.table.Redis.Timeout <= d.base.Lock.TTL/3 || d.base.unset("lock.ttl") || d.table.Unknown["redis.timeout"] != "" {
		return
	}
	if ttl := d.base.at["lock.ttl"]; ttl.OK() {
		d.Scope = "defaults: "
		d.shortTTL(ttl)
		d.Scope = ""
	} else if d.redisTimeout.OK() {
		d.Bad(d.redisTimeout, "", "must be at most a third of lock.ttl (%s by default), "+
			"so that a lost renewal can be repeated in time", strict.ShortDuration(d.base.Lock.TTL))
	}
}

func (d *decoder) shortTTL(ttl strict.Text) {
	timeout := "redis.timeout (500ms by default)"
	if d.redisTimeout.OK() {
		timeout = d.redisTimeout.Label
	}
	d.Bad(ttl, "", "must be at least three times %s, so that a lost renewal can be repeated in time", timeout)
}

func (d *decoder) checkRemote() {
	j := d.job
	if url := j.at["http.url"]; url.OK() && !j.AllowRemote && !isLocal(j.HTTP.URL) && !j.unset("allowRemote") {
		toy := isToy(j.HTTP.URL)
		if toy && d.table.Redis.URL == Embedded {
			return
		}
		hint := "if the job is meant to call another host, give it allowRemote: true"
		if d.Subject.Literal {
			hint = "only a job of the table can call another host"
		}
		if toy {
			hint = "the toy app at http://embedded goes with redis.url: embedded alone"
		}
		d.Bad(url, hint, "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket")
	}
}

// checkEffect warns of keys that have no effect because of the job's other keys.
func (d *decoder) checkEffect() {
	j := d.job
	for _, k := range []string{"lock", "concurrencyPolicy", "concurrency", "missed", "startRetries", "notify.change"} {
		if j.own(k) && j.Guarantee == EveryReplica {
			d.Warn(j.at[k].Node, "", "%s has no effect: with guarantee every-replica there is no lock", k)
		}
	}
	if j.own("trigger") && j.Guarantee == EveryReplica {
		d.Warn(j.at["trigger"].Node, "", "trigger has no effect: a job with guarantee every-replica cannot be triggered")
	}
	if j.own("concurrency") && j.ConcurrencyPolicy != Allow && j.Guarantee != EveryReplica && !j.unset("concurrencyPolicy") {
		d.Warn(j.at["concurrency"].Node, "give the job concurrencyPolicy: Allow", "concurrency has no effect: under %s one run lives at a time", j.ConcurrencyPolicy)
	}
	if j.own("allowRemote") && j.Exec != nil && j.HTTP == nil {
		d.Warn(j.at["allowRemote"].Node, "", "allowRemote has no effect on exec")
	}
	if j.own("retry.on") && j.Exec != nil && j.HTTP == nil {
		d.Warn(j.at["retry.on"].Node, "", "retry.on has no effect on exec: a command is tried again after any exit code other than 0")
	}
	if j.Reserved && d.table.MaxRunning == 0 && d.table.Unknown["maxRunning"] == "" {
		d.Warn(j.at["reserved"].Node, "", "reserved has no effect: without maxRunning every job has room")
	}
	if j.own("priority") && d.table.MaxRunning == 0 && d.table.Unknown["maxRunning"] == "" {
		d.Warn(j.at["priority"].Node, "", "priority has no effect: without maxRunning no tick waits for a slot")
	}
}

var nameSyntax = regexp.MustCompile(nameForm.Pattern)

// identifier reads the name of a service or job.
func (d *decoder) identifier(e strict.Entry, to *string) strict.Text {
	t := d.Text(e)
	if !t.OK() {
		return strict.Text{}
	}
	if why, hint := checkName(t.Value); why != "" {
		if t.Opaque {
			hint = ""
		}
		d.Bad(t, hint, "%s", why)
		return strict.Text{}
	}
	*to = t.Value
	d.note(e, t)
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
	case len(name) > nameForm.Length:
		return fmt.Sprintf("must have at most %d characters", nameForm.Length), ""
	case !nameSyntax.MatchString(name):
		better := strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-"), "-.")
		if nameSyntax.MatchString(better) {
			hint = fmt.Sprintf("write %q", better)
		}
		return "must be lower-case letters, digits, - and ., and begin and end with a letter or digit", hint
	}
	return "", ""
}

func (d *decoder) name(e strict.Entry) {
	t := d.identifier(e, &d.job.Name)
	if !t.OK() {
		return
	}
	if other, taken := d.names[t.Value]; taken {
		d.Bad(t, "", "there is a job of that name already, in %s", d.Place(other, t.Node))
		return
	}
	d.names[t.Value] = t.Node
}

// timeZone checks the zone on its own, so that its problem points at it and not at the schedule.
func (d *decoder) timeZone(e strict.Entry) {
	if t := d.Text(e); t.OK() && d.isZone(t) {
		d.job.TimeZone = t.Value
		d.note(e, t)
	}
}

// isZone tells whether a text is a zone, and records the problem if it is none.
func (d *decoder) isZone(t strict.Text) bool {
	const form = "write an IANA name, as UTC or Europe/Berlin"
	if isZone(t.Value) {
		return true
	}
	hint := form
	if near := nearestZone(t.Value); near != "" && !t.Opaque {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if fixed := offsetZone(t.Value); fixed != "" && !t.Opaque {
		hint = fmt.Sprintf("write %s, with the sign reversed; or a place such as Europe/Berlin, for daylight saving", fixed)
	}
	switch {
	case strings.EqualFold(t.Value, "local") && !t.Opaque:
		d.Bad(t, form, "means another zone on each machine")
	default:
		d.Bad(t, hint, "there is no such time zone")
	}
	return false
}

// nearestZone finds a zone written in another case, with a space, or without its region; "" when there is none.
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
	tries := []string{string(titled), strings.ToUpper(string(titled))}
	for _, region := range strings.Fields("Europe America Asia Africa Australia Pacific Atlantic") {
		tries = append(tries, region+"/"+string(titled))
	}
	for _, try := range tries {
		if isZone(try) && try != "LOCAL" {
			return try
		}
	}
	return ""
}

func isZone(name string) bool { return name != "" && name != "Local" && schedule.IsZone(name) }

func (d *decoder) ttl(e strict.Entry) {
	d.Duration(e, &d.job.Lock.TTL, func(v time.Duration) string {
		if v <= LockMargin {
			return "must be longer than 1s: a replica stops trusting its lock that long before it ends"
		}
		return strict.Between(0, maxTTL)(v)
	})
}
