package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
)

// Level says how bad a Finding is.
type Level string

// The levels.
const (
	Fine    Level = "ok"
	Warning Level = "warning" // it can cost ticks or time
	Problem Level = "problem" // it breaks a promise, or nothing is fired
)

// Finding is what one look at Redis has shown.
type Finding struct {
	Check string `json:"check"` // one word
	Level Level  `json:"level"`
	Saw   string `json:"saw"`
	Means string `json:"means,omitempty"` // "" if it is fine
	Do    string `json:"do,omitempty"`    // "" if there is nothing to be done, or nothing is known
}

// Examine looks at all of Redis that Solotick relies on, with the rights of its own user. For that it writes four keys
// of its own, which vanish after a second. If Redis cannot be reached, the first finding says so, and there is no
// other.
func (s *Store) Examine(ctx context.Context) []Finding {
	x := &examination{store: s}
	if !x.connection(ctx) {
		return x.findings
	}
	x.rights(ctx)
	x.nudges(ctx)
	x.roundTrips(ctx)
	x.clock(ctx)
	x.server(ctx)
	x.keyspace(ctx)
	return x.findings
}

type examination struct {
	store    *Store
	findings []Finding
}

func (x *examination) fine(check, saw string, args ...any) {
	x.findings = append(x.findings, Finding{Check: check, Level: Fine, Saw: fmt.Sprintf(saw, args...)})
}

func (x *examination) found(check string, level Level, means, do, saw string, args ...any) {
	x.findings = append(x.findings, Finding{check, level, fmt.Sprintf(saw, args...), means, do})
}

// failed is a request without an answer, or with an error for one.
func (x *examination) failed(check string, err error) {
	d := diagnosis.Of(err)
	x.found(check, Problem, d.Reason, d.Hint, "Redis %s", d.Says)
}

func (x *examination) connection(ctx context.Context) bool {
	began := time.Now()
	if _, err := x.store.redis.Do(ctx, "ping"); err != nil {
		x.failed("connection", err)
		return false
	}
	x.fine("connection", "it answers, first after %s", short(time.Since(began)))
	return true
}

// rights tries all commands that replicas need.
func (x *examination) rights(ctx context.Context) {
	k := x.store.redis.Keys
	var keys []string
	for _, kind := range []string{"string", "hash", "zset", "stream"} {
		keys = append(keys, k.Prefix+"examined:"+kind)
	}
	parts, err := x.store.redis.Call(ctx, examineScript, 1, keys, k.Events)
	if err != nil {
		x.failed("rights", err)
		return
	}
	var forbidden []string
	other := map[string]string{} // what Redis says → the first command
	for i := 2; i+1 < len(parts); i += 2 {
		name, said := fmt.Sprint(parts[i]), fmt.Sprint(parts[i+1])
		switch {
		case diagnosis.Forbidden(said) && name == "publish":
			x.found("rights", Problem, "a replica hears of what happened on another one up to half a minute later",
				"give its user the channel: &"+k.Events, "its user may not publish: %s", said)
		case diagnosis.Forbidden(said):
			forbidden = append(forbidden, name)
		case other[said] == "":
			other[said] = name
		}
	}
	if len(forbidden) > 0 {
		x.found("rights", Problem, "Solotick needs them on the keys "+k.Prefix+"*, or no tick is fired",
			"give its user these rights: +"+strings.Join(forbidden, " +")+" ~"+k.Prefix+"*",
			"its user may not %s", strings.Join(forbidden, ", "))
	}
	for said, name := range other {
		d := diagnosis.Refused(said)
		x.found("writing", Problem, d.Reason, d.Hint, "%s is refused: Redis %s", name, d.Says)
	}
	if len(parts) == 2 {
		x.fine("rights", "its user may do all that Solotick does")
	}
}

