package config

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

const defaultHistory = 200 // of the lock

// readRedis reads redis, and looks for keys that contradict each other. Without a URL in the table it checks less:
// --redis may name one.
func readRedis(r *Redis) func(*strict.Decoder, strict.Entry) {
	return func(d *strict.Decoder, e strict.Entry) {
		seen := d.Mapping(e)
		if r.History == defaultHistory {
			r.History = 0 // so that saying it makes no other table
		}
		if r.PasswordRefresh == DefaultPasswordRefresh {
			r.PasswordRefresh = 0
		}
		single(d, e, seen, e.Form.Choice, "says already where Redis is")
		checkURL(d, r, seen)
		checkPassword(d, e, r, seen)
	}
}

// checkURL looks for keys that contradict the URL.
func checkURL(d *strict.Decoder, r *Redis, seen map[string]*yaml.Node) {
	u, err := url.Parse(r.URL)
	if r.URL == "" || err != nil {
		return
	}
	if r.URL == Embedded {
		for _, k := range append([]string{"username", "tls"}, passwords...) {
			if strict.Present(seen[k]) {
				d.Fail(seen[k], "", "redis.%s: the embedded store has none", k)
			}
		}
		if r.WaitReplicas > 0 {
			d.Fail(seen["waitReplicas"], "", "redis.waitReplicas: the embedded store has none")
		}
		return
	}
	_, password := u.User.Password()
	if strict.Present(seen["username"]) && u.User.Username() != "" {
		d.Fail(seen["username"], "", "redis.username: redis.url names a user already")
	}
	for _, k := range passwords {
		if strict.Present(seen[k]) && password {
			d.Fail(seen[k], "", "redis.%s: redis.url has a password already", k)
		}
	}
	if strict.Present(seen["tls"]) && u.Scheme != "rediss" {
		d.Fail(seen["tls"], "write rediss:// to encrypt the connection", "redis.tls: redis.url does not ask for TLS")
	}
}

// addrs is a list of host:port.
func addrs(to *[]string) strict.Type {
	return strict.Type{Kind: strict.KindTextList, Decode: func(d *strict.Decoder, e strict.Entry) {
		hint := "write a list: " + e.Example
		if e.Value.Kind == yaml.ScalarNode && !e.IsNull() {
			d.Fail(e.Value, hint, "%s must be a list, not %s", e.Path, strict.KindOf(e.Value))
			return
		}
		items, ok := d.List(e)
		if ok && (e.IsNull() || len(e.Value.Content) == 0) {
			d.Fail(e.At, hint, "%s must not be empty", e.Path)
		}
		for _, item := range items {
			if t := d.Text(item); t.OK() && isAddr(d, t) {
				*to = append(*to, t.Value)
			}
		}
	}}
}

func isAddr(d *strict.Decoder, t strict.Text) bool {
	host, port, err := net.SplitHostPort(t.Value)
	switch {
	case err != nil && !strings.Contains(t.Value, ":"):
		return d.Bad(t, "write host:port", "the port is missing")
	case err != nil, host == "", strings.ContainsAny(host, " /@"):
		return d.Bad(t, "write host:port; username, passwordFile and tls have keys of their own", "not an address")
	case badPort(port):
		return d.Bad(t, "", "the port must be from 1 to 65535")
	}
	return true
}

