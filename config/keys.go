package config

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// key describes one key of the table. This one description decodes the key, masks its value, gives the hints for its
// misspellings, makes the JSON Schema and is what docs/table.md is checked against, so that none of them can know a key
// that another does not.
type key struct {
	name    string
	kind    string     // what stands there, in words: "duration"
	def     string     // the default as one would write it, or "required", or a word for what happens without it
	doc     string     // one line
	example string     // a value; mappings have the examples of their keys
	show    visibility // what of the value is no secret
	common  bool       // may stand under defaults too
	aka     []string   // what it is called elsewhere, for hints
	keys    []key      // the keys of a mapping, or of each mapping in a list
	form    form       // what a good value looks like
	decode  func(d *decoder, e entry)
}

// Kinds of values, as the user reads them.
const (
	kindText     = "text"
	kindDuration = "duration"
	kindNumber   = "number"
	kindBool     = "true or false"
	kindTime     = "time"
	kindMapping  = "mapping"
	kindTextMap  = "mapping of text"
	kindTextList = "list of text"
	kindCodes    = "list of codes"
	kindJobs     = "list of jobs"
	kindBytes    = "number of bytes"
	required     = "required"
	none         = "none"
)

var (
	describe  sync.Once
	described []key
)

// tableKeys are the keys at the top level. They are described at the first use, because decoding needs the description
// and the description names what decodes: as a plain variable it would need itself.
func tableKeys() []key {
	describe.Do(func() { described = describeTable() })
	return described
}

func describeTable() []key {
	return []key{
		{name: "service", kind: kindText, def: required, example: "billing", form: nameForm,
			show: shown, decode: (*decoder).service,
			doc: "names the group of replicas that share the locks; written like the name of a job"},
		{name: "redis", kind: kindMapping, def: none, keys: redisKeys(),
			form: form{choice: []string{"url", "sentinel", "cluster"}}, decode: (*decoder).redis,
			doc: "the server that holds the locks; without it, name one with `--redis`"},
		{name: "listen", kind: kindText, def: `":9747"`, example: `"127.0.0.1:9747"`, form: listenForm,
			show: shown, aka: []string{"port", "addr", "metrics"},
			decode: (*decoder).listen,
			doc:    "address of `/metrics`, `/healthz` and `/readyz`; `\"\"` switches them off"},
		{name: "admin", kind: kindText, def: `"127.0.0.1:9748"`, example: `"127.0.0.1:0"`, form: adminForm,
			show: shown, aka: []string{"api", "dashboard"},
			decode: (*decoder).admin,
			doc:    "address of the status page and the API, on this machine alone; `\"\"` switches them off"},
		{name: "clock", kind: kindText, def: "redis", example: "local",
			show:   shown,
			form:   words("redis", "local"),
			decode: func(d *decoder, e entry) { oneOf(d, e, &d.table.Clock) },
			doc:    "whose time the replicas follow: `redis`, the server's, or `local`, each its own"},
		{name: "shutdownGrace", kind: kindDuration, def: "25s", example: "1m",
			show:   shown,
			aka:    []string{"gracePeriod", "terminationGracePeriodSeconds"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.table.ShutdownGrace, atLeast(0)) },
			doc:    "how long running jobs may go on after SIGTERM before they are cancelled"},
		{name: "maxRunning", kind: kindNumber, def: "0", example: "4",
			show: shown, aka: []string{"parallelism", "maxParallel", "concurrency"},
			decode: func(d *decoder, e entry) { d.number(e, &d.table.MaxRunning) },
			form:   form{most: mostRunning},
			doc:    "runs at once on one replica, at most 10000; a replica that is full leaves ticks to the others; `0` = no limit"},
		{name: "ready", kind: kindMapping, def: none, keys: readyKeys(),
			form: form{choice: []string{"url", "tcp", "exec"}, chosen: true}, decode: (*decoder).ready,
			aka: []string{"readinessProbe", "readiness", "health"},
			doc: "how to ask the app whether it is ready: while it is not, this replica leaves ticks to the others"},
		{name: "defaults", kind: kindMapping, def: none, keys: commonKeys(), decode: (*decoder).defaults,
			doc: "values for all jobs that do not set their own: the keys marked *d* below"},
		{name: "jobs", kind: kindJobs, def: required, keys: jobKeys(),
			form: form{choice: []string{"http", "exec"}, chosen: true}, decode: (*decoder).jobs,
			doc: "the jobs; an empty list is allowed and gives a warning"},
	}
}

