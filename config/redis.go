package config

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// Embedded is the redis.url of the store inside Solotick itself, for trials on one machine.
const Embedded = "embedded"

func (d *decoder) service(e strict.Entry) { d.identifier(e, &d.table.Service) }

func (d *decoder) redis(e strict.Entry) {
	seen := d.Mapping(e)
	d.checkRedis(e.Form.Choice, seen)
	d.checkPassword(seen)
}

// checkRedis looks for keys that contradict each other. Without a URL in the table it checks less: --redis may name
// one.
func (d *decoder) checkRedis(choice []string, seen map[string]*yaml.Node) {
	r := d.table.Redis
	named := ""
	for _, k := range choice {
		switch {
		case !strict.Present(seen[k]):
		case named == "":
			named = k
		default:
			d.Fail(seen[k], "keep one of url, sentinel and cluster", "redis.%s: redis.%s says already where Redis is", k, named)
		}
	}
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

func (d *decoder) redisTLS(e strict.Entry) {
	d.table.Redis.TLS = &TLS{}
	d.tls(e)
}

func (d *decoder) sentinel(e strict.Entry) {
	d.table.Redis.Sentinel = &Sentinel{}
	d.complete(e, "master", "addrs")
}

func (d *decoder) cluster(e strict.Entry) {
	d.table.Redis.Cluster = &Cluster{}
	d.complete(e, "addrs")
}

// complete decodes a mapping that must have the named keys.
func (d *decoder) complete(e strict.Entry, names ...string) {
	seen := d.Mapping(e)
	for _, name := range names {
		if seen[name] == nil && (e.IsNull() || e.Value.Kind == yaml.MappingNode) {
			k, _ := strict.Find(e.Keys, name)
			d.Fail(e.At, "add "+name+": "+k.Example, "%s.%s is missing", e.Path, name)
		}
	}
}

// addrs reads a list of host:port.
func (d *decoder) addrs(e strict.Entry, to *[]string) {
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
		d.addr(item, to)
	}
}

func (d *decoder) addr(item strict.Entry, to *[]string) {
	t := d.Text(item)
	if !t.OK() {
		return
	}
	host, port, err := net.SplitHostPort(t.Value)
	switch {
	case err != nil && !strings.Contains(t.Value, ":"):
		d.Bad(t, "write host:port", "the port is missing")
	case err != nil, host == "", strings.ContainsAny(host, " /@"):
		d.Bad(t, "write host:port; username, passwordFile and tls have keys of their own", "not an address")
	case badPort(port):
		d.Bad(t, "", "the port must be from 1 to 65535")
	default:
		*to = append(*to, t.Value)
	}
}

func (d *decoder) redisURL(e strict.Entry) {
	t := d.Text(e)
	if !t.OK() {
		return
	}
	why, hint := checkRedisURL(t.Value)
	if why == "" {
		d.table.Redis.URL = t.Value
		return
	}
	if t.Opaque {
		hint = "check the values of its variables; a password with special characters belongs in redis.passwordFile"
	}
	d.Bad(t, hint, "%s", why)
}

var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}$`)

// CheckRedisURL says what is wrong with a URL that replaces the table's redis.url. The error repeats nothing of it.
func CheckRedisURL(raw string) error {
	if why, _ := checkRedisURL(raw); why != "" {
		return errors.New(why)
	}
	return nil
}

// checkRedisURL says what is wrong with a URL, and what to write instead. It repeats nothing of the URL except
// host:port.
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
