package config

import (
	"time"

	"github.com/solotick/solotick/config/strict"
)

// kindJobs is the kind of jobs, as the user reads it.
const kindJobs = "list of jobs"

// tableKeys are the keys at the top level.
func (d *decoder) tableKeys() []strict.Key {
	return []strict.Key{
		{Name: "service", Kind: strict.KindText, Default: strict.Required, Example: "billing", Form: nameForm,
			Show: strict.Shown, Decode: d.service,
			Doc: "names the group of replicas that share the locks; written like the name of a job"},
		{Name: "redis", Kind: strict.KindMapping, Default: strict.None, Keys: d.redisKeys(),
			Form: strict.Form{Choice: []string{"url", "sentinel", "cluster"}}, Decode: d.redis,
			Doc: "the server that holds the locks; without it, name one with `--redis`"},
		{Name: "listen", Kind: strict.KindText, Default: `":9747"`, Example: `"127.0.0.1:9747"`, Form: listenForm,
			Show: strict.Shown, Also: []string{"port", "addr", "metrics"},
			Decode: d.listen,
			Doc:    "address of `/metrics`, `/healthz` and `/readyz`; `\"\"` switches them off"},
		{Name: "admin", Kind: strict.KindText, Default: `"127.0.0.1:9748"`, Example: `"127.0.0.1:0"`, Form: adminForm,
			Show: strict.Shown, Also: []string{"api", "dashboard"},
			Decode: d.admin,
			Doc:    "address of the status page and the API, on this machine alone; `\"\"` switches them off"},
		{Name: "clock", Kind: strict.KindText, Default: "redis", Example: "local",
			Show:   strict.Shown,
			Form:   strict.Words("redis", "local"),
			Decode: func(e strict.Entry) { oneOf(d, e, &d.table.Clock) },
			Doc:    "whose time the replicas follow: `redis`, the server's, or `local`, each its own"},
		{Name: "shutdownGrace", Kind: strict.KindDuration, Default: "25s", Example: "1m",
			Show:   strict.Shown,
			Also:   []string{"gracePeriod", "terminationGracePeriodSeconds"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.table.ShutdownGrace, strict.AtLeast(0)) },
			Doc:    "how long running jobs may continue after SIGTERM before they are cancelled"},
		{Name: "maxRunning", Kind: strict.KindNumber, Default: "0", Example: "4",
			Show: strict.Shown, Also: []string{"parallelism", "maxParallel", "concurrency"},
			Decode: func(e strict.Entry) { d.Number(e, &d.table.MaxRunning) },
			Form:   strict.Form{Most: mostRunning},
			Doc:    "runs at once on one replica, at most 10000; a replica that is full leaves ticks to the others; `0` = no limit"},
		{Name: "ready", Kind: strict.KindMapping, Default: strict.None, Keys: d.readyKeys(),
			Form: strict.Form{Choice: []string{"url", "tcp", "exec"}, Chosen: true}, Decode: d.ready,
			Also: []string{"readinessProbe", "readiness", "health"},
			Doc:  "how to ask the app whether it is ready: while it is not, this replica leaves ticks to the others"},
		{Name: "busy", Kind: strict.KindMapping, Default: strict.None, Keys: d.busyKeys(),
			Also:   []string{"loadLimit", "maxLoad"},
			Decode: func(e strict.Entry) { d.Mapping(e) },
			Doc:    "from which load on this replica leaves ticks to others that are less busy"},
		{Name: "links", Kind: strict.KindMapping, Default: strict.None, Keys: d.linkKeys(),
			Also:   []string{"deepLinks", "dashboards"},
			Decode: func(e strict.Entry) { d.Mapping(e) },
			Doc:    "where other tools show a run, for the status page"},
		{Name: "calendars", Kind: kindCalendars, Named: true, Default: strict.None, Keys: d.calendarKeys(), Decode: d.readCalendars,
			Also: []string{"holidays", "calendar"}, Form: strict.Form{Names: calendarForm.Pattern},
			Doc: "sets of whole days by name, for `exclude` and `include` of jobs, see [Calendars](calendars.md)"},
		{Name: "defaults", Kind: strict.KindMapping, Default: strict.None, Keys: d.commonKeys(), Decode: d.defaults,
			Doc: "values for all jobs that do not set their own: the keys marked *d* below"},
		{Name: "jobs", Kind: kindJobs, Default: strict.Required, Keys: d.jobKeys(),
			Form: strict.Form{Choice: []string{"http", "exec"}, Chosen: true}, Decode: d.jobs,
			Doc: "the jobs; an empty list is allowed and gives a warning"},
	}
}

