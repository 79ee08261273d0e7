package config

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config/strict"
)

// tableKeys are the keys at the top level.
func (d *decoder) tableKeys() []strict.Key {
	t, job := d.table, jobKeys(&d.draft, d.calendars)
	common := slices.DeleteFunc(slices.Clone(job), func(k strict.Key) bool { return !k.Common })
	return []strict.Key{
		{Name: "service", Type: identifier(&t.Service), Default: strict.Required, Example: "billing", Form: nameForm,
			Show: strict.Shown, Doc: "the group of replicas that share the locks; written like a job's name"},
		{Name: "redis",
			Type: strict.Type{Kind: strict.KindMapping, Keys: redisKeys(&t.Redis), Decode: readRedis(&t.Redis)},
			Form: strict.Form{Choice: []string{"url", "sentinel", "cluster"}},
			Doc:  "the server that holds the locks, unless `--redis` names it"},
		{Name: "listen", Type: listener(&t.Listen, `":9747" or "127.0.0.1:9747"`, ":", false), Default: `":9747"`,
			Example: `"127.0.0.1:9747"`, Form: listenForm, Show: strict.Shown, Also: "port addr metrics",
			Doc: "address of `/metrics`, `/healthz` and `/readyz`; `\"\"` switches them off"},
		{Name: "admin", Type: listener(&t.Admin, `"127.0.0.1:9748"`, "127.0.0.1:", true), Default: `"127.0.0.1:9748"`,
			Example: `"127.0.0.1:0"`, Form: adminForm, Show: strict.Shown, Also: "api dashboard",
			Doc: "loopback address of the status page and the API; `\"\"` switches them off"},
		{Name: "clock", Type: word(&t.Clock), Default: "redis", Example: "local", Form: strict.Words("redis", "local"),
			Show: strict.Shown, Doc: "whose time the replicas follow: `redis`, the server's, or `local`, each its own"},
		{Name: "shutdownGrace", Type: strict.Duration(&t.ShutdownGrace, strict.AtLeast(0)), Default: "25s",
			Example: "1m", Show: strict.Shown, Also: "gracePeriod terminationGracePeriodSeconds",
			Doc: "how long runs may go on after SIGTERM before they are cancelled"},
		{Name: "maxRunning", Type: strict.Number(&t.MaxRunning), Default: "0", Example: "4",
			Form: strict.Form{Most: mostRunning}, Show: strict.Shown, Also: "parallelism maxParallel concurrency",
			Doc: "runs at once on one replica, at most 10000; `0` = no limit; see [Slots](#slots)"},
		{Name: "ready",
			Type: made(&t.Ready, Ready{Interval: 2 * time.Second, Timeout: time.Second}, readyKeys, readReady),
			Form: strict.Form{Choice: []string{"url", "tcp", "exec"}, Chosen: true},
			Also: "readinessProbe readiness health",
			Doc:  "how to ask the app whether it is ready: while it is not, this replica leaves ticks to others"},
		{Name: "calendars", Type: calendarsInto(&t.Calendars, d.calendars),
			Form: strict.Form{Names: calendarForm.Pattern}, Named: true, Also: "holidays calendar",
			Doc: "sets of whole days by name, for `exclude` and `include` of jobs"},
		{Name: "defaults", Type: strict.Type{Kind: strict.KindMapping, Keys: common, Decode: d.defaults},
			Doc: "values of the keys marked *d* for jobs that do not set them"},
		{Name: "jobs", Type: strict.Type{Kind: kindJobs, Keys: job, Decode: d.jobs}, Default: strict.Required,
			Form: strict.Form{Choice: []string{"http", "exec", "claim"}, Chosen: true},
			Doc:  "the jobs; an empty list gives a warning"},
	}
}

