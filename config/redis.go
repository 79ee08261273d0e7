package config

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Embedded is the redis.url of the store inside Solotick itself, for trying out on one machine.
const Embedded = "embedded"

func (d *decoder) service(e entry) { d.identifier(e, &d.table.Service) }

func (d *decoder) redis(e entry) {
	d.checkRedis(e.form.choice, d.mapping(e))
}

// checkRedis looks for keys that contradict each other. Without a URL in the table, which --redis may name, some cannot.
func (d *decoder) checkRedis(choice []string, seen map[string]*yaml.Node) {
	r := d.table.Redis
	named := ""
	for _, k := range choice {
		switch {
		case !present(seen[k]):
		case named == "":
			named = k
		default:
			d.fail(seen[k], "keep one of url, sentinel and cluster", "redis.%s: redis.%s says already where Redis is", k, named)
		}
	}
	u, err := url.Parse(r.URL)
	if r.URL == "" || err != nil {
		return
	}
	if r.URL == Embedded {
		for _, k := range []string{"username", "passwordFile", "tls"} {
			if present(seen[k]) {
				d.fail(seen[k], "", "redis.%s: the embedded store has none", k)
			}
		}
		if r.WaitReplicas > 0 {
			d.fail(seen["waitReplicas"], "", "redis.waitReplicas: the embedded store has none")
		}
		return
	}
	_, password := u.User.Password()
	if present(seen["username"]) && u.User.Username() != "" {
		d.fail(seen["username"], "", "redis.username: redis.url names a user already")
	}
	if present(seen["passwordFile"]) && password {
		d.fail(seen["passwordFile"], "", "redis.passwordFile: redis.url has a password already")
	}
	if present(seen["tls"]) && u.Scheme != "rediss" {
		d.fail(seen["tls"], "write rediss:// to encrypt the connection", "redis.tls: redis.url does not ask for TLS")
	}
}

func (d *decoder) tls(e entry) {
	d.table.Redis.TLS = &TLS{}
	seen := d.mapping(e)
	for _, k := range e.keys {
		if needs := k.form.needs; needs != "" && seen[k.name] != nil && seen[needs] == nil {
			d.fail(seen[k.name], "", "redis.tls.%s needs %s", k.name, needs)
		}
	}
}

func (d *decoder) sentinel(e entry) {
	d.table.Redis.Sentinel = &Sentinel{}
	d.complete(e, "master", "addrs")
}

func (d *decoder) cluster(e entry) {
	d.table.Redis.Cluster = &Cluster{}
	d.complete(e, "addrs")
}

// complete decodes a mapping that needs some of its keys.
func (d *decoder) complete(e entry, names ...string) {
	seen := d.mapping(e)
	for _, name := range names {
		if seen[name] == nil && (e.isNull() || e.val.Kind == yaml.MappingNode) {
			k, _ := find(e.keys, name)
			d.fail(e.at, "add "+name+": "+k.example, "%s.%s is missing", e.path, name)
		}
	}
}

// addrs reads a list of host:port.
func (d *decoder) addrs(e entry, to *[]string) {
	hint := "write a list: " + e.example
	if e.val.Kind == yaml.ScalarNode && !e.isNull() {
		d.fail(e.val, hint, "%s must be a list, not %s", e.path, kindOf(e.val))
		return
	}
	items, ok := d.list(e)
	if ok && (e.isNull() || len(e.val.Content) == 0) {
		d.fail(e.at, hint, "%s must not be empty", e.path)
	}
	for _, item := range items {
		d.addr(item, to)
	}
}

func (d *decoder) addr(item entry, to *[]string) {
	t := d.text(item)
	if !t.ok() {
		return
	}
	host, port, err := net.SplitHostPort(t.value)
	switch {
	case err != nil && !strings.Contains(t.value, ":"):
		d.bad(t, "write host:port", "the port is missing")
	case err != nil, host == "", strings.ContainsAny(host, " /@"):
		d.bad(t, "write host:port; username, passwordFile and tls have keys of their own", "not an address")
	case badPort(port):
		d.bad(t, "", "the port must be from 1 to 65535")
	default:
		*to = append(*to, t.value)
	}
}

func (d *decoder) redisURL(e entry) {
	t := d.text(e)
	if !t.ok() {
		return
	}
	why, hint := checkRedisURL(t.value)
	if why == "" {
		d.table.Redis.URL = t.value
		return
	}
	if t.opaque {
		hint = "check the values of its variables; a password with special characters belongs in redis.passwordFile"
	}
	d.bad(t, hint, "%s", why)
}

var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}$`)

// CheckRedisURL says what is wrong with an address that stands in the place of the table's redis.url. The error repeats
// nothing of it.
func CheckRedisURL(raw string) error {
	if why, _ := checkRedisURL(raw); why != "" {
		return errors.New(why)
	}
	return nil
}

// checkRedisURL says what is wrong with a URL, and what to write instead. Neither repeats it but for host:port.
func checkRedisURL(raw string) (why, hint string) {
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