var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}$`)

// CheckRedisURL says what is wrong with redis.url or a URL that replaces it, and what to write instead. why repeats
// nothing of the URL, and hint at most its host:port.
func CheckRedisURL(raw string) (why, hint string) {
	const form = "write redis://host:6379/0, rediss://… for TLS, unix:///run/redis.sock, or embedded"
	switch {
	case raw == Embedded:
		return "", ""
	case raw == "":
		return "must not be empty", form
	case strings.EqualFold(raw, Embedded):
		return "not a URL", `did you mean "embedded"?`
	case hostPort.MatchString(raw):
		return "the scheme is missing", "write redis://" + raw + "/0"
	case strings.HasPrefix(raw, "/"):
		return "the scheme is missing", form
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil && strings.Contains(raw, "@"):
		return "not a URL", "in a password write special characters as %2F, or keep it in a file: redis.passwordFile"
	case err != nil:
		return "not a URL", form
	case u.Fragment != "":
		return "a URL of Redis has no #; in a password write %23", form
	case u.Scheme == "unix":
		return checkRedisSocket(u)
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return "must begin with redis://, rediss:// or unix://", form
	case u.Hostname() == "":
		return "has no host", form
	case strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "["):
		return "the host has a second colon", "write redis://host:6379/0, with brackets for IPv6: redis://[::1]:6379/0"
	case badPort(u.Port()):
		return "the port must be from 1 to 65535", ""
	case u.RawQuery != "":
		return "options behind ? are not supported", "the keys under redis take their place: timeout, username, tls"
	case !isDatabase(strings.TrimPrefix(u.Path, "/")):
		return "the path must be the number of a database", form
	}
	return "", ""
}

func checkRedisSocket(u *url.URL) (why, hint string) {
	const form = "write unix:///run/redis.sock, with ?db=1 for another database"
	options := u.Query()
	switch {
	case u.Host != "", !strings.HasPrefix(u.Path, "/"), u.Path == "/":
		return "the socket must be a path from the root", form
	case len(options) > 1 || len(options) == 1 && !options.Has("db"):
		return "the only option behind ? is db", form
	case len(options["db"]) > 1 || !isDatabase(options.Get("db")):
		return "db must be the number of a database", form
	}
	return "", ""
}

func isDatabase(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && strconv.FormatUint(n, 10) == s
}

const maxHistory = 100_000 // bounds redis.history: more than a day of a job every second

// maxWaitReplicas bounds redis.waitReplicas. More than Redis has would stop every job, and ten is more than anyone
// needs.
const maxWaitReplicas = 10

func redisKeys(to *Redis) []strict.Key {
	const variables = checkVariables + "; a password with special characters belongs in redis.passwordFile"
	return slices.Concat([]strict.Key{
		{Name: "url", Type: strict.Checked(strict.Into(&to.URL), variables, CheckRedisURL),
			Example: "rediss://redis:6379/0", Form: redisForm, Show: strict.ShownURL, Also: "addr address host uri",
			Doc: "`redis://host:6379/0`, `rediss://…` for TLS, `unix:///run/redis.sock?db=0`, or `embedded`"},
		{Name: "sentinel", Type: made(&to.Sentinel, Sentinel{}, sentinelKeys, complete("")),
			Doc: "in place of `url`: the Sentinels that know the master"},
		{Name: "cluster", Type: made(&to.Cluster, Cluster{}, clusterKeys, complete("")),
			Doc: "in place of `url`: the nodes of a Redis Cluster"},
		{Name: "username", Type: strict.NonEmpty(&to.Username), Example: "app", Form: filledForm, Show: strict.Shown,
			Also: "user", Doc: "ACL user; by default the one in the URL, or Redis' default user"},
	}, passwordKeys(to), []strict.Key{
		{Name: "tls", Type: made(&to.TLS, TLS{}, tlsKeys, complete("")),
			Doc: "other roots or names than the system's; for `sentinel` and `cluster` it switches TLS on, `{}` too"},
		{Name: "waitReplicas", Type: strict.Number(&to.WaitReplicas), Default: "0",
			Example: "1", Form: strict.Form{Most: maxWaitReplicas}, Show: strict.Shown, Also: "minReplicas wait",
			Doc: "replicas of Redis that must have a claim before its job runs, at most 10: see [redis.md](redis.md)"},
		{Name: "history", Type: strict.Number(&to.History), Default: "200", Example: "2000",
			Form: strict.Form{Least: 1, Most: maxHistory}, Show: strict.Shown, Also: "fates historyLimit keep",
			Doc: "entries kept of each job's history, at most 100000; besides, a quarter as many failures"},
		{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.AtLeast(time.Millisecond)),
			Default: "500ms", Example: "1s", Show: strict.Shown,
			Doc: "limit of one request, connecting included; at most a third of every job's `lock.ttl`"},
	})
}

func sentinelKeys(to *Sentinel) []strict.Key {
	return []strict.Key{
		{Name: "master", Type: strict.NonEmpty(&to.Master), Default: strict.Required, Example: "mymaster",
			Form: filledForm, Show: strict.Shown, Also: "masterName name", Doc: "what the Sentinels call the master"},
		{Name: "addrs", Type: addrs(&to.Addrs), Default: strict.Required,
			Example: "[sentinel-0:26379, sentinel-1:26379]", Form: addrsForm, Show: strict.ShownURL,
			Also: "addr addresses hosts nodes", Doc: "`host:port` of the Sentinels; one that answers is enough"},
		{Name: "username", Type: strict.NonEmpty(&to.Username), Example: "app",
			Form: filledForm, Show: strict.Shown, Also: "user", Doc: "ACL user on the Sentinels"},
		{Name: "passwordFile", Type: strict.NonEmpty(&to.PasswordFile),
			Example: "/run/secrets/sentinel", Form: filledForm, Show: strict.Shown, Also: "password pass auth",
			Doc: "file with the Sentinels' own password, read at the start"},
	}
}

func clusterKeys(to *Cluster) []strict.Key {
	return []strict.Key{
		{Name: "addrs", Type: addrs(&to.Addrs), Default: strict.Required, Example: "[redis-0:6379, redis-1:6379]",
			Form: addrsForm, Show: strict.ShownURL, Also: "addr addresses hosts nodes",
			Doc: "`host:port` of some nodes; they name the others"},
	}
}