// jobKeys are the keys of a job.
func jobKeys(to *draft, known calendars) []strict.Key {
	request := HTTP{Method: http.MethodPost, SuccessCodes: []CodeRange{{200, 299}}}
	return slices.Concat([]strict.Key{
		{Name: "name", Type: identifier(&to.Name), Default: strict.Required, Example: "send-invoices", Form: nameForm,
			Show: strict.Shown, Doc: "lower-case letters, digits, `-` and `.`, at most 63 characters; unique"},
		{Name: "schedule", Type: expressions(to), Default: strict.Required,
			Example: `"0 9 * * MON-FRI"`, Form: filledForm, Show: strict.Shown, Also: "cron crontab schedules interval",
			Doc: "when it runs, see [Schedules](#schedules)"},
		{Name: "timeZone", Type: strict.Fitting(&to.TimeZone, isZone), Default: "UTC",
			Example: "Europe/Berlin", Form: filledForm, Show: strict.Shown, Common: true, Also: "tz zone location",
			Doc: "IANA name of the schedule's zone"},
		{Name: "http", Type: made(&to.HTTP, request, httpKeys, complete("url: http://127.0.0.1:8080/path")),
			Default: "http, exec or claim", Doc: "the request that runs the job"},
		{Name: "exec", Type: made(&to.Exec, Exec{}, execKeys, complete(`command: ["/bin/tool", "--fast"]`)),
			Default: "http, exec or claim", Doc: "the command that runs the job"},
		{Name: "claim", Type: asyncType(&to.Claim), Default: "http, exec or claim", Also: "lease coordinator",
			Doc: "the app's own scheduler runs the job, and asks before each tick; `{}` has the defaults"},
		{Name: "allowRemote", Type: strict.Bool(&to.AllowRemote), Default: "false", Example: "true", Show: strict.Shown,
			Common: true, Doc: "lets `http.url` and its redirects lead to another host"},
		{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.AtLeast(time.Millisecond)), Default: "5m",
			Example: "10m", Show: strict.Shown, Common: true, Also: "activeDeadlineSeconds maxDuration",
			Doc: "an attempt that takes longer is cancelled"},
		{Name: "guarantee", Type: word(&to.Guarantee), Default: string(AtMostOnce), Example: "at-least-once",
			Form: strict.Words(AtMostOnce, AtLeastOnce, EveryReplica), Show: strict.Shown, Common: true,
			Doc: "`at-most-once`: one replica runs each tick, once; `at-least-once`: " +
				"again if the run was cut short; `every-replica`: each replica runs it, without a lock"},
		{Name: "concurrencyPolicy", Type: word(&to.ConcurrencyPolicy), Default: string(Forbid),
			Example: "Allow", Form: strict.Words(Forbid, Allow, Replace, Queue), Show: strict.Shown, Common: true,
			Doc: "a tick that comes due while the job runs: `Forbid` skips it, `Allow` starts a second run, " +
				"`Replace` cancels the run first, `Queue` lets one tick wait"},
		{Name: "concurrency", Type: strict.Number(&to.Concurrency), Default: "0",
			Example: "3", Form: strict.Form{Most: mostConcurrency}, Show: strict.Shown, Common: true,
			Also: "maxConcurrency maxInstances",
			Doc: "runs at once in the cluster under `concurrencyPolicy: Allow`, at most 1000; " +
				"a tick beyond them is skipped; `0` = no limit"},
		{Name: "missed", Type: word(&to.Missed), Default: string(Latest), Example: "all",
			Form: strict.Words(Latest, All, Skip), Show: strict.Shown, Common: true,
			Also: "catchUp misfire misfirePolicy", Doc: "ticks that no replica could fire in time: " +
				"`latest` fires the newest late, `all` also up to a hundred before it, in order, `skip` none"},
		{Name: "startingDeadline", Type: strict.Duration(&to.StartingDeadline, strict.AtLeast(0)), Default: "0s",
			Example: "1h", Show: strict.Shown, Common: true, Also: "startingDeadlineSeconds",
			Doc: "a tick that has not started within this time is skipped; " +
				"`0s` = no limit, or 5s under `missed: skip`"},
		{Name: "startRetries", Type: strict.Number(&to.StartRetries), Default: "5",
			Example: "10", Form: strict.Form{Most: mostStartRetries}, Show: strict.Shown, Common: true,
			Also: "handovers maxHandovers startAttempts",
			Doc:  "how often all are asked again if no replica could start a tick, with growing waits; at most 100"},
		{Name: "retry", Type: strict.Mapping(retryKeys(&to.Retry)), Common: true, Also: "retries backoffLimit",
			Doc: "how failed attempts are repeated"},
		{Name: "lock", Type: strict.Mapping(lockKeys(&to.Lock)), Default: "see below", Common: true,
			Doc: "how the job's lock is held"},
		{Name: "jitter", Type: strict.Duration(&to.Jitter, strict.AtLeast(0)), Default: "0s",
			Example: "30s", Show: strict.Shown, Common: true, Also: "splay",
			Doc: "delays each tick by up to this; shorter than the time between two ticks"},
		{Name: "start", Type: strict.Time(&to.Start), Example: "2026-12-01T00:00:00Z",
			Show: strict.ShownTime, Also: "notBefore from", Doc: "no tick before this moment"},
		{Name: "end", Type: strict.Time(&to.End), Example: "2027-12-01T00:00:00+01:00",
			Show: strict.Shown, Also: "notAfter until", Doc: "no tick at or after this moment"},
		{Name: "suspend", Type: strict.Bool(&to.Suspend), Default: "false", Example: "true", Show: strict.Shown,
			Common: true, Also: "enabled disabled paused", Doc: "true: its ticks are skipped"},
		{Name: "observe", Type: strict.Bool(&to.Observe), Default: "false",
			Example: "true", Show: strict.Shown, Common: true, Also: "dryRun dry-run shadow",
			Doc: "true: nothing is called, see [Observe first](#observe-first)"},
		{Name: "reserved", Type: strict.Bool(&to.Reserved), Default: "false", Example: "true",
			Show: strict.Shown, Also: "critical", Doc: "true: the job has a slot of its own beside `maxRunning`"},
		{Name: "priority", Type: strict.Number(&to.Priority), Default: "0",
			Example: "10", Form: strict.Form{Most: mostPriority}, Show: strict.Shown, Also: "weight",
			Doc: "among ticks that wait for a slot, the highest goes first; at most 100"},
		{Name: "notify", Type: strict.Mapping(notifyKeys(to)),
			Common: true, Also: "ping webhook healthchecks onSuccess onFailure",
			Doc: "pings for a dead man's switch, and messages for people"},
	}, dayKeys(to, known), aboutKeys(&to.Job))
}