func (d *decoder) jobKeys() []strict.Key {
	return append([]strict.Key{
		{Name: "name", Kind: strict.KindText, Default: strict.Required, Example: "send-invoices", Form: nameForm,
			Show: strict.Shown, Decode: d.name,
			Doc: "lower-case letters, digits, `-` and `.`, at most 63 characters; unique in the table"},
		{Name: "schedule", Kind: kindSchedule, Default: strict.Required, Example: `"0 9 * * MON-FRI"`, Form: filledForm,
			Show: strict.Shown, Also: []string{"cron", "crontab", "schedules", "interval"},
			Decode: d.schedule, Doc: "when it runs, see [Schedules](#schedules); a list has the ticks of all its schedules"},
		{Name: "timeZone", Kind: strict.KindText, Default: "UTC", Example: "Europe/Berlin", Form: filledForm,
			Show: strict.Shown, Common: true, Also: []string{"tz", "zone", "location"},
			Decode: d.timeZone, Doc: "IANA name of the zone that the schedule is in"},
		{Name: "http", Kind: strict.KindMapping, Default: "http or exec", Keys: d.httpKeys(), Decode: d.http,
			Doc: "the request that runs the job"},
		{Name: "exec", Kind: strict.KindMapping, Default: "http or exec", Keys: d.execKeys(), Decode: d.exec,
			Doc: "the command that runs the job"},
		{Name: "allowRemote", Kind: strict.KindBool, Default: "false", Example: "true",
			Show: strict.Shown, Common: true,
			Decode: func(e strict.Entry) { d.Bool(e, &d.job.AllowRemote) },
			Doc:    "lets `http.url` and its redirects lead to another host than this one"},
		{Name: "timeout", Kind: strict.KindDuration, Default: "5m", Example: "10m",
			Show: strict.Shown, Common: true,
			Also:   []string{"activeDeadlineSeconds", "maxDuration"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.Timeout, strict.AtLeast(time.Millisecond)) },
			Doc:    "a run that takes longer is cancelled"},
		{Name: "guarantee", Kind: strict.KindText, Default: string(AtMostOnce), Example: "at-least-once",
			Show: strict.Shown, Common: true,
			Form:   strict.Words(AtMostOnce, AtLeastOnce, EveryReplica),
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.Guarantee) },
			Doc:    "`at-most-once`: one replica runs each tick, once; `at-least-once`: runs it again if the run was cut short; `every-replica`: each replica runs it, without a lock"},
		{Name: "concurrencyPolicy", Kind: strict.KindText, Default: string(Forbid), Example: "Allow",
			Show: strict.Shown, Common: true,
			Form:   strict.Words(Forbid, Allow, Replace, Queue),
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.ConcurrencyPolicy) },
			Doc:    "a tick that comes due while the job still runs: `Forbid` skips it, `Allow` starts a second run, `Replace` cancels the run first, `Queue` lets one tick wait"},
		{Name: "concurrency", Kind: strict.KindNumber, Default: "0", Example: "3",
			Show: strict.Shown, Common: true, Also: []string{"maxConcurrency", "maxInstances"},
			Form:   strict.Form{Most: mostConcurrency},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Concurrency) },
			Doc:    "with `concurrencyPolicy: Allow`: at most so many runs at once in the cluster, and a tick that comes due beside them is skipped; at most 1000; `0` = no limit"},
		{Name: "missed", Kind: strict.KindText, Default: string(Latest), Example: "all",
			Show: strict.Shown, Common: true, Also: []string{"catchUp", "misfire", "misfirePolicy"},
			Form:   strict.Words(Latest, All, Skip),
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.Missed) },
			Doc:    "ticks that no replica could fire in time: `latest` fires the newest one late, `all` also up to a hundred before it, in order, `skip` none"},
		{Name: "startingDeadline", Kind: strict.KindDuration, Default: "0s", Example: "1h",
			Show: strict.Shown, Common: true,
			Also:   []string{"startingDeadlineSeconds"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.StartingDeadline, strict.AtLeast(0)) },
			Doc:    "a tick that could not be started within this time is skipped; `0s` = no limit, but five seconds under `missed: skip`"},
		{Name: "startRetries", Kind: strict.KindNumber, Default: "5", Example: "10",
			Show: strict.Shown, Common: true, Also: []string{"handovers", "maxHandovers", "startAttempts"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.StartRetries) },
			Form:   strict.Form{Most: mostStartRetries},
			Doc: "further rounds through all replicas when none of them could start a tick, each after a longer wait; " +
				"at most 100; `0` = one round"},
		{Name: "retry", Kind: strict.KindMapping, Default: strict.None, Common: true, Keys: d.retryKeys(),
			Also:   []string{"retries", "backoffLimit"},
			Decode: func(e strict.Entry) { d.noteMapping(e); d.Mapping(e) },
			Doc:    "how failed attempts are repeated, under the same lock; each of its keys falls back to `defaults` alone"},
		{Name: "lock", Kind: strict.KindMapping, Default: "see below", Common: true, Keys: d.lockKeys(),
			Decode: func(e strict.Entry) { d.noteMapping(e); d.Mapping(e) },
			Doc:    "how the job's lock is held; each of its keys falls back to `defaults` alone"},
		{Name: "jitter", Kind: strict.KindDuration, Default: "0s", Example: "30s",
			Show: strict.Shown, Common: true, Also: []string{"splay"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.Jitter, strict.AtLeast(0)) },
			Doc:    "delays each tick by up to this, the same on all replicas; shorter than the period, the time between two ticks"},
		{Name: "start", Kind: strict.KindTime, Default: strict.None, Example: "2026-12-01T00:00:00Z",
			Show: strict.ShownTime, Also: []string{"notBefore", "from"},
			Decode: func(e strict.Entry) { d.Time(e, &d.job.Start) },
			Doc:    "no tick before this moment"},
		{Name: "end", Kind: strict.KindTime, Default: strict.None, Example: "2027-12-01T00:00:00+01:00",
			Show: strict.Shown, Also: []string{"notAfter", "until"},
			Decode: func(e strict.Entry) { d.Time(e, &d.job.End) },
			Doc:    "no tick at or after this moment"},
		{Name: "suspend", Kind: strict.KindBool, Default: "false", Example: "true",
			Show: strict.Shown, Common: true,
			Also:   []string{"enabled", "disabled", "paused"},
			Decode: func(e strict.Entry) { d.Bool(e, &d.job.Suspend) },
			Doc:    "true: the job stays in the table and its ticks are skipped"},
		{Name: "observe", Kind: strict.KindBool, Default: "false", Example: "true",
			Show: strict.Shown, Common: true, Also: []string{"dryRun", "dry-run", "shadow"},
			Decode: func(e strict.Entry) { d.Bool(e, &d.job.Observe) },
			Doc:    "true: its ticks are taken as ever, but nothing is called, see [Observe first](#observe-first)"},
		{Name: "reserved", Kind: strict.KindBool, Default: "false", Example: "true",
			Show: strict.Shown, Also: []string{"critical"},
			Decode: func(e strict.Entry) { d.Bool(e, &d.job.Reserved) },
			Doc:    "true: its runs have slots of their own beside `maxRunning`"},
		{Name: "priority", Kind: strict.KindNumber, Default: "0", Example: "10",
			Show: strict.Shown, Common: true, Also: []string{"weight"},
			Form:   strict.Form{Most: mostPriority},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Priority) },
			Doc:    "among ticks that wait on a replica for one of its `maxRunning` slots, the highest goes first; at most 100; see [Slots](#slots)"},
		{Name: "trigger", Kind: strict.KindMapping, Default: strict.None, Keys: d.triggerKeys(),
			Also:   []string{"parameters", "params", "inputs"},
			Decode: func(e strict.Entry) { d.noteMapping(e); d.Mapping(e) },
			Doc:    "what a run by hand may bring along, see [Data of a run by hand](#data-of-a-run-by-hand)"},
		{Name: "resources", Kind: strict.KindMapping, Default: strict.None, Common: true, Keys: d.resourceKeys(),
			Also:   []string{"limits", "rlimits"},
			Decode: func(e strict.Entry) { d.noteMapping(e); d.Mapping(e) },
			Doc:    "limits of the processes of `exec`; each of its keys falls back to `defaults` alone"},
		{Name: "notify", Kind: strict.KindMapping, Default: strict.None, Common: true, Keys: d.notifyKeys(),
			Also:   []string{"ping", "webhook", "healthchecks", "onSuccess", "onFailure"},
			Decode: func(e strict.Entry) { d.noteMapping(e); d.Mapping(e) },
			Doc:    "URLs to ping when runs start and end, for a dead man's switch; messages for people when something changes"},
	}, append(d.dayKeys(), d.aboutKeys()...)...)
}

