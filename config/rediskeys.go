package config

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config/strict"
)

const maxHistory = 100_000 // bounds redis.history: more than a day of a job every second

// maxWaitReplicas bounds redis.waitReplicas. More than Redis has would stop every job, and ten is more than anyone
// needs.
const maxWaitReplicas = 10

func redisKeys(to *Redis) []strict.Key {
	return slices.Concat(serverKeys(to), passwordKeys(to), connectionKeys(to))
}

func serverKeys(to *Redis) []strict.Key {
	const variables = checkVariables + "; a password with special characters belongs in redis.passwordFile"
	return []strict.Key{
		{Name: "url", Type: strict.Checked(strict.Into(&to.URL), variables, checkRedisURL),
			Example: "rediss://redis:6379/0", Form: redisForm, Show: strict.ShownURL, Also: "addr address host uri",
			Doc: "`redis://host:6379/0`, `rediss://…` for TLS, `unix:///run/redis.sock?db=0`, or `embedded`"},
		{Name: "sentinel", Type: made(&to.Sentinel, Sentinel{}, sentinelKeys, complete("")),
			Doc: "in place of `url`: the Sentinels that know the present master"},
		{Name: "cluster", Type: made(&to.Cluster, Cluster{}, clusterKeys, complete("")),
			Doc: "in place of `url`: the nodes of a Redis Cluster"},
		{Name: "username", Type: strict.NonEmpty(&to.Username), Example: "app", Form: filledForm, Show: strict.Shown,
			Also: "user", Doc: "ACL user; without it the default user, or the one in the URL"},
	}
}

func connectionKeys(to *Redis) []strict.Key {
	return []strict.Key{
		{Name: "tls", Type: made(&to.TLS, TLS{}, redisTLSKeys, complete("")),
			Doc: "for `rediss://`: where the system's own roots and names do not fit; " +
				"for `sentinel` and `cluster` it switches TLS on, `{}` too"},
		{Name: "waitReplicas", Type: strict.Number(&to.WaitReplicas), Default: "0",
			Example: "1", Form: strict.Form{Most: maxWaitReplicas}, Show: strict.Shown, Also: "minReplicas wait",
			Doc: "replicas of Redis that must have a claim before its job is run, at most 10; " +
				"see [redis.md](redis.md)"},
		{Name: "history", Type: strict.Number(&to.History), Default: "200", Example: "2000",
			Form: strict.Form{Least: 1, Most: maxHistory}, Show: strict.Shown, Also: "fates historyLimit keep",
			Doc: "how many entries of each job's history Redis keeps, at most 100000, and a quarter as many " +
				"failures; 300 bytes each"},
		{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.AtLeast(time.Millisecond)),
			Default: "500ms", Example: "1s", Show: strict.Shown,
			Doc: "limit of one request, opening a connection included; at most a third of every job's `lock.ttl`"},
	}
}

func sentinelKeys(to *Sentinel) []strict.Key {
	return []strict.Key{
		{Name: "master", Type: strict.NonEmpty(&to.Master), Default: strict.Required, Example: "mymaster",
			Form: filledForm, Show: strict.Shown, Also: "masterName name", Doc: "what the Sentinels call the master"},
		{Name: "addrs", Type: addrs(&to.Addrs), Default: strict.Required,
			Example: "[sentinel-0:26379, sentinel-1:26379]", Form: addrsForm, Show: strict.ShownURL,
			Also: "addr addresses hosts nodes", Doc: "`host:port` of the Sentinels; one that answers is enough"},
		{Name: "username", Type: strict.NonEmpty(&to.Username), Example: "app",
			Form: filledForm, Show: strict.Shown, Also: "user", Doc: "ACL user on the Sentinels themselves"},
		{Name: "passwordFile", Type: strict.NonEmpty(&to.PasswordFile),
			Example: "/run/secrets/sentinel", Form: filledForm, Show: strict.Shown, Also: "password pass auth",
			Doc: "file with the password of the Sentinels themselves, read at the start"},
	}
}

func clusterKeys(to *Cluster) []strict.Key {
	return []strict.Key{
		{Name: "addrs", Type: addrs(&to.Addrs), Default: strict.Required, Example: "[redis-0:6379, redis-1:6379]",
			Form: addrsForm, Show: strict.ShownURL, Also: "addr addresses hosts nodes",
			Doc: "`host:port` of some nodes; they name the others"},
	}
}
