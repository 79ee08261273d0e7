package config

import (
	"strings"
	"time"

	"github.com/solotick/solotick/config/strict"
)

// leaseSlack is how much longer than two heartbeats a lock has to be. A heartbeat is answered only while the lock is sure to
// last for another one. The lock is renewed each third of its ttl, or earlier if it is short, and its replica does not rely
// on the last second.
const leaseSlack = 2 * time.Second

func (d *decoder) asyncKey() strict.Key {
	return strict.Key{Name: "async", Kind: strict.KindMapping, Default: strict.None, Keys: d.asyncKeys(), Decode: d.async,
		Also: []string{"callback", "longRunning"},
		Doc:  "the app may answer 202, and end the run later by a report, see [Long jobs](#long-jobs); `{}` has the defaults"}
}

func (d *decoder) asyncKeys() []strict.Key {
	return []strict.Key{
		{Name: "timeout", Kind: strict.KindDuration, Default: "1h", Example: "2h",
			Show: strict.Shown, Also: []string{"maxDuration"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.HTTP.Async.Timeout, strict.AtLeast(time.Second)) },
			Doc:    "a run that takes longer after the app's 202 is told to end; at least 1s. `timeout` of the job limits the time until the 202"},
		{Name: "heartbeat", Kind: strict.KindDuration, Default: "5s", Example: "30s",
			Show: strict.Shown, Also: []string{"interval", "every"},
			Decode: func(e strict.Entry) {
				d.Duration(e, &d.job.HTTP.Async.Heartbeat, strict.Between(time.Second, (maxTTL-leaseSlack)/2))
			},
			Doc: "an app that reports nothing for this time counts as dead; at least 1s, and two heartbeats are at least 2s shorter than `lock.ttl`"},
	}
}

func (d *decoder) async(e strict.Entry) {
	d.job.HTTP.Async = &Async{Timeout: time.Hour, Heartbeat: 5 * time.Second}
	d.noteMapping(e)
	d.Mapping(e)
}

// checkAsync checks that the app can report, and that its heartbeats fit into the lock.
func (d *decoder) checkAsync() {
	j := d.job
	async := j.at["http.async"]
	if !async.OK() {
		return
	}
	if target := j.at["http.url"]; target.OK() && !isLocal(j.HTTP.URL) {
		d.Fail(async.Node, "remove http.async, or call the app at 127.0.0.1", "http.async: the app must be on this machine, where it can reach the admin address")
	}
	if d.table.Admin == "" && !d.Subject.Literal && d.table.Unknown["admin"] == "" {
		d.Fail(async.Node, "give the table an admin address", "http.async: the app reports to the admin address, and admin is \"\"")
	}
	most := ((j.Lock.TTL - leaseSlack) / 2).Truncate(100 * time.Millisecond)
	if j.Guarantee == EveryReplica || j.HTTP.Async.Heartbeat <= most || j.unset("guarantee", "lock.ttl", "http.async.heartbeat") {
		return
	}
	at := async
	if own := j.at["http.async.heartbeat"]; own.OK() {
		at = own
	}
	need := strict.ShortDuration(2*j.HTTP.Async.Heartbeat + leaseSlack)
	hint := "write lock: {ttl: " + need + "}"
	if strings.HasPrefix(j.Name, "timer:") { // which has no lock to set
		hint = "write heartbeat: " + strict.ShortDuration(most)
	}
	d.Fail(at.Node, hint, "http.async.heartbeat: %s needs a lock.ttl of at least %s, and it is %s", strict.ShortDuration(j.HTTP.Async.Heartbeat), need,
		strict.ShortDuration(j.Lock.TTL))
}