func (d *decoder) triggerKeys() []strict.Key {
	return []strict.Key{
		{Name: "data", Kind: strict.KindBool, Default: "false", Example: "true",
			Show: strict.Shown, Also: []string{"body", "payload", "input", "json"},
			Decode: func(e strict.Entry) { d.Bool(e, &d.job.Trigger.Data) },
			Doc:    "lets `solotick trigger --data` and the API give the run JSON of at most 64 KiB"},
	}
}

func (d *decoder) retryKeys() []strict.Key {
	return []strict.Key{
		{Name: "limit", Kind: strict.KindNumber, Default: "0", Example: "3",
			Show: strict.Shown, Common: true, Also: []string{"max", "maxRetries", "attempts"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Retry.Limit) },
			Form:   strict.Form{Most: maxRetries},
			Doc:    "attempts after the first one, at most 100"},
		{Name: "backoff", Kind: strict.KindDuration, Default: "5s", Example: "10s",
			Show: strict.Shown, Common: true, Also: []string{"delay", "wait"},
			Decode: func(e strict.Entry) {
				d.Duration(e, &d.job.Retry.Backoff, strict.Between(time.Millisecond, maxBackoff))
			},
			Doc: "wait before the second attempt, doubled before each further one, with random variation; `Retry-After` makes it longer"},
		{Name: "maxBackoff", Kind: strict.KindDuration, Default: "1m", Example: "5m",
			Show: strict.Shown, Common: true, Also: []string{"maxDelay", "maxWait"},
			Decode: func(e strict.Entry) {
				d.Duration(e, &d.job.Retry.MaxBackoff, strict.Between(time.Millisecond, maxBackoff))
			},
			Doc: "the longest of these waits, unless `Retry-After` asks for more; at most 24h"},
		{Name: "on", Kind: strict.KindCodes, Default: "[408, 425, 429, 500-599]", Example: "[408, 425, 429, 500-599, 404]", Form: codesForm,
			Show: strict.Shown, Common: true, Also: []string{"codes", "statusCodes", "retryOn"},
			Decode: func(e strict.Entry) {
				d.codes(e, &d.job.Retry.On, "write limit: 0, or remove the key", "without a code no answer would be tried again")
			},
			Doc: "answers after which `http` is called again: codes and ranges from 100 to 599"},
	}
}