func jobKeys() []key {
	return []key{
		{name: "name", kind: kindText, def: required, example: "send-invoices", form: nameForm,
			show: shown, decode: (*decoder).name,
			doc: "lower-case letters, digits, `-` and `.`, at most 63 characters; unique in the table"},
		{name: "schedule", kind: kindText, def: required, example: `"0 9 * * MON-FRI"`, form: filledForm,
			show: shown, aka: []string{"cron", "crontab", "every", "interval"},
			decode: (*decoder).schedule, doc: "when it runs, see [Schedules](#schedules)"},
		{name: "timeZone", kind: kindText, def: "UTC", example: "Europe/Berlin", form: filledForm,
			show: shown, common: true, aka: []string{"tz", "zone", "location"},
			decode: (*decoder).timeZone, doc: "IANA name of the zone that the schedule is in"},
		{name: "http", kind: kindMapping, def: "http or exec", keys: httpKeys(), decode: (*decoder).http,
			doc: "the request that runs the job"},
		{name: "exec", kind: kindMapping, def: "http or exec", keys: execKeys(), decode: (*decoder).exec,
			doc: "the command that runs the job"},
		{name: "allowRemote", kind: kindBool, def: "false", example: "true",
			show: shown, common: true,
			decode: func(d *decoder, e entry) { d.bool(e, &d.job.AllowRemote) },
			doc:    "lets `http.url` and its redirects lead to another host than this one"},
		{name: "timeout", kind: kindDuration, def: "5m", example: "10m",
			show: shown, common: true,
			aka:    []string{"activeDeadlineSeconds", "maxDuration"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.job.Timeout, atLeast(time.Millisecond)) },
			doc:    "a run that takes longer is cancelled"},
		{name: "guarantee", kind: kindText, def: string(AtMostOnce), example: "at-least-once",
			show: shown, common: true,
			form:   words(AtMostOnce, AtLeastOnce, EveryReplica),
			decode: func(d *decoder, e entry) { oneOf(d, e, &d.job.Guarantee) },
			doc:    "`at-most-once`: one replica runs a tick, once; `at-least-once`: again when its run was cut short; `every-replica`: each does, without a lock"},
		{name: "concurrencyPolicy", kind: kindText, def: string(Forbid), example: "Allow",
			show: shown, common: true, aka: []string{"concurrency"},
			form:   words(Forbid, Allow, Replace, Queue),
			decode: func(d *decoder, e entry) { oneOf(d, e, &d.job.ConcurrencyPolicy) },
			doc:    "a tick due while the job still runs: `Forbid` skips it, `Allow` runs it beside, `Replace` ends the run for it, `Queue` lets one wait"},
		{name: "missed", kind: kindText, def: string(Latest), example: "all",
			show: shown, common: true, aka: []string{"catchUp", "misfire", "misfirePolicy"},
			form:   words(Latest, All, Skip),
			decode: func(d *decoder, e entry) { oneOf(d, e, &d.job.Missed) },
			doc:    "ticks that no replica could fire in time: `latest` fires the newest late, `all` the newest and up to a hundred before it, in order, `skip` none"},
		{name: "startingDeadline", kind: kindDuration, def: "0s", example: "1h",
			show: shown, common: true,
			aka:    []string{"startingDeadlineSeconds"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.job.StartingDeadline, atLeast(0)) },
			doc:    "a tick that could not be started within this time is skipped; `0s` = no limit, but five seconds under `missed: skip`"},
		{name: "startRetries", kind: kindNumber, def: "5", example: "10",
			show: shown, common: true, aka: []string{"handovers", "maxHandovers", "startAttempts"},
			decode: func(d *decoder, e entry) { d.number(e, &d.job.StartRetries) },
			form:   form{most: mostStartRetries},
			doc: "further rounds through all replicas when none of them could start a tick, each after a longer wait; " +
				"at most 100; `0` = one round"},
		{name: "retry", kind: kindMapping, def: none, common: true, keys: retryKeys(),
			aka:    []string{"retries", "backoffLimit"},
			decode: func(d *decoder, e entry) { d.note(e); d.mapping(e) },
			doc:    "how failed attempts are repeated, under the same lock; each of its keys falls back to `defaults` alone"},
		{name: "lock", kind: kindMapping, def: "see below", common: true, keys: lockKeys(),
			decode: func(d *decoder, e entry) { d.note(e); d.mapping(e) },
			doc:    "how the job's lock is held; each of its keys falls back to `defaults` alone"},
		{name: "jitter", kind: kindDuration, def: "0s", example: "30s",
			show: shown, common: true, aka: []string{"splay"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.job.Jitter, atLeast(0)) },
			doc:    "delays each tick by up to this, the same on all replicas; shorter than the distance of two ticks"},
		{name: "start", kind: kindTime, def: none, example: "2026-12-01T00:00:00Z",
			show: shownTime, aka: []string{"notBefore", "from"},
			decode: func(d *decoder, e entry) { d.time(e, &d.job.Start) },
			doc:    "no tick before this moment"},
		{name: "end", kind: kindTime, def: none, example: "2027-12-01T00:00:00+01:00",
			show: shown, aka: []string{"notAfter", "until"},
			decode: func(d *decoder, e entry) { d.time(e, &d.job.End) },
			doc:    "no tick at or after this moment"},
		{name: "suspend", kind: kindBool, def: "false", example: "true",
			show: shown, common: true,
			aka:    []string{"enabled", "disabled", "paused"},
			decode: func(d *decoder, e entry) { d.bool(e, &d.job.Suspend) },
			doc:    "true: the job stays in the table and its ticks are skipped"},
		{name: "reserved", kind: kindBool, def: "false", example: "true",
			show: shown, aka: []string{"priority", "critical"},
			decode: func(d *decoder, e entry) { d.bool(e, &d.job.Reserved) },
			doc:    "true: its runs have slots of their own beside `maxRunning`"},
		{name: "resources", kind: kindMapping, def: none, common: true, keys: resourceKeys(),
			aka:    []string{"limits", "rlimits"},
			decode: func(d *decoder, e entry) { d.note(e); d.mapping(e) },
			doc:    "limits of the processes of `exec`; each of its keys falls back to `defaults` alone"},
		{name: "notify", kind: kindMapping, def: none, common: true, keys: notifyKeys(),
			aka:    []string{"ping", "webhook", "healthchecks", "onSuccess", "onFailure"},
			decode: func(d *decoder, e entry) { d.note(e); d.mapping(e) },
			doc:    "URLs that are told how runs go, as a dead man's switch wants it"},
	}
}