// nudges listens to the channel for a moment.
func (x *examination) nudges(ctx context.Context) {
	events := x.store.redis.Subscribe(ctx)
	defer events.Close()
	bounded, cancel := context.WithTimeout(ctx, 5*x.store.redis.Timeout())
	defer cancel()
	if _, err := events.Receive(bounded); err != nil {
		d := diagnosis.Of(err)
		x.found("nudges", Problem, "a replica hears of what happened on another one up to a second later: "+d.Reason,
			"give its user +subscribe and the channel &"+x.store.redis.Keys.Events, "Redis %s", d.Says)
		return
	}
	x.fine("nudges", "replicas can tell each other what happened")
}

const asked = 20 // times, for the round trips

func (x *examination) roundTrips(ctx context.Context) {
	var took []time.Duration
	for range asked {
		began := time.Now()
		if _, err := x.store.redis.Do(ctx, "ping"); err != nil {
			x.failed("roundtrips", err)
			return
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	median, worst, timeout := took[asked/2], took[asked-1], x.store.redis.Timeout()
	saw := fmt.Sprintf("%s, and %s at worst of %d; redis.timeout is %s", short(median), short(worst), asked, timeout)
	switch {
	case median > timeout/2:
		x.found("roundtrips", Problem, "many requests will time out, and their ticks come late",
			"bring Redis nearer, or raise redis.timeout", "%s", saw)
	case worst > timeout/2, median > 25*time.Millisecond:
		x.found("roundtrips", Warning, "a tick is claimed 25 ms ahead: with longer round trips it is fired late",
			"bring Redis nearer", "%s", saw)
	default:
		x.fine("roundtrips", "%s", saw)
	}
}

func (x *examination) clock(ctx context.Context) {
	sent := time.Now()
	if err := x.store.Sync(ctx); err != nil {
		x.failed("clock", err)
		return
	}
	now, _ := x.store.Now()
	off := time.Until(now)
	margin := time.Since(sent)
	saw := fmt.Sprintf("Redis' clock is %s off this machine's, give or take %s", short(off.Abs()), short(margin))
	const do = "see which of the two is wrong, and have it set by NTP"
	switch {
	case off.Abs() > time.Minute:
		x.found("clock", Problem,
			"replicas do not believe a clock more than a minute off: their ticks come by their own", do, "%s", saw)
	case off.Abs() > time.Second:
		x.found("clock", Warning, "ticks come on Redis' clock, so they are that much early or late", do, "%s", saw)
	default:
		x.fine("clock", "%s", saw)
	}
}

// server judges what Redis says of itself. It does not judge what Redis leaves out.
func (x *examination) server(ctx context.Context) {
	info, err := x.store.info(ctx)
	if err != nil {
		x.failed("info", err)
		return
	}
	if version, ok := info["redis_version"]; ok && older(version, oldest) {
		x.found("version", Problem, "scripts use commands that it does not have",
			"use Redis "+oldest+" or later, or Valkey", "Redis %s", version)
	} else if ok {
		name := "Redis " + version
		if v := info["valkey_version"]; v != "" {
			name = "Valkey " + v
		}
		x.fine("version", "%s", name)
	}
	if role, ok := info["role"]; ok && role != "master" {
		x.found("role", Problem, "only a master takes claims: nothing is fired",
			"name the master, or its Sentinels in redis.sentinel", "it is a %s of %s", role, info["master_host"])
	} else if ok {
		x.fine("role", "it is a master")
	}
	if policy, ok := info["maxmemory_policy"]; ok && policy != "noeviction" {
		x.found("eviction", Problem, "a full Redis removes locks and claims, and then ticks are fired twice",
			"set maxmemory-policy noeviction", "maxmemory-policy is %s", policy)
	} else if ok {
		x.fine("eviction", "maxmemory-policy is noeviction")
	}
	x.memory(rds.Number(info["used_memory"]), rds.Number(info["maxmemory"]))
	x.persistence(info)
	x.replicas(info, int(rds.Number(info["connected_slaves"])))
	if info["cluster_enabled"] == "1" {
		x.fine("cluster", "it is a node of a Cluster, and has the service's hash slot")
	}
}

func (x *examination) memory(used, most int64) {
	const means = "a Redis without room refuses claims, and nothing is fired"
	const do = "raise maxmemory, or see what fills it: redis-cli --bigkeys"
	switch saw := fmt.Sprintf("%d MB of %d MB are used", used>>20, most>>20); {
	case most == 0:
		x.fine("memory", "%d MB are used, without a limit", used>>20)
	case used > most/100*95:
		x.found("memory", Problem, means, do, "%s", saw)
	case used > most/100*80:
		x.found("memory", Warning, means, do, "%s", saw)
	default:
		x.fine("memory", "%s", saw)
	}
}

func (x *examination) persistence(info map[string]string) {
	aof, ok := info["aof_enabled"]
	const failing = "after a restart it has forgotten what it took since, and ticks are fired twice or lost"
	switch {
	case !ok:
	case aof == "1" && info["aof_last_write_status"] == "err", info["rdb_last_bgsave_status"] == "err":
		x.found("persistence", Problem, failing, "see Redis' log: mostly its disk is full, or it may not write there",
			"its last write to disk failed")
	case aof == "1":
		x.fine("persistence", "it writes each change to disk")
	case snapshotsAlone(info):
		x.found("persistence", Problem, forgetsClaims, "set appendonly yes", "appendonly is no, and it keeps snapshots")
	default:
		x.found("persistence", Warning,
			"after a restart it is empty, and ticks of its absence are lost; or it has lost claims since a snapshot",
			"set appendonly yes", "appendonly is no")
	}
}

func (x *examination) replicas(info map[string]string, n int) {
	wanted := x.store.redis.WaitReplicas()
	for i := range n {
		line := info["slave"+strconv.Itoa(i)]
		_, lag, _ := strings.Cut(line, "lag=")
		seconds, err := strconv.Atoi(lag)
		if err == nil && seconds > 10 || line != "" && !strings.Contains(line, "state=online") {
			x.found("replicas", Warning, "if Redis fails over to it, claims are forgotten",
				"see the replica's log, and the network between the two", "one of its replicas is behind: %s", line)
		}
	}
	switch saw := fmt.Sprintf("it has %s, and redis.waitReplicas is %d", text.Plural(n, "replica"), wanted); {
	case n < wanted:
		x.found("replicas", Problem, "a claim is believed when so many replicas have it: nothing is fired",
			"connect replicas, or lower redis.waitReplicas", "%s", saw)
	case wanted > 0 && n == wanted:
		x.found("replicas", Warning, "while one of them restarts, nothing is fired",
			"run one replica more than redis.waitReplicas", "%s", saw)
	case wanted == 0 && n > 0:
		x.found("replicas", Warning, "a failover can forget a claim, and its tick is fired twice",
			"set redis.waitReplicas to 1", "%s", saw)
	default:
		x.fine("replicas", "%s", saw)
	}
}

// keyspace looks for keys that are of another type than Solotick's, and for who is there.
func (x *examination) keyspace(ctx context.Context) {
	k := x.store.redis.Keys
	for _, q := range [][]any{{"hmget", k.Replicas, "x"}, {"zcard", k.Running}, {"zcard", k.DueJobs},
		{"xrevrange", k.History(rds.TimerJobs), "+", "-", "COUNT", 1}} {
		if _, err := x.store.redis.Do(ctx, q...); err != nil {
			if strings.HasPrefix(err.Error(), "WRONGTYPE") {
				x.found("keyspace", Problem, "another program writes to the keys of this service",
					"use another service name, or another database, and remove that key",
					"the key %s is of another type", q[1])
				return
			}
			x.failed("keyspace", err)
			return
		}
	}
	all, err := x.store.Replicas(ctx)
	now, _ := x.store.Now()
	if err != nil {
		x.failed("keyspace", err)
		return
	}
	all = slices.DeleteFunc(all, func(r Replica) bool { return now.Sub(r.Seen) > HeartbeatTimeout })
	x.fine("keyspace", "%s of Solotick live here", text.Plural(len(all), "replica"))
}

// short writes a duration for people.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