func (d *decoder) lockKeys() []strict.Key {
	return []strict.Key{
		{Name: "ttl", Kind: strict.KindDuration, Default: "15s", Example: "30s",
			Show: strict.Shown, Common: true, Also: []string{"expiry", "lease"},
			Decode: d.ttl,
			Doc:    "how long the lock outlives a replica that died; longer than 1s, at most 1h"},
		{Name: "safetyDelay", Kind: strict.KindDuration, Default: "1s", Example: "2s",
			Show: strict.Shown, Common: true, Also: []string{"delay", "grace"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.Lock.SafetyDelay, strict.Between(0, maxTTL)) },
			Doc:    "how long the lock outlives the run; at most 1h"},
	}
}

func (d *decoder) httpKeys() []strict.Key {
	return []strict.Key{
		{Name: "method", Kind: strict.KindText, Default: "POST", Example: "PUT", Form: methodForm,
			Show: strict.Shown, Also: []string{"verb"}, Decode: d.method,
			Doc: "the request's method, in capitals"},
		{Name: "url", Kind: strict.KindText, Default: strict.Required, Example: "http://unix:/run/app.sock:/tidy", Form: webForm,
			Show: strict.ShownURL, Also: []string{"uri", "target", "endpoint"},
			Decode: d.httpURL,
			Doc: "`http://127.0.0.1:8080/path`, or `http://unix:/run/app.sock:/path` for a unix socket; beside `redis.url: embedded` also " +
				"`http://embedded/jobs/NAME`, a toy app inside the replica"},
		{Name: "headers", Kind: strict.KindTextMap, Default: strict.None, Example: `{Authorization: "Bearer ${TOKEN}"}`, Form: strict.Form{Names: headerNames},
			Show: strict.ShownNames, Also: []string{"header"}, Each: d.headerFileKey(),
			Decode: d.headers,
			Doc:    "headers in addition to those that Solotick sets itself; the value is text, or [a file](#httpheaders)"},
		{Name: "body", Kind: strict.KindText, Default: strict.None, Example: `'{"dry": false}'`, Form: bodyForm,
			Also: []string{"data", "payload", "json"}, Decode: d.body,
			Doc: "the request's body, at most 64 KiB"},
		{Name: "successCodes", Kind: strict.KindCodes, Default: "[200-299]", Example: "[200-204, 404]", Form: codesForm,
			Show: strict.Shown, Also: []string{"status", "expectedStatus"},
			Decode: func(e strict.Entry) {
				d.codes(e, &d.job.HTTP.SuccessCodes, "write [200-299], or remove the key", "without a code no answer would be a success")
			},
			Doc: "answers that count as success: codes and ranges from 100 to 599"},
		{Name: "idempotencyKey", Kind: strict.KindText, Default: string(KeyText), Example: "uuid",
			Show: strict.Shown, Also: []string{"idempotency"},
			Form:   strict.Words(KeyText, KeyUUID),
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.HTTP.IdempotencyKey) },
			Doc:    "the header `Idempotency-Key`: `text` is `\"service/job/tick\"`, `uuid` a UUID made of it, for frameworks that take only those"},
		d.httpTLSKey(),
		d.signKey(),
		d.asyncKey(),
	}
}