func retryKeys() []key {
	return []key{
		{name: "limit", kind: kindNumber, def: "0", example: "3",
			show: shown, common: true, aka: []string{"max", "maxRetries", "attempts"},
			decode: func(d *decoder, e entry) { d.number(e, &d.job.Retry.Limit) },
			form:   form{most: maxRetries},
			doc:    "attempts after the first one, at most 100"},
		{name: "backoff", kind: kindDuration, def: "5s", example: "10s",
			show: shown, common: true, aka: []string{"delay", "wait"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.job.Retry.Backoff, between(time.Millisecond, maxBackoff)) },
			doc:    "wait before the second attempt, doubled before each further one, with some chance in it; `Retry-After` makes it longer"},
		{name: "maxBackoff", kind: kindDuration, def: "1m", example: "5m",
			show: shown, common: true, aka: []string{"maxDelay", "maxWait"},
			decode: func(d *decoder, e entry) {
				d.duration(e, &d.job.Retry.MaxBackoff, between(time.Millisecond, maxBackoff))
			},
			doc: "the longest of these waits, but for `Retry-After`; at most 24h"},
		{name: "on", kind: kindCodes, def: "[408, 425, 429, 500-599]", example: "[408, 425, 429, 500-599, 404]", form: codesForm,
			show: shown, common: true, aka: []string{"codes", "statusCodes", "retryOn"},
			decode: func(d *decoder, e entry) {
				d.codes(e, &d.job.Retry.On, "write limit: 0, or remove the key", "without a code no answer would be tried again")
			},
			doc: "answers after which `http` is called again: codes and ranges from 100 to 599"},
	}
}

func lockKeys() []key {
	return []key{
		{name: "ttl", kind: kindDuration, def: "15s", example: "30s",
			show: shown, common: true, aka: []string{"expiry", "lease"},
			decode: (*decoder).ttl,
			doc:    "how long the lock outlives a replica that died; longer than 1s, at most 1h"},
		{name: "safetyDelay", kind: kindDuration, def: "1s", example: "2s",
			show: shown, common: true, aka: []string{"delay", "grace"},
			decode: func(d *decoder, e entry) { d.duration(e, &d.job.Lock.SafetyDelay, between(0, maxTTL)) },
			doc:    "how long the lock outlives the run; at most 1h"},
	}
}

