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

func asyncKeys(to *Async) []strict.Key {
	return []strict.Key{
		{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.AtLeast(time.Second)), Default: "1h",
			Example: "2h", Show: strict.Shown, Also: "maxDuration",
			Doc: "a run that takes longer after the app's 202 is told to end; " +
				"at least 1s. `timeout` of the job limits the time until the 202"},
		{Name: "heartbeat", Type: strict.Duration(&to.Heartbeat, strict.Between(time.Second, (maxTTL-leaseSlack)/2)),
			Default: "5s", Example: "30s", Show: strict.Shown, Also: "interval every",
			Doc: "an app that reports nothing for this time counts as dead; " +
				"at least 1s, and two heartbeats are at least 2s shorter than `lock.ttl`"},
	}
}

// checkAsync checks that the app can report.
func checkAsync(d *strict.Decoder, j *draft, table *Table) {
	async := j.at["http.async"]
	if !async.OK() {
		return
	}
	if target := j.at["http.url"]; target.OK() && !isLocal(j.HTTP.URL) {
		d.Fail(async.Node, "remove http.async, or call the app at 127.0.0.1",
			"http.async: the app must be on this machine, where it can reach the admin address")
	}
	if table.Admin == "" && !d.Subject.Literal && table.Unknown["admin"] == "" {
		d.Fail(async.Node, "give the table an admin address",
			"http.async: the app reports to the admin address, and admin is \"\"")
	}
}

// checkHeartbeat checks that the app's heartbeats fit into the lock.
func checkHeartbeat(d *strict.Decoder, j *draft) {
	async := j.at["http.async"]
	if !async.OK() {
		return
	}
	most := ((j.Lock.TTL - leaseSlack) / 2).Truncate(100 * time.Millisecond)
	if j.HTTP.Async.Heartbeat <= most || j.unset("guarantee", "lock.ttl", "http.async.heartbeat") {
		return
	}
	at := cmp.Or(j.at["http.async.heartbeat"], async)
	need := strict.ShortDuration(2*j.HTTP.Async.Heartbeat + leaseSlack)
	hint := "write lock: {ttl: " + need + "}"
	if strings.HasPrefix(j.Name, "timer:") { // which has no lock to set
		hint = "write heartbeat: " + strict.ShortDuration(most)
	}
	d.Fail(at.Node, hint, "http.async.heartbeat: %s needs a lock.ttl of at least %s, and it is %s",
		strict.ShortDuration(j.HTTP.Async.Heartbeat), need, strict.ShortDuration(j.Lock.TTL))
}
