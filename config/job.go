package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
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

func (d *decoder) defaults(_ *strict.Decoder, e strict.Entry) {
	if d.begin(ofDefaults); e.IsMapping() {
		d.draft.common = true
		e.Path = "" // the scope says where
		d.Mapping(e)
	} else {
		d.Scope = ""
		d.WrongKind(e)
	}
	for path, t := range d.draft.at {
		t.Origin = fromDefaults
		d.draft.at[path] = t
	}
	d.base = d.draft
	d.job, d.Scope = nil, ""
}

func (d *decoder) jobs(_ *strict.Decoder, e strict.Entry) {
	items, ok := d.List(e)
	if ok && len(items) == 0 && (e.IsNull() || len(e.Value.Content) == 0) {
		d.Warn(e.At, "", "jobs is empty: nothing will run")
	}
	if !ok || len(items) < len(e.Value.Content) {
		d.broken("")
	}
	d.table.Jobs = slices.Grow(d.table.Jobs, len(items))
	for i, item := range items {
		d.begin(fmt.Sprintf("jobs[%d]: ", i))
		if name := d.nameOf(item); name != "" {
			d.Scope = fmt.Sprintf("job %s: ", strict.Quoted(name))
		}
		item.Path, item.Kind = "", strict.KindMapping
		switch {
		case item.IsNull():
			d.Fail(item.At, "", "this job is empty")
			d.broken("")
		case item.Value.Kind != yaml.MappingNode:
			d.Fail(item.Value, "write its keys: name, schedule, and http, exec or claim",
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
	if d.Rules.Unset != nil &&
		(name == "" || !slices.ContainsFunc(d.table.Jobs, func(j Job) bool { return j.Name == name })) {
		d.table.Jobs = append(d.table.Jobs, Job{Name: name})
	}
}

// nameOf returns a job's name as it was written, so that every message about the job can begin with it.
func (d *decoder) nameOf(job strict.Entry) string {
	if job.Value.Kind != yaml.MappingNode {
		return ""
	}
	val := valueOf(job.Value, "name")
	if val == nil || val.Kind != yaml.ScalarNode || val.Tag != "!!str" || d.IsHidden(val) {
		return ""
	}
	return val.Value
}

// finishJob makes the checks that need the whole job.
func (d *decoder) finishJob(n *yaml.Node, found map[string]*yaml.Node) {
	for _, k := range []string{"name", "schedule"} {
		if found[k] == nil {
			d.Fail(n, "", "%s is missing", k)
		}
	}
	if t := d.job.at["name"]; t.OK() {
		if other, taken := d.names[t.Value]; taken {
			d.Bad(t, "", "there is a job of that name already, in %s", d.Place(other, t.Node))
		} else {
			d.names[t.Value] = t.Node
		}
	}
	ways := slices.DeleteFunc([]string{"http", "exec", "claim"}, func(k string) bool { return found[k] == nil })
	switch {
	case len(ways) == 0:
		d.Fail(n, "give it http (a request), exec (a command) or claim (the app runs it)", "nothing to run")
	case len(ways) > 1 && strict.Present(found[ways[0]]) && strict.Present(found[ways[1]]):
		d.Fail(later(found[ways[0]], found[ways[1]]), "a job has one of them; make two jobs of it",
			"both %s and %s are set", ways[0], ways[1])
	}
	d.checkJob()
	odd(d.Decoder, d.job)
	d.job.Fingerprint = d.job.fingerprint()
	if d.job.unset(whenKeys...) {
		d.job.Schedule = nil // its ticks are not known
	}
	d.job.Content = d.job.content()
}

func (d *decoder) checkJob() {
	d.finishSchedule()
	d.checkJitter()
	d.checkBackoff()
	d.checkRoomToRenew()
	d.checkRemote()
	checkTLS(d.Decoder, d.job)
	checkSigned(d.Decoder, d.job)
	checkAsync(d.Decoder, d.job, d.table)
	checkClaim(d.Decoder, d.job)
	d.checkEffect()
	if d.job.Guarantee == EveryReplica { // its runs are in nobody's way, and no answer of Redis tells of a change
		d.job.ConcurrencyPolicy, d.job.Concurrency, d.job.Change = Allow, 0, Change{}
	} else {
		checkHeartbeat(d.Decoder, d.job)
	}
	d.job.finishChange()
}

// whenKeys are the keys that ticks depend on.
var whenKeys = []string{"name", "schedule", "timeZone", "start", "end", "every.weeks", "every.days", "every.from",
	"exclude", "include", "onExcluded"}

// finishSchedule parses the schedule when zone and window are known.
func (d *decoder) finishSchedule() {
	j := d.job
	if end := j.at["end"]; end.OK() && !j.Start.IsZero() && !j.End.After(j.Start) {
		d.Bad(end, "", "must be after %s", j.at["start"].Label)
		j.Start, j.End = time.Time{}, time.Time{}
	}
	expr := j.at["schedule"]
	rules, known := finishDays(d.Decoder, j, d.calendars)
	if !expr.OK() || !known {
		return
	}
	o := schedule.Options{TimeZone: j.TimeZone, Job: j.Name, Start: j.Start, End: j.End, Rules: rules}
	var exprs []string
	for _, t := range j.exprs {
		exprs = append(exprs, t.Value)
	}
	s, err := d.schedules.ParseAll(exprs, o)
	if err != nil {
		isWrong := func(t strict.Text) bool { // by itself, whatever the window and the rules are
			_, err := schedule.Parse(t.Value, schedule.Options{TimeZone: o.TimeZone, Job: o.Job})
			return err != nil
		}
		if i := slices.IndexFunc(j.exprs, isWrong); i >= 0 && len(j.exprs) > 1 {
			expr = j.exprs[i]
		}
		opaque := slices.ContainsFunc(j.exprs, func(t strict.Text) bool { return t.Opaque }) ||
			slices.ContainsFunc(whenKeys, func(key string) bool { return j.at[key].Opaque })
		d.badSchedule(expr, err, o, opaque)
		return
	}
	j.Schedule = s
	if s.IsLease() && j.Claim == nil {
		hint := "give it claim: {}"
		if d.Subject.Literal { // a timer has none
			hint = "put a job that needs it into the table"
		}
		d.Bad(expr, hint, "is for a job with claim: an app asks for it")
	}
	if s.Next(d.now).IsZero() && !s.IsLease() && !j.unset(whenKeys...) {
		d.Warn(expr.Node, "", "%s: its last tick has passed, it will not run again", expr.Label)
	}
}

// badSchedule records why a schedule is invalid. It leaves out the reason if the schedule has a variable, because the
// reason repeats parts of the value.
func (d *decoder) badSchedule(expr strict.Text, err error, o schedule.Options, opaque bool) {
	if opaque {
		d.Bad(expr, "put the value in place of the variable to see why",
			"with its variables filled in, this is not a valid schedule")
		return
	}
	why := strict.Printable(err.Error())
	// The reason may begin like the message.
	why = strings.TrimPrefix(why, "schedule ")
	why = strings.TrimPrefix(why, fmt.Sprintf("%q: ", strings.TrimSpace(expr.Value)))
	d.Bad(expr, ScheduleHint(expr.Value, o), "%s", why)
}

func (d *decoder) checkJitter() {
	j := d.job
	jitter := j.at["jitter"]
	if !jitter.OK() || j.Jitter == 0 {
		return
	}
	if j.Schedule != nil && j.Jitter >= time.Second && !j.unset(whenKeys...) { // no schedule ticks more often than that
		if gap := j.Schedule.MinGap(); gap > 0 && j.Jitter >= gap {
			d.Bad(jitter, "", "must be shorter than the period, %s (the shortest time between two ticks)",
				strict.ShortDuration(gap))
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
		d.Bad(backoff, "set retry.maxBackoff too",
			"must be at most retry.maxBackoff, %s", strict.ShortDuration(j.Retry.MaxBackoff))
	}
}

// checkRoomToRenew checks that a replica can repeat a lost renewal before the lock ends. A renewal begins every third
// of the ttl and can last until its timeout.
func (d *decoder) checkRoomToRenew() {
	j := d.job
	if ttl := j.at["lock.ttl"]; ttl.OK() && ttl.Origin == "" &&
		d.table.Redis.Timeout > j.Lock.TTL/3 && d.table.Unknown["redis.timeout"] == "" {
		d.shortTTL(ttl)
	}
}

// checkDefaultRoom does the same, once, for all jobs without a ttl of their own.
func (d *decoder) checkDefaultRoom() {
	if d.table.Redis.Timeout <= d.base.Lock.TTL/3 || d.base.unset("lock.ttl") ||
		d.table.Unknown["redis.timeout"] != "" {
		return
	}
	if ttl := d.base.at["lock.ttl"]; ttl.OK() {
		d.Scope = "defaults: "
		d.shortTTL(ttl)
		d.Scope = ""
	} else if timeout := d.at["redis.timeout"]; timeout.OK() {
		d.Bad(timeout, "", "must be at most a third of lock.ttl (%s by default), "+
			"so that a lost renewal can be repeated in time", strict.ShortDuration(d.base.Lock.TTL))
	}
}

func (d *decoder) shortTTL(ttl strict.Text) {
	timeout := "redis.timeout (500ms by default)"
	if own := d.at["redis.timeout"]; own.OK() {
		timeout = own.Label
	}
	d.Bad(ttl, "", "must be at least three times %s, so that a lost renewal can be repeated in time", timeout)
}

func (d *decoder) checkRemote() {
	j := d.job
	if url := j.at["http.url"]; url.OK() && !j.AllowRemote && !isLocal(j.HTTP.URL) && !j.unset("allowRemote") {
		hint := "if the job is meant to call another host, give it allowRemote: true"
		if d.Subject.Literal {
			hint = "only a job of the table can call another host"
		}
		d.Bad(url, hint, "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket")
	}
}

// checkEffect warns of keys that have no effect because of the job's other keys.
func (d *decoder) checkEffect() {
	j := d.job
	everywhere, isExec := j.Guarantee == EveryReplica, j.Exec != nil && j.HTTP == nil
	unlimited := d.table.MaxRunning == 0 && d.table.Unknown["maxRunning"] == ""
	warn := func(is bool, key, hint, why string) {
		if is && j.own(key) {
			d.Warn(j.at[key].Node, hint, "%s has no effect%s", key, why)
		}
	}
	for _, k := range []string{"lock", "concurrencyPolicy", "concurrency", "missed", "startRetries", "notify.change"} {
		warn(everywhere, k, "", ": with guarantee every-replica there is no lock")
	}
	warn(!everywhere && j.ConcurrencyPolicy != Allow && !j.unset("concurrencyPolicy"), "concurrency",
		"give the job concurrencyPolicy: Allow",
		": under "+string(j.ConcurrencyPolicy)+" one run lives at a time")
	warn(isExec, "allowRemote", "", " on exec")
	warn(isExec, "retry.on", "", " on exec: a command is tried again after any exit code other than 0")
	warn(unlimited && j.Reserved, "reserved", "", ": without maxRunning every job has room")
	warn(unlimited, "priority", "", ": without maxRunning no tick waits for a slot")
}

// draft is a job that is being read, with the places of its values.
type draft struct {
	Job
	common  bool                   // it is what defaults says
	at      map[string]strict.Text // by path
	missing []string               // paths of the values that have an unset variable
	exprs   []strict.Text          // of the schedule
}

// fromDefaults marks the values of a job that come from defaults.
const fromDefaults = " (from defaults)"

// own reports whether the job itself sets a key.
func (j *draft) own(path string) bool {
	t, ok := j.at[path]
	return ok && t.OK() && t.Origin == ""
}

// unset reports whether one of the values, or an item of it, has an unset variable. Checks that compare such values are
// skipped.
func (j *draft) unset(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return slices.ContainsFunc(j.missing, within(path)) })
}

// within reports whether a path is another one, or an item of it.
func within(path string) func(string) bool {
	return func(p string) bool { return p == path || strings.HasPrefix(p, path+"[") }
}
