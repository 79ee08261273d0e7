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
	compare := func(key string, old, new any) {
		if !reflect.DeepEqual(old, new) {
			keys = append(keys, key)
		}
	}
	compare("service", t.Service, next.Service)
	compare("redis.url", a.URL, b.URL)
	compare("redis.sentinel", a.Sentinel, b.Sentinel)
	compare("redis.cluster", a.Cluster, b.Cluster)
	compare("redis.username", a.Username, b.Username)
	compare("redis.passwordFile", a.PasswordFile, b.PasswordFile)
	compare("redis.passwordCommand", a.PasswordCommand, b.PasswordCommand)
	compare("redis.passwordRefresh", a.PasswordRefresh, b.PasswordRefresh)
	compare("redis.identity", a.Identity, b.Identity)
	compare("redis.tls", a.TLS, b.TLS)
	compare("redis.waitReplicas", a.WaitReplicas, b.WaitReplicas)
	compare("redis.timeout", a.Timeout, b.Timeout)
	compare("redis.history", a.History, b.History)
	compare("listen", t.Listen, next.Listen)
	compare("admin", t.Admin, next.Admin)
	compare("clock", t.Clock, next.Clock)
	if len(keys) == 0 {
		return nil
	}
	return errors.New(strings.Join(keys, ", ") + " cannot change while running: restart the replica")
}