func (d *decoder) execKeys() []strict.Key {
	return []strict.Key{
		{Name: "command", Kind: strict.KindTextList, Default: strict.Required, Example: `["/bin/tool", "--fast"]`, Form: programForm,
			Show: strict.ShownFirst, Also: []string{"cmd", "args", "run"},
			Decode: d.command,
			Doc:    "the program and its arguments; there is no shell unless you write one"},
		{Name: "env", Kind: strict.KindTextMap, Default: strict.None, Example: `{LEVEL: "5"}`, Form: strict.Form{Names: variableNames},
			Show: strict.ShownNames, Also: []string{"environment"},
			Decode: d.environment,
			Doc: "variables on top of Solotick's own environment (without its `SOLOTICK_REDIS_URL` and `TRACEPARENT`); " +
				"cannot set `SOLOTICK_*`, which Solotick sets itself, nor `TRACEPARENT`"},
		{Name: "dir", Kind: strict.KindText, Default: strict.None, Example: "/data", Form: filledForm,
			Show: strict.Shown, Also: []string{"cwd", "workdir", "workingDir"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.job.Exec.Dir) },
			Doc:    "directory to run it in; without it Solotick's own"},
	}
}

// commonKeys are the keys of a job that defaults can set too.
func (d *decoder) commonKeys() []strict.Key {
	var out []strict.Key
	for _, k := range d.jobKeys() {
		if k.Common {
			out = append(out, k)
		}
	}
	return out
}
