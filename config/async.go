package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/solotick/solotick/config/strict"
)

// leaseSlack is how much longer than two heartbeats a lock has to be. A heartbeat is answered only while the lock is
// sure to last for another one. The lock is renewed each third of its ttl, or earlier if it is short, and its replica
// does not rely on the last second.
const leaseSlack = 2 * time.Second

// asyncType is the type of http.async and of claim.
func asyncType(to **Async) strict.Type {
	keys := func(to *Async) []strict.Key {
		return []strict.Key{
			{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.AtLeast(time.Second)), Default: "1h",
				Example: "2h", Show: strict.Shown, Also: "maxDuration",
				Doc: "a run that takes longer from the app's 202 or claim on has to end; at least 1s"},
			{Name: "heartbeat",
				Type:    strict.Duration(&to.Heartbeat, strict.Between(time.Second, (maxTTL-leaseSlack)/2)),
				Default: "5s", Example: "30s", Show: strict.Shown, Also: "interval every ttl",
				Doc: "an app that is silent for this time counts as dead; at least 1s; " +
					"`lock.ttl` must be at least twice this plus 2s"},
		}
	}
	return made(to, Async{Timeout: time.Hour, Heartbeat: 5 * time.Second}, keys, complete(""))
}

// reports returns the key by which the app reports on the job's runs, and whether the job has one.
func (j *draft) reports() (key string, at strict.Text) {
	for _, key := range []string{"claim", "http.async"} {
		if at := j.at[key]; at.OK() {
			return key, at
		}
	}
	return "", strict.Text{}
}

// checkAsync checks that the app can report.
func checkAsync(d *strict.Decoder, j *draft, table *Table) {
	key, at := j.reports()
	if key == "" {
		return
	}
	if target := j.at["http.url"]; target.OK() && !isLocal(j.HTTP.URL) {
		d.Fail(at.Node, "remove http.async, or call the app at 127.0.0.1",
			"http.async: the app must be on this machine, where it can reach the admin address")
	}
	if table.Admin == "" && !d.Subject.Literal && table.Unknown["admin"] == "" {
		d.Fail(at.Node, "give the table an admin address",
			"%s: the app reports to the admin address, and admin is \"\"", key)
	}
}

// checkClaim refuses for a job of an app that asks what needs a replica that starts the job by itself. The app's own
// scheduler decides when it asks, and the app asks once for a tick.
func checkClaim(d *strict.Decoder, j *draft) {
	if j.Claim == nil {
		return
	}
	lease := j.Schedule.IsLease()
	if t := j.at["guarantee"]; t.OK() && j.Guarantee != AtMostOnce {
		d.Bad(t, "write guarantee: at-most-once",
			"must be at-most-once with claim: no replica can make the app ask again")
	}
	switch t := j.at["concurrencyPolicy"]; {
	case !t.OK() || j.ConcurrencyPolicy == Forbid:
	case lease:
		d.Bad(t, "write concurrencyPolicy: Forbid", "must be Forbid with @lease, which one app holds at a time")
	case j.ConcurrencyPolicy != Allow:
		d.Bad(t, "write concurrencyPolicy: Forbid",
			"must be Forbid or Allow with claim: the app hears at once whether it may run")
	}
	for _, k := range []string{"timeout", "startRetries", "retry", "allowRemote", "jitter"} {
		if j.own(k) {
			d.Warn(j.at[k].Node, "", "%s has no effect with claim: the app runs the job by itself", k)
		}
	}
	if lease && !j.own("claim.timeout") {
		j.Claim.Timeout = furthest
	}
	j.Timeout, j.Jitter, j.Retry.Limit = j.Claim.Timeout, 0, 0
	if j.Missed == All && j.own("missed") {
		d.Warn(j.at["missed"].Node, "", "missed: all has no effect with claim: the app asks for each tick by itself")
	}
	if j.Missed == All || lease {
		j.Missed = Latest
	}
}

// checkHeartbeat checks that the app's heartbeats fit into the lock.
func checkHeartbeat(d *strict.Decoder, j *draft) {
	key, async := j.reports()
	if key == "" {
		return
	}
	heartbeat, beats := j.Reports().Heartbeat, key+".heartbeat"
	most := ((j.Lock.TTL - leaseSlack) / 2).Truncate(100 * time.Millisecond)
	if heartbeat <= most || j.unset("guarantee", "lock.ttl", beats) {
		return
	}
	at := cmp.Or(j.at[beats], async)
	need := strict.ShortDuration(2*heartbeat + leaseSlack)
	hint := "write lock: {ttl: " + need + "}"
	if strings.HasPrefix(j.Name, "timer:") { // which has no lock to set
		hint = "write heartbeat: " + strict.ShortDuration(most)
	}
	d.Fail(at.Node, hint, "%s: %s needs a lock.ttl of at least %s, and it is %s", beats,
		strict.ShortDuration(heartbeat), need, strict.ShortDuration(j.Lock.TTL))
}