func httpKeys() []key {
	return []key{
		{name: "method", kind: kindText, def: "POST", example: "PUT", form: methodForm,
			show: shown, aka: []string{"verb"}, decode: (*decoder).method,
			doc: "the request's method, in capitals"},
		{name: "url", kind: kindText, def: required, example: "http://unix:/run/app.sock:/tidy", form: webForm,
			show: shownURL, aka: []string{"uri", "target", "endpoint"},
			decode: (*decoder).httpURL,
			doc:    "`http://127.0.0.1:8080/path`, or `http://unix:/run/app.sock:/path` for a unix socket"},
		{name: "headers", kind: kindTextMap, def: none, example: `{Authorization: "Bearer ${TOKEN}"}`, form: form{names: headerNames},
			show: shownName, aka: []string{"header"},
			decode: (*decoder).headers,
			doc:    "headers besides those that Solotick sets itself"},
		{name: "body", kind: kindText, def: none, example: `'{"dry": false}'`, form: bodyForm,
			aka: []string{"data", "payload", "json"}, decode: (*decoder).body,
			doc: "the request's body, at most 64 KiB"},
		{name: "successCodes", kind: kindCodes, def: "[200-299]", example: "[200-204, 404]", form: codesForm,
			show: shown, aka: []string{"status", "expectedStatus"},
			decode: func(d *decoder, e entry) {
				d.codes(e, &d.job.HTTP.SuccessCodes, "write [200-299], or remove the key", "without a code no answer would be a success")
			},
			doc: "answers that count as success: codes and ranges from 100 to 599"},
	}
}

func execKeys() []key {
	return []key{
		{name: "command", kind: kindTextList, def: required, example: `["/bin/tool", "--fast"]`, form: programForm,
			show: shownHead, aka: []string{"cmd", "args", "run"},
			decode: (*decoder).command,
			doc:    "the program and its arguments; there is no shell unless you write one"},
		{name: "env", kind: kindTextMap, def: none, example: `{LEVEL: "5"}`, form: form{names: variableNames},
			show: shownName, aka: []string{"environment"},
			decode: (*decoder).environment,
			doc: "variables on top of Solotick's own environment (without its `SOLOTICK_REDIS_URL` and `TRACEPARENT`); " +
				"cannot set `SOLOTICK_*`, which Solotick sets itself, nor `TRACEPARENT`"},
		{name: "dir", kind: kindText, def: none, example: "/data", form: filledForm,
			show: shown, aka: []string{"cwd", "workdir", "workingDir"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.job.Exec.Dir) },
			doc:    "directory to run it in; without it Solotick's own"},
	}
}

// commonKeys are the keys of a job that make sense for all: not what tells one job from another.
func commonKeys() []key {
	var out []key
	for _, k := range jobKeys() {
		if k.common {
			out = append(out, k)
		}
	}
	return out
}

// item describes the i-th item of a list.
func (k key) item(i int) key {
	switch {
	case k.show == shownHead && i == 0:
		k.show = shownWord
	case k.show == shownHead:
		k.show = hidden
	}
	return k
}

func find(keys []key, name string) (key, bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

// nearestKey is the key that somebody meant who wrote name: a slip, or another tool's word for it.
func nearestKey(keys []key, name string) (key, bool) {
	if k, ok := misspelt(keys, name); ok {
		return k, true
	}
	for _, k := range keys {
		for _, other := range k.aka {
			if plainName(other) == plainName(name) {
				return k, true
			}
		}
	}
	return key{}, false
}

// misspelt is the key of which name is another spelling, or a slip.
func misspelt(keys []key, name string) (key, bool) {
	names := make([]string, len(keys))
	for i, k := range keys {
		if plainName(k.name) == plainName(name) {
			return k, true
		}
		names[i] = k.name
	}
	return find(keys, Nearest(name, names))
}

// plainName is a name without what differs between the spellings time_zone, time-zone and timeZone.
func plainName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

var separators = strings.NewReplacer("_", "", "-", "")

// inAJob is the home of a job's own keys.
const inAJob = "in a job"

// homes are the places below root where a key of that name is known, as the user would look for them; of what belongs to
// a job only those when the question comes up in one.
func homes(root []key, name string, inJob bool) []string {
	var out []string
	elsewhere := []string{"under redis", "under sentinel", "under ready"}
	var walk func(keys []key, under string)
	walk = func(keys []key, under string) {
		for _, k := range keys {
			if k.name == name && !(inJob && slices.Contains(elsewhere, under)) {
				out = append(out, under)
			}
			switch k.name {
			case "jobs":
				walk(k.keys, inAJob)
			case "defaults": // has no keys of its own
			default:
				walk(k.keys, "under "+k.name)
			}
		}
	}
	walk(root, "at the top level")
	if defaults, ok := find(root, "defaults"); ok && !inJob {
		if _, ok := find(defaults.keys, name); ok {
			out = append(out, "under defaults")
		}
	}
	return out
}
