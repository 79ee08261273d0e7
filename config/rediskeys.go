package config

import "time"

// maxWaitReplicas bounds redis.waitReplicas: nobody has more, and one too many stops every job.
const maxWaitReplicas = 10

func redisKeys() []key {
	return []key{
		{name: "url", kind: kindText, def: none, example: "rediss://redis:6379/0", form: redisForm,
			show: shownURL, aka: []string{"addr", "address", "host", "uri"},
			decode: (*decoder).redisURL,
			doc:    "`redis://host:6379/0`, `rediss://…` for TLS, `unix:///run/redis.sock?db=0`, or `embedded`"},
		{name: "sentinel", kind: kindMapping, def: none, keys: sentinelKeys(), decode: (*decoder).sentinel,
			doc: "in place of `url`: the Sentinels that know the present master"},
		{name: "cluster", kind: kindMapping, def: none, keys: clusterKeys(), decode: (*decoder).cluster,
			doc: "in place of `url`: the nodes of a Redis Cluster"},
		{name: "username", kind: kindText, def: none, example: "app",
			show: shown, aka: []string{"user"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.table.Redis.Username) }, form: filledForm,
			doc: "ACL user; without it the default user, or the one in the URL"},
		{name: "passwordFile", kind: kindText, def: none, example: "/run/secrets/redis", form: filledForm,
			show: shown, aka: []string{"password", "pass", "auth"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.table.Redis.PasswordFile) },
			doc:    "file with the password, read at every connect, so that a rotated secret works"},
		{name: "tls", kind: kindMapping, def: none, keys: tlsKeys(), decode: (*decoder).tls,
			doc: "for `rediss://`: where the system's own roots and names do not fit; for `sentinel` and `cluster` it switches TLS on, `{}` too"},
		{name: "waitReplicas", kind: kindNumber, def: "0", example: "1",
			show: shown, aka: []string{"minReplicas", "wait"},
			decode: func(d *decoder, e entry) { d.number(e, &d.table.Redis.WaitReplicas) },
			form:   form{most: maxWaitReplicas},
			doc:    "replicas of Redis that must have a claim before its job is run, at most 10; see [redis.md](redis.md)"},
		{name: "timeout", kind: kindDuration, def: "500ms", example: "1s",
			show: shown,
			decode: func(d *decoder, e entry) {
				d.redisTimeout = d.duration(e, &d.table.Redis.Timeout, atLeast(time.Millisecond))
			},
			doc: "limit of one round trip; at most a third of every job's `lock.ttl`"},
	}
}

func tlsKeys() []key {
	file := func(name, needs, example, doc string, to func(*TLS) *string, aka ...string) key {
		f := filledForm
		f.needs = needs
		return key{name: name, kind: kindText, def: none, example: example, show: shown, doc: doc, aka: aka, form: f,
			decode: func(d *decoder, e entry) { d.nonEmpty(e, to(d.table.Redis.TLS)) }}
	}
	return []key{
		file("caFile", "", "/etc/tls/ca.pem", "PEM file with the roots to trust instead of the system's",
			func(t *TLS) *string { return &t.CAFile }, "ca", "cacert", "caCertFile"),
		file("certFile", "keyFile", "/etc/tls/tls.crt", "PEM file with the client's certificate; needs `keyFile`",
			func(t *TLS) *string { return &t.CertFile }, "cert"),
		file("keyFile", "certFile", "/etc/tls/tls.key", "PEM file with the client's key; needs `certFile`",
			func(t *TLS) *string { return &t.KeyFile }, "key"),
		file("serverName", "", "redis.internal", "name that the server's certificate must have, where it is not the URL's host",
			func(t *TLS) *string { return &t.ServerName }, "sni"),
	}
}

func sentinelKeys() []key {
	return []key{
		{name: "master", kind: kindText, def: required, example: "mymaster", form: filledForm,
			show: shown, aka: []string{"masterName", "name"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.table.Redis.Sentinel.Master) },
			doc:    "what the Sentinels call the master"},
		{name: "addrs", kind: kindTextList, def: required, example: "[sentinel-0:26379, sentinel-1:26379]", form: addrsForm,
			show: shownURL, aka: []string{"addr", "addresses", "hosts", "nodes"},
			decode: func(d *decoder, e entry) { d.addrs(e, &d.table.Redis.Sentinel.Addrs) },
			doc:    "`host:port` of the Sentinels; one that answers is enough"},
		{name: "username", kind: kindText, def: none, example: "app",
			show: shown, aka: []string{"user"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.table.Redis.Sentinel.Username) }, form: filledForm,
			doc: "ACL user on the Sentinels themselves"},
		{name: "passwordFile", kind: kindText, def: none, example: "/run/secrets/sentinel", form: filledForm,
			show: shown, aka: []string{"password", "pass", "auth"},
			decode: func(d *decoder, e entry) { d.nonEmpty(e, &d.table.Redis.Sentinel.PasswordFile) },
			doc:    "file with the password of the Sentinels themselves, read at the start"},
	}
}

func clusterKeys() []key {
	return []key{
		{name: "addrs", kind: kindTextList, def: required, example: "[redis-0:6379, redis-1:6379]", form: addrsForm,
			show: shownURL, aka: []string{"addr", "addresses", "hosts", "nodes"},
			decode: func(d *decoder, e entry) { d.addrs(e, &d.table.Redis.Cluster.Addrs) },
			doc:    "`host:port` of some nodes; they name the others"},
	}
}