func retryKeys(to *Retry) []strict.Key {
	return []strict.Key{
		{Name: "limit", Type: strict.Number(&to.Limit), Default: "0", Example: "3", Form: strict.Form{Most: maxRetries},
			Show: strict.Shown, Also: "max maxRetries attempts", Doc: "attempts after the first, at most 100"},
		{Name: "backoff", Type: strict.Duration(&to.Backoff, strict.Between(time.Millisecond, maxBackoff)),
			Default: "5s", Example: "10s", Show: strict.Shown, Also: "delay wait",
			Doc: "wait before the second attempt, doubled before each further one; varies at random"},
		{Name: "maxBackoff", Type: strict.Duration(&to.MaxBackoff, strict.Between(time.Millisecond, maxBackoff)),
			Default: "1m", Example: "5m", Show: strict.Shown, Also: "maxDelay maxWait",
			Doc: "the longest of these waits; at most 24h"},
		{Name: "on", Type: codes(&to.On, "limit: 0", "tried again"), Default: "[408, 425, 429, 500-599]",
			Example: "[408, 425, 429, 500-599, 404]", Form: codesForm, Show: strict.Shown,
			Also: "codes statusCodes retryOn", Doc: "answers after which `http` is called again"},
	}
}

func lockKeys(to *Lock) []strict.Key {
	ttl := func(v time.Duration) string {
		if v <= LockMargin {
			return "must be longer than 1s: a replica stops trusting its lock that long before it ends"
		}
		return strict.Between(0, maxTTL)(v)
	}
	return []strict.Key{
		{Name: "ttl", Type: strict.Duration(&to.TTL, ttl), Default: "15s", Example: "30s", Show: strict.Shown,
			Also: "expiry lease", Doc: "how long the lock outlives a replica that died; longer than 1s, at most 1h"},
		{Name: "safetyDelay", Type: strict.Duration(&to.SafetyDelay, strict.Between(0, maxTTL)), Default: "1s",
			Example: "2s", Show: strict.Shown, Also: "delay grace",
			Doc: "how long the lock outlives the run; at most 1h"},
	}
}

var nameSyntax = regexp.MustCompile(nameForm.Pattern)

// identifier is the name of a service or job.
//
//go:noinline
func identifier(to *string) strict.Type { return strict.Checked(strict.Into(to), "", checkName) }

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
