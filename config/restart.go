package config

import (
	"errors"
	"reflect"
	"strings"
)

// Restart names what a replica cannot change while it runs: its name, its connections and its clock. It returns nil if
// next can replace t. The error names keys and never shows their values.
func (t *Table) Restart(next *Table) error {
	a, b := t.Redis, next.Redis
	var keys []string
	for _, c := range []struct {
		key      string
		old, new any
	}{
		{"service", t.Service, next.Service},
		{"redis.url", a.URL, b.URL},
		{"redis.sentinel", a.Sentinel, b.Sentinel},
		{"redis.cluster", a.Cluster, b.Cluster},
		{"redis.username", a.Username, b.Username},
		{"redis.passwordFile", a.PasswordFile, b.PasswordFile},
		{"redis.passwordCommand", a.PasswordCommand, b.PasswordCommand},
		{"redis.passwordRefresh", a.PasswordRefresh, b.PasswordRefresh},
		{"redis.identity", a.Identity, b.Identity},
		{"redis.tls", a.TLS, b.TLS},
		{"redis.waitReplicas", a.WaitReplicas, b.WaitReplicas},
		{"redis.timeout", a.Timeout, b.Timeout},
		{"redis.history", a.History, b.History},
		{"listen", t.Listen, next.Listen},
		{"admin", t.Admin, next.Admin},
		{"clock", t.Clock, next.Clock},
	} {
		if !reflect.DeepEqual(c.old, c.new) {
			keys = append(keys, c.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return errors.New(strings.Join(keys, ", ") + " cannot change while running: restart the replica")
}
