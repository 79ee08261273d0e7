package config

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config/strict"
)

const (
	defaultFates = 500     // of the lock
	maxFates     = 100_000 // bounds redis.fates: more than a day of a job every second
)

// maxWaitReplicas bounds redis.waitReplicas. More than Redis has would stop every job, and ten is more than anyone
// needs.
const maxWaitReplicas = 10

func (d *decoder) redisKeys() []strict.Key {
	return slices.Concat(d.serverKeys(), d.passwordKeys(), d.connectionKeys())
}

func (d *decoder) serverKeys() []strict.Key {
	return []strict.Key{
		{Name: "url", Kind: strict.KindText, Default: strict.None, Example: "rediss://redis:6379/0", Form: redisForm,
			Show: strict.ShownURL, Also: []string{"addr", "address", "host", "uri"},
			Decode: d.redisURL,
			Doc:    "`redis://host:6379/0`, `rediss://…` for TLS, `unix:///run/redis.sock?db=0`, or `embedded`"},
		{Name: "sentinel", Kind: strict.KindMapping, Default: strict.None, Keys: d.sentinelKeys(), Decode: d.sentinel,
			Doc: "in place of `url`: the Sentinels that know the present master"},
		{Name: "cluster", Kind: strict.KindMapping, Default: strict.None, Keys: d.clusterKeys(), Decode: d.cluster,
			Doc: "in place of `url`: the nodes of a Redis Cluster"},
		{Name: "username", Kind: strict.KindText, Default: strict.None, Example: "app",
			Show: strict.Shown, Also: []string{"user"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.table.Redis.Username) }, Form: filledForm,
			Doc: "ACL user; without it the default user, or the one in the URL"},
	}
}

func (d *decoder) connectionKeys() []strict.Key {
	return []strict.Key{
		{Name: "tls", Kind: strict.KindMapping, Default: strict.None, Keys: d.tlsKeys(func() *TLS { return d.table.Redis.TLS }), Decode: d.redisTLS,
			Doc: "for `rediss://`: where the system's own roots and names do not fit; for `sentinel` and `cluster` it switches TLS on, `{}` too"},
		{Name: "waitReplicas", Kind: strict.KindNumber, Default: "0", Example: "1",
			Show: strict.Shown, Also: []string{"minReplicas", "wait"},
			Decode: func(e strict.Entry) { d.Number(e, &d.table.Redis.WaitReplicas) },
			Form:   strict.Form{Most: maxWaitReplicas},
			Doc:    "replicas of Redis that must have a claim before its job is run, at most 10; see [redis.md](redis.md)"},
		{Name: "fates", Kind: strict.KindNumber, Default: "500", Example: "2000",
			Show: strict.Shown, Also: []string{"history", "historyLimit", "keep"},
			Decode: func(e strict.Entry) {
				if d.Number(e, &d.table.Redis.Fates); d.table.Redis.Fates == defaultFates {
					d.table.Redis.Fates = 0 // so that saying it makes no other table
				}
			},
			Form: strict.Form{Least: 1, Most: maxFates},
			Doc:  "about how many fates of each job's ticks Redis keeps for `solotick why`, at most 100000; each takes about 200 bytes"},
		{Name: "timeout", Kind: strict.KindDuration, Default: "500ms", Example: "1s",
			Show: strict.Shown,
			Decode: func(e strict.Entry) {
				d.redisTimeout = d.Duration(e, &d.table.Redis.Timeout, strict.AtLeast(time.Millisecond))
			},
			Doc: "limit of one request, opening a connection included; at most a third of every job's `lock.ttl`"},
	}
}

func (d *decoder) sentinelKeys() []strict.Key {
	return []strict.Key{
		{Name: "master", Kind: strict.KindText, Default: strict.Required, Example: "mymaster", Form: filledForm,
			Show: strict.Shown, Also: []string{"masterName", "name"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.table.Redis.Sentinel.Master) },
			Doc:    "what the Sentinels call the master"},
		{Name: "addrs", Kind: strict.KindTextList, Default: strict.Required, Example: "[sentinel-0:26379, sentinel-1:26379]", Form: addrsForm,
			Show: strict.ShownURL, Also: []string{"addr", "addresses", "hosts", "nodes"},
			Decode: func(e strict.Entry) { d.addrs(e, &d.table.Redis.Sentinel.Addrs) },
			Doc:    "`host:port` of the Sentinels; one that answers is enough"},
		{Name: "username", Kind: strict.KindText, Default: strict.None, Example: "app",
			Show: strict.Shown, Also: []string{"user"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.table.Redis.Sentinel.Username) }, Form: filledForm,
			Doc: "ACL user on the Sentinels themselves"},
		{Name: "passwordFile", Kind: strict.KindText, Default: strict.None, Example: "/run/secrets/sentinel", Form: filledForm,
			Show: strict.Shown, Also: []string{"password", "pass", "auth"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.table.Redis.Sentinel.PasswordFile) },
			Doc:    "file with the password of the Sentinels themselves, read at the start"},
	}
}

func (d *decoder) clusterKeys() []strict.Key {
	return []strict.Key{
		{Name: "addrs", Kind: strict.KindTextList, Default: strict.Required, Example: "[redis-0:6379, redis-1:6379]", Form: addrsForm,
			Show: strict.ShownURL, Also: []string{"addr", "addresses", "hosts", "nodes"},
			Decode: func(e strict.Entry) { d.addrs(e, &d.table.Redis.Cluster.Addrs) },
			Doc:    "`host:port` of some nodes; they name the others"},
	}
}
